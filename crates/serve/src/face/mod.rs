//! The MCP server that a client sees: its tools, and where their calls go.

mod approvals;
mod call_tool;
mod calls;
mod declared;
mod mode;
mod own_tools;
mod prompts;
mod sample;
mod search;
mod server_tools;
mod service;
mod texts;
mod tool_array;
mod unknown_request;

pub(crate) use mode::of_request as mode_of_request;
pub(crate) use service::Service;
pub use service::Waits;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callgate::Gate;
use callgate::faces::LogLevel;
use http::request::Parts;
use parking_lot::Mutex;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest,
    CustomResult, DiscoverResult, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult,
    JsonObject, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer};

use crate::config::{RootsFrom, ToolMode};
use crate::runs::{Client, Roots, log_level, resources};

use tool_array::ToolArray;

/// The handler of one MCP session, or of one stateless request.
pub(crate) struct Session {
    service: Arc<Service>,
    /// The mode, set by the first request.
    mode: OnceLock<ToolMode>,
    /// The tools that the client sees, which do not change in a session.
    tools: OnceLock<Arc<ToolArray>>,
    roots: Arc<Roots>,
    /// The lowest level of log messages that the client wants in the session.
    log_level: Mutex<Option<LogLevel>>,
}

impl Session {
    fn new(service: Arc<Service>, roots: Arc<Roots>) -> Self {
        Self {
            service,
            mode: OnceLock::new(),
            tools: OnceLock::new(),
            roots,
            log_level: Mutex::default(),
        }
    }

    fn client(&self, context: &RequestContext<RoleServer>) -> Result<Client, ErrorData> {
        let mut client = Client::of_request(context, *self.log_level.lock())?;
        client.capabilities.roots &= self.service.options.roots == RootsFrom::Client;
        Ok(client)
    }

    /// The mode of the session, or of the stateless request.
    fn mode(&self, context: &RequestContext<RoleServer>) -> Result<ToolMode, ErrorData> {
        if let Some(mode) = self.mode.get() {
            return Ok(*mode);
        }
        let options = &self.service.options;
        let mode = match context.extensions.get::<Parts>() {
            Some(parts) => mode_of_request(parts, options)
                .map_err(|error| ErrorData::invalid_params(error, None))?,
            None => options.mode,
        };
        if is_stateless(context) {
            return Ok(mode);
        }
        Ok(*self.mode.get_or_init(|| mode))
    }

    /// Waits for the gate, and for a short time for the tool lists of its servers.
    async fn gate(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Gate>, ErrorData> {
        let made = async {
            let gate = self.service.gate.clone().await?;
            let _ = tokio::time::timeout(patience(context), self.service.listed.clone()).await;
            Ok::<_, ()>(gate)
        };
        tokio::select! {
            Ok(gate) = made => Ok(gate),
            () = context.ct.cancelled() => {
                Err(ErrorData::internal_error("the request was cancelled", None))
            }
        }
    }

    /// The tools that the client sees. `late`: see [`ToolArray::new`].
    fn tools(
        &self,
        gate: &Gate,
        late: Option<String>,
        mode: ToolMode,
        client: &Client,
    ) -> Arc<ToolArray> {
        let (options, outside) = (&self.service.options, &self.service.runs.outside);
        let make = || Arc::new(ToolArray::new(gate, late, mode, options, outside, client));
        if client.is_stateless {
            return make();
        }
        Arc::clone(self.tools.get_or_init(make))
    }

    /// The time that a stateless client may keep a list, and the scope of its cache.
    fn caching(&self) -> (Option<u64>, Option<CacheScope>) {
        let millis = u64::try_from(self.service.options.tools_ttl.as_millis());
        (Some(millis.unwrap_or(u64::MAX)), Some(CacheScope::Private))
    }

    fn info(&self, mode: ToolMode) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_tasks()
            .build();
        capabilities.logging = Some(JsonObject::new());
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("callgate", env!("CARGO_PKG_VERSION")).with_title("Callgate"),
            )
            .with_instructions(texts::instructions(mode))
    }
}

impl ServerHandler for Session {
    fn get_info(&self) -> ServerConfig {
        let mode = self.mode.get().copied();
        self.info(mode.unwrap_or(self.service.options.mode))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.mode(&context)?;
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        Ok(DiscoverResult::from_server_info(
            self.supported_protocol_versions().into_owned(),
            self.info(self.mode(&context)?),
        ))
    }

    /// Answers a request that rmcp does not recognize.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unknown_request::refusal(&request, is_stateless(&context)))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if self.service.options.roots == RootsFrom::Configured {
            return;
        }
        let client = Client::of_session(&context.peer);
        self.roots.follow(&client, self.service.gate.clone()).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.roots.changed();
        self.on_initialized(context).await;
    }

    #[expect(deprecated, reason = "deprecated in 2026-07-28; older clients use it")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_stateless(&context) {
            return Err(unknown_request::no_method("logging/setLevel"));
        }
        let level = serde_json::to_value(request.level).unwrap_or_default();
        *self.log_level.lock() = Some(log_level(&level)?);
        Ok(())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let (mode, client) = (self.mode(&context)?, self.client(&context)?);
        let array = match self.service.waits() {
            Some(_) => {
                // Those of a gate without servers.
                let gate = Gate::builder().build().await;
                let gate = gate.map_err(|it| ErrorData::internal_error(it.to_string(), None))?;
                let late = "the functions are not known yet".to_owned();
                self.tools(&gate, Some(late), mode, &client)
            }
            None => {
                let gate = self.gate(&context).await?;
                self.tools(&gate, None, mode, &client)
            }
        };
        let mut listed = ListToolsResult::with_all_items(array.tools.clone());
        if is_stateless(&context) {
            (listed.ttl_ms, listed.cache_scope) = self.caching();
        }
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut answered = self.answer_call(&request, &context).await;
        if is_client(&context, "gemini-cli")
            && let Ok(CallToolResponse::Complete(result)) = &mut answered
        {
            call_tool::protect_json_text(result);
        }
        answered
    }

    /// The tool whose arguments a request over HTTP repeats in headers: rmcp compares both (MCP
    /// 2026-07-28, "Custom Headers from Tool Parameters").
    fn get_tool(&self, name: &str) -> Option<Tool> {
        // `http::mcp` has waited for the gate.
        let gate = self.service.gate.peek()?.as_ref().ok()?;
        if gate.view().denies(name) {
            return None;
        }
        tool_array::server_tool(gate, name, true)
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = match self.service.waits() {
            Some(_) => Vec::new(),
            None => prompts::list(&*self.gate(&context).await?),
        };
        let mut listed = ListPromptsResult::with_all_items(prompts);
        if is_stateless(&context) {
            (listed.ttl_ms, listed.cache_scope) = self.caching();
        }
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(reason) = self.service.waits() {
            return Err(ErrorData::internal_error(reason, None));
        }
        let gate = self.gate(&context).await?;
        Ok(prompts::get(&gate, &request)?.into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let outputs = resources::list(&self.service.runs);
        Ok(ListResourcesResult::with_all_items(outputs))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let outputs = resources::templates();
        Ok(ListResourceTemplatesResult::with_all_items(outputs))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(resources::read(&self.service.runs, &request.uri)?.into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let client = self.client(&context)?;
        self.service.runs.get_task(&request, &client)
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

/// The time that a client's first requests wait for servers without a known list. Codex ignores an
/// MCP server that does not answer within 0.6 s.
fn patience(context: &RequestContext<RoleServer>) -> Duration {
    if is_client(context, "codex") {
        Duration::from_millis(500)
    } else {
        service::PATIENCE
    }
}

/// True if the client's name starts with `name`.
fn is_client(context: &RequestContext<RoleServer>, name: &str) -> bool {
    let client = context.client_info();
    client.is_some_and(|it| it.name.starts_with(name))
}

/// True if the request is of a revision without sessions.
fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}
