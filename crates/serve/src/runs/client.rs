//! The client of a request: its capabilities, and how it is asked.

use callgate::caller::{LogLevel, Offers};
use rmcp::model::{ClientCapabilities, ElicitRequestParams, InputRequest, ProtocolVersion};
use rmcp::service::{Peer, RequestContext, RoleServer};

/// The client of one request.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) peer: Peer<RoleServer>,
    pub(crate) capabilities: Offers,
    pub(crate) asked_by: AskedBy,
    /// The client takes a task for an answer (extension `io.modelcontextprotocol/tasks`).
    pub(crate) tasks: bool,
    /// The lowest level of servers' log messages that the client wants.
    pub(crate) logs: Option<LogLevel>,
}

/// The way a client is asked a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskedBy {
    /// By a request while its own request waits (2025-11-25 and before).
    Requests,
    /// By an answer after which it comes again (2026-07-28, "Multi Round-Trip Requests").
    Answers,
}

impl Client {
    /// The client of a request.
    pub(crate) fn of_request(context: &RequestContext<RoleServer>) -> Self {
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
            capabilities: offers(capabilities),
            asked_by: if newest {
                AskedBy::Answers
            } else {
                AskedBy::Requests
            },
            tasks: newest && capabilities.supports_tasks(),
            logs: None,
        }
    }
}

/// True if the client of a request has a model that can be asked (`sampling`).
pub(crate) fn has_model(context: &RequestContext<RoleServer>) -> bool {
    Client::of_request(context).capabilities.sampling
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
    reason = "sampling and roots are, and clients have them all the same"
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
