//! The caller at the terminal: a person who fills in forms and opens pages. Sampling is declined,
//! because there is no model. Folders (`roots`) come from the configuration.

use callgate::faces::{Caller, Offers, Opened, Refusal, Wanted, WantedKind};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::terminal;
use crate::{elicit, progress};

/// Shows progress, and asks the person if there is a terminal.
pub struct TerminalCaller {
    attended: bool,
}

impl TerminalCaller {
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

    fn progress(&self, progress: callgate::faces::Progress<'_>) {
        progress::on_progress(progress);
    }
}
