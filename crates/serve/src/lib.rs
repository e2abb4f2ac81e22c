//! Internal crate of Callgate: the MCP face, over stdio and HTTP.
//!
//! [`serve_stdio`] answers MCP on standard input and output until the client leaves. Standard
//! output carries MCP frames only, so nothing here prints.

mod arguments;
pub mod config;
mod face;
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod message;
mod runs;
mod stdio;

use std::sync::Arc;

use callgate::Gate;
use futures::FutureExt as _;

pub use crate::face::Waits;
pub use crate::http::{Identity, MakeGate, MakingGate, serve_http};
pub use crate::runs::{AnyClient, Records};
pub use crate::stdio::ServeError;

use crate::config::ServeConfig;
use crate::face::Service;
use crate::runs::{Answerer, Outside};

/// Serves MCP over standard input and output. `client` is the gate's caller: servers get the
/// folders that the client names. While `waits` returns a reason, the tools for scripts are
/// listed, and each call is an error with that reason. Questions that the client cannot show wait in
/// `records`.
///
/// The gate may still be starting: the handshake is answered immediately, the list of tools when
/// the gate is ready. Returns within a few seconds after the client closes either stream: running
/// scripts have this time to end.
pub async fn serve_stdio(
    gate: impl Future<Output = Arc<Gate>> + Send + 'static,
    waits: Option<Waits>,
    client: AnyClient,
    options: ServeConfig,
    records: Records,
) -> Result<(), ServeError> {
    let outside = Outside {
        records,
        by: Some(Answerer::Terminal),
        user: String::new(),
    };
    let service = Service::new(gate.map(Ok).boxed(), waits, options, Some(client), outside);
    stdio::serve(&service, tokio::io::stdin(), tokio::io::stdout()).await
}
