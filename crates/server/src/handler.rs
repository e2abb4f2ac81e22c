//! The MCP server: lists one tool, and hands its calls to the runs.

use std::sync::Arc;

use callgate::Gate;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use tokio::sync::OnceCell;

use crate::description;
use crate::runs::{Roots, Runs};
use crate::service::Service;

const TOOL: &str = "run_script";

/// Answers for one MCP session.
pub(crate) struct Session {
    service: Arc<Service>,
    /// Made once: the tools that a client sees do not change in a session.
    tool: OnceCell<Tool>,
    /// The folders that this session's client names.
    roots: Roots,
}

impl Session {
    pub(crate) fn new(service: Arc<Service>) -> Self {
        Self {
            service,
            tool: OnceCell::new(),
            roots: Roots::default(),
        }
    }

    async fn tool(&self) -> &Tool {
        self.tool
            .get_or_init(|| async { definition(&*self.service.gate.clone().await) })
            .await
    }
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(
            Implementation::new("callgate", env!("CARGO_PKG_VERSION")).with_title("Callgate"),
        )
    }

    async fn on_roots_list_changed(&self, _context: NotificationContext<RoleServer>) {
        self.roots.forget();
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
        let runs = &self.service.runs;
        runs.run_script(&request, &context, &self.roots).await
    }
}

fn definition(gate: &Gate) -> Tool {
    Tool::new(
        TOOL,
        description::run_script(gate),
        Runs::run_script_schema(),
    )
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
