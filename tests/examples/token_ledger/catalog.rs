//! Catalogs of real tools, in several sizes.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::Path;

use callgate_tests::{Workbench, model_tasks};
use serde_json::{Map, Value, json};

use crate::Fallible;
use crate::tasks::USED;

/// Tools by the name of their server.
pub type Tools = BTreeMap<String, Vec<Value>>;

/// A folder with a configuration of servers that have these tools.
pub struct Catalog {
    /// The number of tools.
    pub size: usize,
    /// The number of servers.
    pub servers: usize,
    /// The folder in which `callgate serve` is started.
    pub bench: Workbench,
}

/// The tools of all servers.
pub fn tools(corpus: &Path) -> Fallible<Tools> {
    let mut tools = Tools::new();
    let entries = std::fs::read_dir(corpus);
    let entries = entries
        .map_err(|error| format!("{}: {error}; cargo xtask corpus makes it", corpus.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let list: Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let list = list["tools"].as_array().cloned().unwrap_or_default();
        let list = list.into_iter().filter(is_for_models).collect();
        tools.insert(name.into_owned(), list);
    }
    Ok(tools)
}

/// Some tools are for the user interface of a server's app alone (MCP Apps), or need tasks of
/// 2025-11-25, which Callgate does not follow.
fn is_for_models(tool: &Value) -> bool {
    if tool["execution"]["taskSupport"] == "required" {
        return false;
    }
    let visibility = tool["_meta"]["ui"]["visibility"].as_array();
    visibility.is_none_or(|all| all.iter().any(|one| one == "model"))
}

impl Catalog {
    /// The tools that the tasks use, and others up to this size: one of each server
    /// in turn, in the order of their names and lists.
    pub fn of(all: &Tools, size: usize) -> Fallible<Self> {
        let mut chosen = Tools::new();
        let used: HashSet<(&str, &str)> = USED.into_iter().collect();
        let mut rest: VecDeque<(&String, VecDeque<&Value>)> = VecDeque::new();
        for (server, tools) in all {
            let (of_tasks, others): (Vec<&Value>, Vec<&Value>) = tools.iter().partition(|tool| {
                used.contains(&(server, tool["name"].as_str().unwrap_or_default()))
            });
            if !of_tasks.is_empty() {
                let of_tasks = of_tasks.into_iter().cloned().collect();
                chosen.insert(server.clone(), of_tasks);
            }
            rest.push_back((server, others.into()));
        }
        let mut count: usize = chosen.values().map(Vec::len).sum();
        if count != USED.len() {
            return Err(format!(
                "the corpus has {count} of the {} tools that the tasks use; those of \"github\" are \
                 the file ../shared/corpus/github-mcp-server.tools.json beside the checkout",
                USED.len()
            )
            .into());
        }
        while count < size
            && let Some((server, mut others)) = rest.pop_front()
        {
            if let Some(tool) = others.pop_front() {
                chosen.entry(server.clone()).or_default().push(tool.clone());
                count += 1;
                rest.push_back((server, others));
            }
        }
        if count < size {
            return Err(format!("the corpus has {count} tools for models, not {size}").into());
        }
        Self::of_servers(&chosen)
    }

    /// The five servers of `fixtures/tasks`.
    pub fn of_real_servers() -> Fallible<Self> {
        Ok(Self {
            size: 51,
            servers: 5,
            bench: model_tasks::bench()?,
        })
    }

    /// All tools of these servers.
    pub fn of_servers(chosen: &Tools) -> Fallible<Self> {
        let bench = Workbench::empty();
        let own = std::env::current_exe()?;
        let mut servers = Map::new();
        for (name, tools) in chosen {
            let list = json!({ "tools": tools }).to_string();
            let file = bench.write(&format!("{name}.tools"), &list);
            let server = json!({ "command": own, "args": ["--replay", file] });
            servers.insert(name.clone(), server);
        }
        let config = json!({ "mcpServers": servers, "permissions": { "allow": ["*"] } });
        bench.write("callgate.json", &config.to_string());
        Ok(Self {
            size: chosen.values().map(Vec::len).sum(),
            servers: chosen.len(),
            bench,
        })
    }
}
