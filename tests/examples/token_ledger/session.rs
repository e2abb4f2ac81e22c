//! `callgate serve` over stdio, as a model's host has it.

use std::process::Stdio;

use callgate::config::ToolMode;
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};

use crate::Fallible;
use crate::catalog::Catalog;
use crate::meter::{Meter, tokens};

/// A connection, and what its model has seen before it does anything.
pub struct Session<'a> {
    client: RunningService<RoleClient, ()>,
    start: usize,
    /// The description of `run_script`, if there is one.
    inlined: String,
    _catalog: &'a Catalog,
}

impl<'a> Session<'a> {
    /// Starts it in this mode.
    pub async fn begin(catalog: &'a Catalog, mode: ToolMode) -> Fallible<Self> {
        let folder = catalog.bench.path();
        let mut command = tokio::process::Command::new(callgate_tests::binary("callgate"));
        command
            .args(["serve", "--mode", mode.as_str()])
            .current_dir(folder)
            .env("XDG_STATE_HOME", folder.join("state"))
            .env("XDG_CACHE_HOME", folder.join("cache"));
        // It warns of declarations that say less than their schemas.
        let transport = TokioChildProcess::builder(command).stderr(Stdio::null());
        let (transport, _) = transport.spawn()?;
        let client = ().serve(transport).await?;
        let tools = client.list_all_tools().await?;
        if mode == ToolMode::Native && tools.len() != catalog.size {
            return Err(format!("{} of {} tools", tools.len(), catalog.size).into());
        }
        // What hosts pass on to models: titles, hints and output schemas are not.
        let array: Vec<Value> = tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": *tool.input_schema,
                })
            })
            .collect();
        let inlined = tools.iter().find(|tool| tool.name == "run_script");
        let inlined = inlined.and_then(|tool| tool.description.as_deref());
        Ok(Self {
            client,
            start: tokens(&Value::from(array).to_string()),
            inlined: inlined.unwrap_or_default().to_owned(),
            _catalog: catalog,
        })
    }

    /// Tokens of the array of tools.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Whether the declaration of a function is in the description of `run_script`.
    pub fn declares(&self, function: &str) -> bool {
        self.inlined.contains(&format!("{function}("))
    }

    /// One turn: the model writes calls, and is given their results.
    pub async fn turn(
        &self,
        meter: &mut Meter,
        calls: &[(String, Value)],
    ) -> Fallible<Vec<String>> {
        meter.turn();
        let mut texts = Vec::new();
        for (name, arguments) in calls {
            meter.written(&json!({ "name": name, "arguments": arguments }).to_string());
            let text = self.call(name, arguments).await?;
            meter.given(&text);
            texts.push(text);
        }
        Ok(texts)
    }

    async fn call(&self, name: &str, arguments: &Value) -> Fallible<String> {
        let object = arguments
            .as_object()
            .cloned()
            .ok_or("arguments are an object")?;
        let request = CallToolRequestParams::new(name.to_owned()).with_arguments(object);
        let result = self.client.call_tool(request).await?;
        let texts = result.content.iter().filter_map(|block| block.as_text());
        let text: String = texts.map(|text| text.text.as_str()).collect();
        match result.is_error {
            Some(true) => Err(format!("{name} {arguments}: {text}").into()),
            _ => Ok(text),
        }
    }

    /// Ends it.
    pub async fn end(self) -> Fallible<()> {
        self.client.cancel().await?;
        Ok(())
    }
}
