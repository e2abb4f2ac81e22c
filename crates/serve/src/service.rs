//! Everything behind the face that is one user's.

use std::sync::Arc;

use callgate::Gate;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};

use crate::face::{Arrays, Session};
use crate::options::ServeOptions;
use crate::runs::{OneClient, Runs, Standing};

/// A gate that may still be in the making.
pub(crate) type ComingGate = Shared<BoxFuture<'static, Arc<Gate>>>;

/// Everything behind the face that is one user's: the gate, the runs, the
/// options. One per process over stdio; one per user over HTTP.
pub(crate) struct Service {
    pub(crate) gate: ComingGate,
    pub(crate) runs: Arc<Runs>,
    pub(crate) options: ServeOptions,
    /// What clients without sessions see.
    pub(crate) arrays: Arrays,
    /// The client, if there is but one.
    client: Option<OneClient>,
}

impl Service {
    /// # Errors
    ///
    /// If the system gives no random bytes.
    pub(crate) fn new(
        gate: BoxFuture<'static, Arc<Gate>>,
        options: ServeOptions,
        client: Option<OneClient>,
    ) -> std::io::Result<Arc<Self>> {
        let gate = gate.shared();
        let runs = Arc::new(Runs::new(gate.clone(), options.clone())?);
        Ok(Arc::new(Self {
            gate,
            runs,
            options,
            arrays: Arrays::default(),
            client,
        }))
    }

    /// The handler of one MCP session, or of one request where there are none.
    pub(crate) fn session(self: &Arc<Self>) -> Session {
        let client = self.client.as_ref();
        let roots = client.map_or_else(Arc::default, |client| Arc::clone(&client.roots));
        Session::new(Arc::clone(self), Standing::new(roots))
    }

    /// Whether a run goes on, or can still be asked for.
    pub(crate) fn is_busy(&self) -> bool {
        self.runs.is_busy()
    }

    /// Ends all runs, and waits a moment for it.
    pub(crate) async fn end(&self) {
        self.runs.end().await;
    }
}
