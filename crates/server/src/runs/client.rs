//! What the client of a request can do for a run, and how it is reached.

use rmcp::model::{ClientCapabilities, ProtocolVersion};
use rmcp::service::{Peer, RequestContext, RoleServer};

/// The client of one request.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) peer: Peer<RoleServer>,
    pub(crate) can: Can,
    pub(crate) way: Way,
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
        let newest = context
            .protocol_version()
            .is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        Self {
            peer: context.peer.clone(),
            can: context
                .client_capabilities()
                .map(|capabilities| Can::of(&capabilities))
                .unwrap_or_default(),
            way: if newest { Way::Rounds } else { Way::Requests },
        }
    }
}

impl Can {
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
