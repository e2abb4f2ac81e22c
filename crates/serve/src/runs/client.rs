//! What the client of a request can do for a run, and how it is reached.

use callgate::LogLevel;
use rmcp::model::{ClientCapabilities, ElicitRequestParams, InputRequest, ProtocolVersion};
use rmcp::service::{Peer, RequestContext, RoleServer};

/// The client of one request.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) peer: Peer<RoleServer>,
    pub(crate) can: Can,
    pub(crate) way: Way,
    /// Whether it takes a task for an answer (the extension
    /// `io.modelcontextprotocol/tasks`).
    pub(crate) tasks: bool,
    /// The least important log messages of servers that it hears, if it hears any.
    pub(crate) logs: Option<LogLevel>,
}

/// How a client is asked for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By a request while its own waits (2025-11-25 and before).
    Requests,
    /// By an answer to its own that asks it to come again (2026-07-28, "Multi
    /// Round-Trip Requests").
    Rounds,
}

/// What a client announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Can {
    pub(crate) form: bool,
    pub(crate) url: bool,
    pub(crate) sampling: bool,
    pub(crate) sampling_tools: bool,
    pub(crate) roots: bool,
}

impl Client {
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        let (version, capabilities) = (context.protocol_version(), context.client_capabilities());
        Self::new(&context.peer, version, &capabilities.unwrap_or_default())
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
        let newest = version.is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        Self {
            peer: peer.clone(),
            can: Can::of(capabilities),
            way: if newest { Way::Rounds } else { Way::Requests },
            tasks: newest && capabilities.supports_tasks(),
            logs: None,
        }
    }
}

/// Whether the client of a request has a model that can be asked (`sampling`).
pub(crate) fn has_model(context: &RequestContext<RoleServer>) -> bool {
    Client::of(context).can.sampling
}

impl Can {
    /// Whether a client that can do this can answer the request.
    #[expect(
        deprecated,
        reason = "sampling and roots are, and clients have them all the same"
    )]
    pub(crate) fn answer(self, request: &InputRequest) -> bool {
        match request {
            InputRequest::Elicitation(request) => match request.params {
                ElicitRequestParams::UrlElicitationParams { .. } => self.url,
                _ => self.form,
            },
            InputRequest::CreateMessage(request) => {
                let params = &request.params;
                let has_tools = params.tools.is_some() || params.tool_choice.is_some();
                self.sampling && (self.sampling_tools || !has_tools)
            }
            InputRequest::ListRoots(_) => self.roots,
            // A kind that is added later.
            _ => false,
        }
    }

    fn of(capabilities: &ClientCapabilities) -> Self {
        let elicitation = capabilities.elicitation.as_ref();
        let url = elicitation.is_some_and(|elicitation| elicitation.url.is_some());
        let (sampling, roots) = (&capabilities.sampling, &capabilities.roots);
        Self {
            // One that names no mode has forms (2025-11-25, "Elicitation",
            // "Capabilities").
            form: elicitation.is_some_and(|elicitation| elicitation.form.is_some() || !url),
            url,
            sampling: sampling.is_some(),
            sampling_tools: sampling
                .as_ref()
                .is_some_and(|sampling| sampling.tools.is_some()),
            roots: roots.is_some(),
        }
    }
}
