//! A session of `callgate serve`, from the view of a model.

use callgate_serve::config::ToolMode;
use callgate_tests::host::Host;
use serde_json::{Value, json};

use crate::Fallible;
use crate::catalog::Catalog;
use crate::meter::{Cost, tokens};

/// A connection, and the array of tools as its model sees it.
pub struct Session {
    host: Host,
    array: String,
}

impl Session {
    /// Starts it in this mode.
    pub fn begin(catalog: &Catalog, mode: ToolMode) -> Fallible<Self> {
        let mut host = Host::start(&catalog.bench, &["--mode", mode.as_str()])?;
        let tools = host.request("tools/list", &json!({}))?;
        let tools = tools["tools"].as_array().ok_or("no tools")?;
        if mode == ToolMode::Native && tools.len() != catalog.size {
            return Err(format!("{} of {} tools", tools.len(), catalog.size).into());
        }
        // Hosts pass on these members to models, but not titles, hints and output schemas.
        let array = tools.iter().map(|tool| {
            json!({
                "name": tool["name"],
                "description": tool["description"],
                "input_schema": tool["inputSchema"],
            })
        });
        let array = Value::from_iter(array).to_string();
        Ok(Self { host, array })
    }

    /// Tokens of the array of tools.
    pub fn start(&self) -> usize {
        tokens(&self.array)
    }

    /// True if the array of tools has this text.
    pub fn shows(&self, text: &str) -> bool {
        self.array.contains(text)
    }

    /// One turn: the model writes calls, and is given their results.
    pub fn turn(&mut self, cost: &mut Cost, calls: &[(String, Value)]) -> Fallible<Vec<String>> {
        cost.turn();
        let mut texts = Vec::new();
        for (name, arguments) in calls {
            cost.written(&json!({ "name": name, "arguments": arguments }).to_string());
            let (text, is_error) = self.host.call(name, arguments)?;
            if is_error {
                return Err(format!("{name} {arguments}: {text}").into());
            }
            cost.given(&text);
            texts.push(text);
        }
        Ok(texts)
    }
}
