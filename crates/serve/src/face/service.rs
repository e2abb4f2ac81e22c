//! One user's gate, runs and options.

use std::sync::Arc;
use std::time::Duration;

use callgate::Gate;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};

use super::Session;
use crate::config::ServeConfig;
use crate::runs::{AnyClient, Outside, PendingGate, Runs};

/// The time that the first requests wait for servers without a known list. Claude Code calls its
/// model without the tools of an MCP server that has not listed them within 2 s of the start of the
/// server's process.
pub(super) const PATIENCE: Duration = Duration::from_millis(1500);

/// Returns the reason while the gate waits for a person to act, as text for the model; then `None`.
/// It is called for each call of a tool.
pub type Waits = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// One user's gate, runs and options: one per process over stdio, one per user over HTTP.
pub(crate) struct Service {
    pub(crate) gate: PendingGate,
    /// Resolves when the gate is ready and its servers have listed their tools, or are slow.
    pub(crate) listed: Shared<BoxFuture<'static, ()>>,
    pub(crate) runs: Arc<Runs>,
    /// Why the gate is not ready yet.
    waits: Option<Waits>,
    pub(crate) options: ServeConfig,
    /// The client, over stdio.
    client: Option<AnyClient>,
}

impl Service {
    pub(crate) fn new(
        gate: BoxFuture<'static, Result<Arc<Gate>, ()>>,
        waits: Option<Waits>,
        options: ServeConfig,
        client: Option<AnyClient>,
        outside: Outside,
    ) -> Arc<Self> {
        let gate = gate.shared();
        let made = gate.clone();
        let listed = async move {
            if let Ok(gate) = made.await {
                gate.view().listed(PATIENCE).await;
            }
        };
        Arc::new(Self {
            runs: Arc::new(Runs::new(options.clone(), outside)),
            gate,
            listed: listed.boxed().shared(),
            waits,
            options,
            client,
        })
    }

    /// The reason why the gate waits for a person, if it does.
    pub(crate) fn waits(&self) -> Option<String> {
        self.waits.as_ref()?()
    }

    /// The handler of one MCP session, or of one stateless request.
    pub(crate) fn session(self: &Arc<Self>) -> Session {
        let client = self.client.as_ref();
        let roots = client.map_or_else(Arc::default, |client| Arc::clone(&client.roots));
        Session::new(Arc::clone(self), roots)
    }
}
