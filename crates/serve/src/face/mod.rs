//! The MCP server that a client sees: which tools it has, and where their calls
//! go.

mod arrays;
mod call;
mod find;
mod inlined;
mod mode;
mod own;
mod prompts;
mod servers;
mod shown;
mod texts;
mod tokens;
mod unread;

pub(crate) use arrays::Arrays;
pub(crate) use unread::misfit;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callgate::Gate;
use callgate::config::ToolMode;
use callgate_policy::nearest;
use http::request::Parts;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    ContentBlock, CustomRequest, CustomResult, DiscoverResult, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams,
    InitializeResult, JsonObject, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::arguments::shown as shown_name;
use crate::runs::{self, Runs, Standing, level_of};
use crate::service::Service;

use find::Search;
use shown::{Audience, Shown};

/// The revisions that are served. Those before have batches, which are not.
static REVISIONS: [ProtocolVersion; 3] = [
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// Answers for one MCP session, or for one request where there are none.
pub(crate) struct Session {
    service: Arc<Service>,
    /// Said by the first request.
    mode: OnceLock<ToolMode>,
    /// Made once: the tools that a client sees do not change in a session.
    shown: OnceCell<Arc<Shown>>,
    /// What this session's client has said that holds for all its requests.
    pub(crate) standing: Standing,
}

impl Session {
    pub(crate) fn new(service: Arc<Service>, standing: Standing) -> Self {
        Self {
            service,
            mode: OnceLock::new(),
            shown: OnceCell::new(),
            standing,
        }
    }

    /// The mode of the session; where there are none, that of the request.
    fn mode(&self, context: &RequestContext<RoleServer>) -> Result<ToolMode, ErrorData> {
        if let Some(mode) = self.mode.get() {
            return Ok(*mode);
        }
        let asked = match context.extensions.get::<Parts>() {
            Some(parts) => mode::asked(parts)
                .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?,
            None => None,
        };
        let mode = asked.unwrap_or(self.service.options.mode);
        Ok(match is_stateless(context) {
            true => mode,
            false => *self.mode.get_or_init(|| mode),
        })
    }

    /// The gate, once it is made.
    async fn gate(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Gate>, ErrorData> {
        tokio::select! {
            gate = self.service.gate.clone() => Ok(gate),
            () = context.ct.cancelled() => {
                Err(ErrorData::internal_error("the request was cancelled", None))
            }
        }
    }

    /// What the client sees, and for how many milliseconds that is so at least,
    /// where there are no sessions.
    async fn shown(
        &self,
        gate: &Arc<Gate>,
        context: &RequestContext<RoleServer>,
    ) -> Result<(Arc<Shown>, Option<u64>), ErrorData> {
        let mode = self.mode(context)?;
        let options = &self.service.options;
        let audience = Audience {
            any_result: is_stateless(context),
            has_model: runs::has_model(context),
        };
        if is_stateless(context) {
            let arrays = &self.service.arrays;
            let (shown, left) = arrays.get(gate, mode, options, audience).await;
            return Ok((shown, Some(millis(left))));
        }
        let make = || async { Arc::new(arrays::make(gate, mode, options, audience).await) };
        Ok((Arc::clone(self.shown.get_or_init(make).await), None))
    }

    /// Calls a server's tool.
    async fn call(
        &self,
        gate: Arc<Gate>,
        (function, args): (String, Option<JsonObject>),
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let direct = match call::direct(function, args.as_ref(), is_stateless(context)) {
            Ok(direct) => direct,
            Err(wrong) => return Ok(said(Err(wrong))),
        };
        let runs = &self.service.runs;
        runs.call(gate, direct, request, context, &self.standing)
            .await
    }

    /// Looks for tools. Where a model is to pick them and the client has one, it is
    /// asked: by a request, or by an answer that the client comes again to.
    async fn search(
        &self,
        gate: Arc<Gate>,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = request.arguments.as_ref();
        let search = match Search::asked(given) {
            Ok(search) => search,
            Err(wrong) => return Ok(said(Err(wrong))),
        };
        if !search.is_by_model(&gate) || !runs::has_model(context) {
            Runs::expect_no_state(request)?;
            return Ok(said(search.answer(&gate).await));
        }
        let told_by = Value::Object(given.cloned().unwrap_or_default()).to_string();
        let pick = |caller| async move { result(search.asking(caller).answer(&gate).await) };
        let runs = &self.service.runs;
        runs.search(&told_by, request, context, &self.standing, pick)
            .await
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

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&REVISIONS)
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

    /// A request that the SDK could not read.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unread::refusal(&request, is_stateless(&context)))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let gate = self.service.gate.clone();
        self.standing.begun(&context, gate).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        let gate = self.service.gate.clone();
        self.standing.roots_changed(&context, gate).await;
    }

    #[expect(deprecated, reason = "it is since 2026-07-28, and older clients do it")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_stateless(&context) {
            return Err(unread::no_method("logging/setLevel"));
        }
        let level = serde_json::to_value(request.level).unwrap_or_default();
        self.standing.hear(level_of(&level)?);
        Ok(())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let gate = self.gate(&context).await?;
        let (shown, ttl) = self.shown(&gate, &context).await?;
        let listed = ListToolsResult::with_all_items(shown.tools.clone());
        Ok(match ttl {
            // They are this user's.
            Some(ttl) => listed
                .with_ttl_ms(ttl)
                .with_cache_scope(CacheScope::Private),
            None => listed,
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let gate = self.gate(&context).await?;
        let mode = self.mode(&context)?;
        let name: &str = &request.name;
        let is_passed_on = mode == ToolMode::Native && gate.finds_tool(name).await;
        let mut is_own = own::of(mode).contains(&name);
        if is_own && is_passed_on {
            // What the client sees under this name is meant.
            let (shown, _) = self.shown(&gate, &context).await?;
            is_own = shown.own().any(|own| own == name);
        }
        let given = request.arguments.as_ref();
        if is_own && own::asks_nothing(name) {
            Runs::expect_no_state(&request)?;
        }
        match name {
            _ if !is_own => {}
            own::RUN_SCRIPT => {
                let runs = &self.service.runs;
                return runs.run_script(&request, &context, &self.standing).await;
            }
            own::SEARCH_TOOLS => return self.search(gate, &request, &context).await,
            own::GET_TOOL_DETAILS => return Ok(said(find::get_tool_details(&gate, given).await)),
            own::LIST_SERVERS => return Ok(said(servers::list_servers(&gate, given))),
            own::ENABLE_SERVER => return Ok(said(servers::enable_server(&gate, given).await)),
            own::DISABLE_SERVER => return Ok(said(servers::disable_server(&gate, given).await)),
            own::WAIT => {
                let runs = &self.service.runs;
                return runs.wait(&request, &context, &self.standing).await;
            }
            _ => {
                return match call::asked(&gate, given).await {
                    Ok(asked) => self.call(gate, asked, &request, &context).await,
                    Err(wrong) => Ok(said(Err(wrong))),
                };
            }
        }
        if is_passed_on {
            let asked = (name.to_owned(), given.cloned());
            return self.call(gate, asked, &request, &context).await;
        }
        let (shown, _) = self.shown(&gate, &context).await?;
        if mode == ToolMode::Native && shown.tools.iter().any(|tool| tool.name == name) {
            let gone = format!("{name} is gone: no server lists it any more");
            return Ok(said(Err(gone)));
        }
        let message = unknown(&gate, mode, &shown, name);
        Err(ErrorData::invalid_params(message, None))
    }

    /// The tool whose arguments a request over HTTP has in headers, too: the
    /// transport compares them (MCP 2026-07-28, "Custom Headers from Tool
    /// Parameters").
    fn get_tool(&self, name: &str) -> Option<Tool> {
        // It is there by then: see `http::mcp`.
        let gate = self.service.gate.peek()?;
        match gate.denies(name) {
            true => None,
            false => shown::upstream(gate, name, true),
        }
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let gate = self.gate(&context).await?;
        let listed = ListPromptsResult::with_all_items(prompts::list(&gate));
        Ok(match is_stateless(&context) {
            // They are this user's, and as they were when the gate was made.
            true => listed
                .with_ttl_ms(millis(self.service.options.tools_ttl))
                .with_cache_scope(CacheScope::Private),
            false => listed,
        })
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let gate = self.gate(&context).await?;
        Ok(prompts::get(&gate, &request)?.into())
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

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Whether requests are on their own, and belong to no session.
fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// What one of our own tools says. What is wrong with a call is the model's to
/// mend, so it is a result it sees, not a protocol error that its client swallows
/// (MCP 2025-11-25, server/tools, "Error Handling").
fn said(text: Result<String, String>) -> CallToolResponse {
    result(text).into()
}

fn result(text: Result<String, String>) -> CallToolResult {
    match text {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
    }
}

/// The message for a name that is no tool's in this mode. It names tools of ours that
/// the client sees, and no others.
fn unknown(gate: &Gate, mode: ToolMode, shown: &Shown, name: &str) -> String {
    let own: Vec<&str> = shown.own().collect();
    match nearest(name, own.iter().copied()) {
        Some(near) => format!(
            "no tool is named {}; did you mean {near:?}?",
            shown_name(name)
        ),
        None if mode == ToolMode::Native => gate.unknown_tool_message(name),
        None => format!(
            "no tool is named {}; there are {}",
            shown_name(name),
            own.join(", ")
        ),
    }
}
