//! The caller at the terminal: a person fills in forms and opens pages. There is no model, so
//! sampling is declined; folders come from the configuration.

use callgate::{
    Caller, Refusal,
    caller::{Offers, Opened, Wanted, WantedKind},
};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::terminal;
use crate::{elicit, progress};

/// The caller of commands that call tools.
pub struct TerminalCaller {
    attended: bool,
}

impl TerminalCaller {
    /// A caller that shows progress, and asks only at a terminal.
    pub fn new() -> Self {
        let attended = terminal::is_attended();
        Self { attended }
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
            elicit::answer(wanted).await
        })
    }

    fn back_from<'a>(&'a self, opened: Opened<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(elicit::back_from(opened))
    }

    fn progress(&self, progress: callgate::caller::Progress<'_>) {
        progress::on_progress(progress);
    }
}
