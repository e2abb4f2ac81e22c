//! On whose behalf requests are in the air: who hears of progress, and who is
//! asked what the server asks.

use std::pin::pin;
use std::sync::Arc;

use tokio::time::Instant;

use super::Inbox;
use crate::caller::Caller;
use crate::incoming::Stream;
use crate::link::LinkError;

/// On whose behalf a request is made.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) caller: Arc<dyn Caller>,
    pub(crate) tool: Arc<str>,
}

/// A progress token that outlasts the request it is sent with: the server goes on
/// with the call in a task. Until this is dropped, what it tells and asks for the
/// task is for whom the call is made.
#[derive(Debug)]
pub(crate) struct Token {
    inbox: Arc<Inbox>,
    id: u64,
}

impl Token {
    /// One for a call of theirs.
    pub(crate) fn new(inbox: &Arc<Inbox>, who: Who) -> Result<Self, LinkError> {
        Ok(Self {
            id: inbox.open(Some(who), false)?,
            inbox: Arc::clone(inbox),
        })
    }

    /// The token. No request has it as its id.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Says which task it is about.
    pub(crate) fn is_of(&self, task: &str) {
        if let Some(slot) = self.inbox.flights().waiting.get_mut(&self.id) {
            slot.task = Some(task.into());
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.inbox.forget(self.id);
    }
}

impl Inbox {
    /// Notes a sign of work on a request, and says who is to hear of it: nobody
    /// if the server does not count up, as it must.
    pub(crate) fn progressed(&self, token: u64, progress: f64) -> Option<Who> {
        let mut flights = self.flights();
        let slot = flights.waiting.get_mut(&token)?;
        slot.progressed_at = Some(Instant::now());
        if slot.progress.is_some_and(|before| progress <= before) {
            return None;
        }
        slot.progress = Some(progress);
        slot.who.clone()
    }

    /// When the last sign of work came.
    pub(crate) fn progressed_at(&self, token: u64) -> Option<Instant> {
        self.flights().waiting.get(&token)?.progressed_at
    }

    /// On whose behalf the call is made that has this task, or the request that has
    /// this stream. Without either, on whose behalf those in flight are, if it is one
    /// and the same for all; the tool, if it is one.
    pub(crate) fn caller(
        &self,
        task: Option<&str>,
        stream: Stream,
    ) -> (Option<Arc<dyn Caller>>, Option<Arc<str>>) {
        let flights = self.flights();
        let of_task = task.and_then(|task| {
            let mut slots = flights.waiting.values();
            slots.find(|slot| slot.task.as_deref() == Some(task))
        });
        let of_stream = || stream.map(|id| flights.waiting.get(&id));
        if let Some(slot) = of_task.map(Some).or_else(of_stream) {
            let who = slot.and_then(|slot| slot.who.as_ref());
            return who
                .map(|who| (Arc::clone(&who.caller), Arc::clone(&who.tool)))
                .unzip();
        }
        let mut all = flights
            .waiting
            .values()
            .filter_map(|slot| slot.who.as_ref());
        let Some(first) = all.next() else {
            return (None, None);
        };
        let mut tool = Some(Arc::clone(&first.tool));
        for who in all {
            if !Arc::ptr_eq(&who.caller, &first.caller) {
                return (None, None);
            }
            tool = tool.filter(|tool| *tool == who.tool);
        }
        (Some(Arc::clone(&first.caller)), tool)
    }

    /// Waits until nothing in flight is on behalf of this caller.
    pub(crate) async fn gone(&self, caller: &Arc<dyn Caller>) {
        let mut left = pin!(self.left.notified());
        loop {
            // From here on nobody's leaving is missed.
            left.as_mut().enable();
            if !self.is_for(caller) {
                return;
            }
            left.as_mut().await;
            left.set(self.left.notified());
        }
    }

    fn is_for(&self, caller: &Arc<dyn Caller>) -> bool {
        let flights = self.flights();
        let mut all = flights
            .waiting
            .values()
            .filter_map(|slot| slot.who.as_ref());
        all.any(|who| Arc::ptr_eq(&who.caller, caller))
    }

    /// Whoever this request is made for does not wait for it any more. Somebody else does.
    pub(crate) fn is_nobodys(&self, id: u64) {
        let mut flights = self.flights();
        let slot = flights.waiting.get_mut(&id);
        let who = slot.and_then(|slot| slot.who.take());
        drop(flights);
        self.left(who);
    }

    /// Something has left that was on their behalf, if it was on somebody's.
    pub(super) fn left(&self, who: Option<Who>) {
        if who.is_some() {
            self.left.notify_waiters();
        }
    }
}
