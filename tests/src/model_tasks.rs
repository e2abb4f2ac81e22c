//! Tasks over five real servers, in `fixtures/tasks`, solved like by a model that knows the tools
//! only from the texts of `callgate serve`.
//!
//! Each task in `tasks.json` has `needs`, the tools that the model must look up and the words to
//! search for them; `steps` per mode, script files or names and arguments of tools; `expected`,
//! texts in the answers if the task is solved; and `outcomes`, the ledger's outcomes of calls that
//! fail on purpose.

use std::fs;
use std::io::{Error, Result};
use std::process::Command;

use serde_json::{Value, json};

use crate::host::Host;
use crate::{Workbench, five_servers, repository};

/// A task done in one mode.
#[derive(Debug, Default)]
pub struct Done {
    /// Calls that the model made, look-ups included.
    pub calls: usize,
    /// Calls that asked for names and arguments of tools.
    pub look_ups: usize,
    /// Calls that were answered with an error.
    pub failed: usize,
    /// The answers.
    pub text: String,
    /// The outcomes of calls to servers, except `ok`, as a JSON array.
    pub outcomes: Value,
}

/// A model in one session of `callgate serve`.
pub struct Model {
    host: Host,
    mode: &'static str,
    /// The array of tools, and all answers so far.
    known: String,
    bench: Workbench,
}

/// The tasks.
pub fn tasks() -> Result<Vec<Value>> {
    Ok(serde_json::from_str(&fixture("tasks.json")?)?)
}

/// A folder with the data of the tasks, and a configuration of five servers over it.
pub fn bench() -> Result<Workbench> {
    let bench = Workbench::empty();
    let folder = bench.path().canonicalize()?.join("shop");
    let script = "cp -R folder $0; cd $0; . $1/repository.sh";
    let fixtures = repository().join("fixtures/tasks");
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(&folder).arg(&fixtures);
    let output = shell.current_dir(&fixtures).output()?;
    if !output.status.success() {
        return Err(Error::other(format!("{output:?}")));
    }
    let config = json!({
        "mcpServers": five_servers(&folder),
        "permissions": { "allow": ["*"], "deny": ["git_*reset", "fs_move_file"] },
        "ledger": { "path": "calls.jsonl" },
    });
    bench.write("callgate.json", &config.to_string());
    // Some servers are slower than the first list of tools waits, so `serve` gets to know them.
    let mut first = Host::start(&bench, &[])?;
    for server in ["everything", "fs", "git", "memory", "time"] {
        let enable = json!({ "name": "enable_server", "arguments": { "server": server } });
        first.request("tools/call", &enable)?;
    }
    Ok(bench)
}

impl Model {
    /// Begins a session in a mode, `code` or `discovery`.
    pub fn new(mode: &'static str) -> Result<Self> {
        let bench = bench()?;
        let mut host = Host::start(&bench, &["--mode", mode])?;
        let tools = host.request("tools/list", &json!({}))?;
        let known = tools["tools"].to_string();
        Ok(Self {
            host,
            mode,
            known,
            bench,
        })
    }

    /// The array of tools, and all answers so far.
    pub fn known(&self) -> &str {
        &self.known
    }

    /// Does a task; nothing if it is not for this mode.
    pub fn solve(&mut self, task: &Value) -> Result<Option<Done>> {
        let solution = &task[self.mode];
        if solution.is_null() {
            return Ok(None);
        }
        let earlier = self.outcomes()?.len();
        let mut done = Done::default();
        for need in each(&task["needs"]) {
            self.look_up(need, &mut done)?;
        }
        for step in each(&solution["steps"]) {
            if let Some(file) = step.as_str() {
                let script = json!({ "code": fixture(file)?.trim_end() });
                self.call("run_script", &script, &mut done)?;
            } else {
                let call = json!({ "name": step[0], "args": step[1] });
                self.call("call_tool", &call, &mut done)?;
            }
        }
        let mut expected = each(&solution["expected"]).filter_map(Value::as_str);
        if let Some(missing) = expected.find(|text| !done.text.contains(text)) {
            return Err(Error::other(format!("no {missing:?} in {}", done.text)));
        }
        done.outcomes = self.outcomes()?.split_off(earlier).into();
        Ok(Some(done))
    }

    /// Looks tools up, unless their arguments are known: by their names, or by words.
    fn look_up(&mut self, need: &Value, done: &mut Done) -> Result<()> {
        let names = || each(&need["names"]).filter_map(Value::as_str);
        if names().all(|name| self.known.contains(&format!("{name}("))) {
            return Ok(());
        }
        done.look_ups += 1;
        if names().all(|name| self.known.contains(name)) {
            return self.call("get_tool_details", &json!({ "names": need["names"] }), done);
        }
        let words = json!({ "query": need["query"], "detail": "signatures" });
        self.call("search_tools", &words, done)
    }

    fn call(&mut self, tool: &str, arguments: &Value, done: &mut Done) -> Result<()> {
        let folder = self.bench.path().canonicalize()?.join("shop");
        let arguments = arguments.to_string();
        let arguments = arguments.replace("@folder", &folder.to_string_lossy());
        let (text, is_error) = self.host.call(tool, &serde_json::from_str(&arguments)?)?;
        done.calls += 1;
        done.failed += usize::from(is_error);
        done.text += &text;
        self.known += &text;
        Ok(())
    }

    /// The outcomes in the ledger that are not `ok`.
    fn outcomes(&self) -> Result<Vec<Value>> {
        let ledger = fs::read_to_string(self.bench.path().join("calls.jsonl")).unwrap_or_default();
        let outcome = |line: &str| Ok(serde_json::from_str::<Value>(line)?["outcome"].take());
        let mut outcomes: Vec<Value> = ledger.lines().map(outcome).collect::<Result<_>>()?;
        outcomes.retain(|outcome| !outcome.is_null() && outcome != "ok");
        Ok(outcomes)
    }
}

fn fixture(name: &str) -> Result<String> {
    fs::read_to_string(repository().join("fixtures/tasks").join(name))
}

fn each(array: &Value) -> impl Iterator<Item = &Value> {
    array.as_array().into_iter().flatten()
}
