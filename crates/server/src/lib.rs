//! Internal crate of Callgate: the MCP face, `run_script` over stdio and HTTP.
//!
//! [`serve_stdio`] answers MCP on standard input and output until the client
//! goes away. Standard output carries MCP frames only, so nothing here prints.

mod arguments;
mod face;
mod http;
mod options;
mod rest;
mod runs;
mod service;

use std::sync::Arc;

use callgate::Gate;
use futures::FutureExt as _;
use rmcp::ServiceExt as _;

pub use crate::http::{HttpError, Identity, MakeGate, serve_http};
pub use crate::options::ServeOptions;
pub use crate::runs::AnyClient;

use crate::service::Service;

/// Why serving ended other than by the client going away.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The client's first messages were no MCP handshake.
    #[error("the MCP handshake failed: {0}; the client must speak MCP over stdio")]
    Handshake(String),
    /// The system gives no random bytes, for the seals of parked runs.
    #[error("no random bytes can be had: {0}")]
    NoRandomBytes(std::io::Error),
    /// The task that serves the connection ended abnormally.
    #[error("the MCP connection ended abnormally: {0}")]
    Connection(String),
}

/// Serves `run_script` over standard input and output, for a gate that may
/// still be in the making.
///
/// A client's handshake is answered at once, and its list of tools once there
/// is a gate: a slow server behind the gate must not look like a slow Callgate.
/// The tool's description carries the declarations of the gate's tools; it is
/// written once, so what the client was shown stays true for the session.
/// Returns when the client closes its end.
///
/// # Errors
///
/// [`ServeError::Handshake`] if the client does not complete one,
/// [`ServeError::Connection`] if the connection's task fails, and
/// [`ServeError::NoRandomBytes`] if the system has none.
pub async fn serve_stdio(
    gate: impl Future<Output = Arc<Gate>> + Send + 'static,
    options: ServeOptions,
) -> Result<(), ServeError> {
    let service = Service::new(gate.boxed(), options).map_err(ServeError::NoRandomBytes)?;
    let session = match service.session().serve(rmcp::transport::stdio()).await {
        Ok(session) => session,
        // A client that goes away before it says anything wanted nothing.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(ServeError::Handshake(error.to_string())),
    };
    let ended = session.waiting().await;
    service.end().await;
    ended.map_err(|error| ServeError::Connection(error.to_string()))?;
    Ok(())
}
