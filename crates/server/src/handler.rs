//! The MCP server: lists the tools, and hands what concerns runs to the runs.

use std::sync::Arc;

use callgate::Gate;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, ErrorData, GetTaskParams,
    GetTaskResult, Implementation, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use tokio::sync::OnceCell;

use crate::description;
use crate::runs::{Roots, Runs};
use crate::service::Service;

const RUN_SCRIPT: &str = "run_script";
const WAIT: &str = "wait";

/// Answers for one MCP session.
pub(crate) struct Session {
    service: Arc<Service>,
    /// Made once: the tools that a client sees do not change in a session.
    tools: OnceCell<Vec<Tool>>,
    /// The folders that this session's client names.
    roots: Roots,
}

impl Session {
    pub(crate) fn new(service: Arc<Service>) -> Self {
        Self {
            service,
            tools: OnceCell::new(),
            roots: Roots::default(),
        }
    }

    async fn tools(&self) -> &[Tool] {
        self.tools
            .get_or_init(|| async {
                let gate = self.service.gate.clone().await;
                vec![run_script(&gate), wait()]
            })
            .await
    }
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities).with_server_info(
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
        Ok(ListToolsResult::with_all_items(self.tools().await.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let runs = &self.service.runs;
        match &*request.name {
            RUN_SCRIPT => runs.run_script(&request, &context, &self.roots).await,
            WAIT => runs.wait(&request, &context).await,
            other => {
                let message =
                    format!("no tool is named {other:?}; there are {RUN_SCRIPT:?} and {WAIT:?}");
                Err(ErrorData::invalid_params(message, None))
            }
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let outputs = self.service.runs.list_resources();
        Ok(ListResourcesResult::with_all_items(outputs))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let outputs = Runs::resource_templates();
        Ok(ListResourceTemplatesResult::with_all_items(outputs))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(self.service.runs.read_resource(&request)?.into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.service.runs.get_task(&request, &context)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.service.runs.update_task(request)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.service.runs.cancel_task(&request)
    }
}

fn wait() -> Tool {
    Tool::new(WAIT, Runs::wait_description(), Runs::wait_schema())
        .with_title("Wait for a run")
        .with_annotations(
            // It can end a run, and nothing else.
            ToolAnnotations::new()
                .read_only(false)
                .destructive(false)
                .open_world(false),
        )
}

fn run_script(gate: &Gate) -> Tool {
    Tool::new(
        RUN_SCRIPT,
        description::run_script(gate),
        Runs::run_script_schema(gate.limits()),
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
