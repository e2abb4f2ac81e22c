//! A run under way, carried from the request that began it to the one that gets
//! its report.

use callgate::RunReport;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{RequestContext, RoleServer};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::desk::{Drawer, Wish};

/// A run under way. Dropping it cancels the run.
#[derive(Debug)]
pub(crate) struct Carried {
    /// Tells it from other runs.
    pub(crate) id: u64,
    /// Questions that were put into answers so far.
    pub(crate) questions: u64,
    report: JoinHandle<RunReport>,
    drawer: Drawer,
    /// Times that the client was told how far it is.
    told: u32,
    cancel: CancellationToken,
}

impl Drop for Carried {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Until when a run was carried.
pub(crate) enum Carry {
    /// To its end.
    Ended(Box<RunReport>),
    /// Until it wants something of its client.
    Wants(Vec<Wish>),
    /// The task of the run is gone.
    Lost,
}

impl Carried {
    pub(crate) fn new(
        id: u64,
        report: JoinHandle<RunReport>,
        drawer: Drawer,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            id,
            questions: 0,
            report,
            drawer,
            told: 0,
            cancel,
        }
    }

    /// Waits for the run in a request, which is told how far it is and whose
    /// cancelling cancels it.
    pub(crate) async fn carry(&mut self, context: &RequestContext<RoleServer>) -> Carry {
        let token = context.meta.get_progress_token();
        loop {
            tokio::select! {
                biased;
                ended = &mut self.report => {
                    // What was told before the end is told before the answer.
                    while let Ok(line) = self.drawer.news.try_recv() {
                        self.pass(context, token.as_ref(), line).await;
                    }
                    return ended.map_or(Carry::Lost, |report| Carry::Ended(Box::new(report)));
                }
                Some(wish) = self.drawer.wishes.recv() => {
                    let mut wishes = vec![wish];
                    while let Ok(wish) = self.drawer.wishes.try_recv() {
                        wishes.push(wish);
                    }
                    // What was cancelled meanwhile is not asked for.
                    wishes.retain(|wish| !wish.answer.is_closed());
                    if !wishes.is_empty() {
                        return Carry::Wants(wishes);
                    }
                }
                Some(line) = self.drawer.news.recv() => {
                    self.pass(context, token.as_ref(), line).await;
                }
                () = context.ct.cancelled(), if !self.cancel.is_cancelled() => {
                    self.cancel.cancel();
                }
            }
        }
    }

    /// Progress of a run is the number of news of it: those of its calls have
    /// units of their own, and what is told must increase.
    async fn pass(
        &mut self,
        context: &RequestContext<RoleServer>,
        token: Option<&ProgressToken>,
        line: String,
    ) {
        let Some(token) = token.cloned() else {
            return;
        };
        self.told = self.told.saturating_add(1);
        let news = ProgressNotificationParam::new(token, f64::from(self.told)).with_message(line);
        // A client that is gone shows elsewhere.
        let _gone = context.peer.notify_progress(news).await;
    }
}
