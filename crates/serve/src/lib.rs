//! Internal crate of Callgate: the MCP face, `run_script` over stdio and HTTP.
//!
//! [`serve_stdio`] answers MCP on standard input and output until the client
//! goes away. Standard output carries MCP frames only, so nothing here prints.

mod arguments;
mod envelope;
mod face;
mod http;
mod options;
mod rest;
mod runs;
mod service;
mod stdio;
mod unanswered;

use std::sync::Arc;

use callgate::Gate;
use futures::FutureExt as _;

pub use crate::http::{HttpError, Identity, MakeGate, serve_http};
pub use crate::options::ServeOptions;
pub use crate::runs::{AnyClient, OneClient};

use crate::service::Service;

/// Why serving ended other than by the client going away.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The client could not be given a session.
    #[error("the MCP handshake failed: {0}")]
    Handshake(String),
    /// The system gives no random bytes, for the seals of parked runs.
    #[error("no random bytes can be had: {0}")]
    NoRandomBytes(std::io::Error),
    /// The task that serves the connection ended abnormally.
    #[error("the MCP connection ended abnormally: {0}")]
    Connection(String),
}

/// Serves `run_script` over standard input and output, for a gate that may
/// still be in the making. `client` is to be its caller: what the client names as folders,
/// servers are told by it.
///
/// A client's handshake is answered at once, and its list of tools once there
/// is a gate: a slow server behind the gate must not look like a slow Callgate.
/// The tool's description carries the declarations of the gate's tools; it is
/// written once, so what the client was shown stays true for the session.
/// Returns when the client closes its end, or takes no answers any more, in bounded
/// time: scripts that still run then have a moment to end.
///
/// # Errors
///
/// [`ServeError::Handshake`] if the client does not complete one,
/// [`ServeError::Connection`] if the connection's task fails, and
/// [`ServeError::NoRandomBytes`] if the system has none.
pub async fn serve_stdio(
    gate: impl Future<Output = Arc<Gate>> + Send + 'static,
    client: OneClient,
    options: ServeOptions,
) -> Result<(), ServeError> {
    let service = Service::new(gate.boxed(), options, Some(client));
    let service = service.map_err(ServeError::NoRandomBytes)?;
    stdio::serve(&service, tokio::io::stdin(), tokio::io::stdout()).await
}
