//! The caller at the terminal: a person fills in forms and opens pages. There is no model, so
//! sampling is declined; folders come from the configuration.

use std::sync::Arc;

use callgate::{
    Caller, Refusal,
    caller::{Elicit, Offers, Opened},
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
}

impl Caller for TerminalCaller {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.form = self.attended;
        offers.url = self.attended;
        offers
    }

    fn elicit<'a>(&'a self, request: Elicit<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async move {
            if !self.attended {
                return Err(Refusal::Unsupported);
            }
            match Conversation::begin(&self.progress.lines()).await {
                Ok(mut conversation) => elicit::answer(&mut conversation, request).await,
                Err(error) => {
                    tracing::debug!(%error, "the terminal is gone");
                    Err(Refusal::Cancelled)
                }
            }
        })
    }

    fn back_from<'a>(&'a self, opened: Opened<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            match Conversation::begin(&self.progress.lines()).await {
                Ok(mut conversation) => elicit::back_from(&mut conversation, opened).await,
                Err(error) => {
                    tracing::debug!(%error, "the terminal is gone");
                    Err(Refusal::Cancelled)
                }
            }
        })
    }

    fn progress(&self, progress: callgate::caller::Progress<'_>) {
        self.progress.on_progress(progress);
    }
}
