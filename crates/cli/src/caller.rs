//! The caller at the terminal: a person fills in forms and opens pages. There is no model, so
//! sampling is declined; folders come from the configuration.

use std::sync::Arc;

use callgate::{
    Caller, Refusal,
    caller::{Offers, Opened, Wanted, WantedKind},
};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::elicit;
use crate::progress::Progress;
use crate::terminal::{self, Conversation};

/// The caller of commands that call tools.
pub struct TerminalCaller {
    progress: Arc<Progress>,
    attended: bool,
}

impl TerminalCaller {
    /// A caller that shows progress, and asks only at a terminal.
    pub fn new(progress: Arc<Progress>) -> Self {
        Self {
            progress,
            attended: terminal::is_attended(),
        }
    }

    async fn conversation(&self) -> Result<Conversation, Refusal> {
        let begun = Conversation::begin(&self.progress.lines()).await;
        begun.map_err(|error| {
            tracing::debug!(%error, "the terminal is gone");
            Refusal::Cancelled
        })
    }
}

impl Caller for TerminalCaller {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.form = self.attended;
        offers.url = self.attended;
        offers
    }

    fn answer<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async move {
            if wanted.kind != WantedKind::Elicit || !self.attended {
                return Err(Refusal::Unsupported);
            }
            let mut conversation = self.conversation().await?;
            elicit::answer(&mut conversation, wanted).await
        })
    }

    fn back_from<'a>(&'a self, opened: Opened<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            let mut conversation = self.conversation().await?;
            elicit::back_from(&mut conversation, opened).await
        })
    }

    fn progress(&self, progress: callgate::caller::Progress<'_>) {
        self.progress.on_progress(progress);
    }
}
