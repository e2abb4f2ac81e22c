//! The client of a request and its capabilities.

use std::sync::Arc;

use callgate::faces::{LogLevel, Offers};
use callgate_text::one_line;
use http::request::Parts;
use rmcp::model::{
    ClientCapabilities, ElicitRequestParams, ErrorData, InputRequest, ProtocolVersion,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde::Deserialize as _;
use serde_json::Value;

/// The member of `_meta` with the log level of a stateless request.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The name of Claude Code. It shows structured content to its model in place of the text.
const CLAUDE_CODE: &str = "claude-code";
/// The name of Codex, which does the same.
const CODEX: &str = "codex-mcp-client";
/// The largest output that Codex shows to its model whole, in bytes.
const CODEX_OUTPUT: u64 = 10 << 10;

/// The limit of a client's name and version, in characters.
const MAX_NAME: usize = 100;

/// Marks a request over HTTP whose answer is one message: in a session, its client cannot be asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneMessage;

/// The client of one request.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) peer: Peer<RoleServer>,
    pub(crate) capabilities: Offers,
    /// True if the revision has no sessions (2026-07-28): then a question is an answer to the
    /// request, which the client repeats ("Multi Round-Trip Requests"). In older revisions it is a
    /// request to the client.
    pub(crate) is_stateless: bool,
    /// True if the revision has `oneOf` for choices with titles in forms (2025-11-25).
    pub(crate) has_titles: bool,
    /// True if the client accepts a task as an answer (extension `io.modelcontextprotocol/tasks`).
    pub(crate) tasks: bool,
    /// The lowest level of servers' log messages that the client wants.
    pub(crate) logs: Option<LogLevel>,
    /// The largest output that the client shows to its model whole, in bytes, if it is known.
    pub(crate) max_output: Option<u64>,
    /// True if structured content would replace the text that the model reads.
    pub(crate) replaces_text: bool,
    /// The client's name and version, as it says.
    pub(crate) name: Option<Arc<str>>,
}

impl Client {
    /// The client of a request. `logs`: the log level of its session.
    pub(crate) fn of_request(
        context: &RequestContext<RoleServer>,
        logs: Option<LogLevel>,
    ) -> Result<Self, ErrorData> {
        let capabilities = context.client_capabilities().unwrap_or_default();
        let mut client = Self::new(&context.peer, context.protocol_version(), &capabilities);
        let parts = context.extensions.get::<Parts>();
        if !client.is_stateless
            && parts.is_some_and(|it| it.extensions.get::<OneMessage>().is_some())
        {
            client.capabilities = Offers::default();
        }
        let logs = if client.is_stateless {
            context.meta.get(LOG_LEVEL).map(log_level).transpose()?
        } else {
            logs
        };
        let info = context.client_info();
        let name = info.as_ref().map_or("", |info| info.name.as_str());
        Ok(Self {
            logs,
            replaces_text: [CLAUDE_CODE, CODEX].contains(&name),
            max_output: (name == CODEX).then_some(CODEX_OUTPUT),
            name: info.as_ref().map(|info| {
                let name = format!("{} {}", info.name, info.version);
                one_line(&name, MAX_NAME).into()
            }),
            ..client
        })
    }

    /// The client of a session.
    pub(crate) fn of_session(peer: &Peer<RoleServer>) -> Self {
        let info = peer.peer_info();
        let (version, capabilities) = info
            .map(|info| (info.protocol_version.clone(), info.capabilities.clone()))
            .unzip();
        Self::new(peer, version, &capabilities.unwrap_or_default())
    }

    fn new(
        peer: &Peer<RoleServer>,
        version: Option<ProtocolVersion>,
        capabilities: &ClientCapabilities,
    ) -> Self {
        let is_from = |first: ProtocolVersion| version.as_ref().is_some_and(|it| *it >= first);
        let is_stateless = is_from(ProtocolVersion::V_2026_07_28);
        Self {
            peer: peer.clone(),
            capabilities: offers(capabilities),
            is_stateless,
            has_titles: is_from(ProtocolVersion::V_2025_11_25),
            tasks: is_stateless && capabilities.supports_tasks(),
            logs: None,
            max_output: None,
            replaces_text: false,
            name: None,
        }
    }
}

/// The level that a client names.
pub(crate) fn log_level(level: &Value) -> Result<LogLevel, ErrorData> {
    LogLevel::deserialize(level).map_err(|error| {
        ErrorData::invalid_params(format!("this is not a log level: {error}"), None)
    })
}

fn offers(capabilities: &ClientCapabilities) -> Offers {
    let elicitation = capabilities.elicitation.as_ref();
    let sampling = capabilities.sampling.as_ref();
    let mut offers = Offers::default();
    offers.url = elicitation.is_some_and(|elicitation| elicitation.url.is_some());
    // A client that names no mode has forms (2025-11-25, "Elicitation", "Capabilities").
    offers.form = elicitation.is_some_and(|elicitation| elicitation.form.is_some() || !offers.url);
    offers.sampling = sampling.is_some();
    offers.sampling_tools = sampling.is_some_and(|sampling| sampling.tools.is_some());
    offers.roots = capabilities.roots.is_some();
    offers
}

/// True if a client with these capabilities can answer the request.
#[expect(
    deprecated,
    reason = "sampling and roots are deprecated, and clients still have them"
)]
pub(crate) fn can_answer(client: Offers, request: &InputRequest) -> bool {
    match request {
        InputRequest::Elicitation(request) => match request.params {
            ElicitRequestParams::UrlElicitationParams { .. } => client.url,
            _ => client.form,
        },
        InputRequest::CreateMessage(request) => {
            let params = &request.params;
            let has_tools = params.tools.is_some() || params.tool_choice.is_some();
            client.sampling && (client.sampling_tools || !has_tools)
        }
        InputRequest::ListRoots(_) => client.roots,
        // A kind that is added later.
        _ => false,
    }
}
