//! The MCP server: lists one tool, and runs scripts with it.

use std::sync::Arc;

use callgate::{Gate, RunRequest, Status};
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::description;

const TOOL: &str = "run_script";

/// Answers for `run_script` over one gate.
pub(crate) struct RunScript {
    gate: Shared<BoxFuture<'static, Arc<Gate>>>,
    /// Made once: the tools that a client sees do not change in a session.
    tool: OnceCell<Tool>,
}

impl RunScript {
    pub(crate) fn new(gate: BoxFuture<'static, Arc<Gate>>) -> Self {
        Self {
            gate: gate.shared(),
            tool: OnceCell::new(),
        }
    }

    async fn tool(&self) -> &Tool {
        self.tool
            .get_or_init(|| async { definition(&*self.gate.clone().await) })
            .await
    }

    async fn run(&self, code: &str, context: &RequestContext<RoleServer>) -> CallToolResult {
        let request = RunRequest::new(code).cancel_on(context.ct.clone());
        let report = self.gate.clone().await.run(request).await;
        let content = vec![ContentBlock::text(report.to_string())];
        match report.status {
            Status::Completed => CallToolResult::success(content),
            _ => CallToolResult::error(content),
        }
    }
}

impl ServerHandler for RunScript {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(
            Implementation::new("callgate", env!("CARGO_PKG_VERSION")).with_title("Callgate"),
        )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![
            self.tool().await.clone(),
        ]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != TOOL {
            return Err(ErrorData::invalid_params(
                format!(
                    "no tool is named {:?}; the only one is {TOOL:?}",
                    request.name
                ),
                None,
            ));
        }
        // Wrong arguments are the model's to mend, so they come back as a
        // result it sees, not as a protocol error that its client swallows
        // (MCP 2025-11-25, server/tools, "Error Handling").
        match code(request.arguments.as_ref()) {
            Ok(code) => Ok(self.run(code, &context).await.into()),
            Err(message) => Ok(CallToolResult::error(vec![ContentBlock::text(message)]).into()),
        }
    }
}

fn definition(gate: &Gate) -> Tool {
    Tool::new(TOOL, description::run_script(gate), input_schema())
        .with_title("Run a script")
        .with_annotations(
            // What a script does is up to the tools it calls, so nothing milder
            // can be promised here.
            ToolAnnotations::new()
                .read_only(false)
                .destructive(true)
                .open_world(true),
        )
}

fn code(arguments: Option<&JsonObject>) -> Result<&str, String> {
    let arguments = arguments.ok_or("run_script needs an argument \"code\": the script's text")?;
    if let Some(unknown) = arguments.keys().find(|key| *key != "code") {
        return Err(format!(
            "run_script has no argument {unknown:?}; it takes \"code\" alone"
        ));
    }
    match arguments.get("code") {
        Some(Value::String(code)) => Ok(code),
        Some(_) => Err("\"code\" must be a string: the script's text".to_owned()),
        None => Err("run_script needs an argument \"code\": the script's text".to_owned()),
    }
}

fn input_schema() -> Arc<JsonObject> {
    let schema = json!({
        "type": "object",
        "properties": {
            "code": { "type": "string", "description": "the TypeScript script" }
        },
        "required": ["code"],
        "additionalProperties": false
    });
    match schema {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}
