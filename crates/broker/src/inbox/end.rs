//! The end of a connection, at once or with the last answer that it may still bring.

use std::task::Waker;

use tokio::sync::watch;

use super::{Flights, Inbox, Slot};
use crate::failure::Failure;
use crate::link::LinkError;

impl Inbox {
    /// The connection is gone: every flight ends, and no new one starts. Nobody is asked any
    /// more what the server wants to know.
    pub(crate) fn lost(&self, error: LinkError) {
        {
            let mut flights = self.flights();
            if flights.gone {
                return;
            }
            flights.gone = true;
            flights.shut = Some(error.clone());
        }
        self.fail_all(|slot| {
            Failure::Lost(LinkError {
                sent: slot.sent,
                ..error.clone()
            })
        });
        self.lost.send_replace(Some(error));
        if let Some(incoming) = self.incoming() {
            incoming.lost();
        }
    }

    /// The server takes no more requests and may well answer those that it has: no new
    /// flight starts, and the connection is gone when none of them waits any more.
    pub(crate) fn shut(&self, error: LinkError) {
        self.flights().shut.get_or_insert(error);
        self.end_if_due();
    }

    /// Whether new flights start.
    pub(crate) fn is_open(&self) -> bool {
        self.flights().shut.is_none()
    }

    /// Whether, and why, the connection is gone; changes once.
    pub(crate) fn watch_lost(&self) -> watch::Receiver<Option<LinkError>> {
        self.lost.subscribe()
    }

    /// Ends a connection that brings no more answers.
    pub(super) fn end_if_due(&self) {
        let due = self.flights().due();
        if let Some(error) = due {
            self.lost(error);
        }
    }

    pub(super) fn fail_all(&self, failure: impl Fn(&Slot) -> Failure) {
        let mut wakers = Vec::new();
        for slot in self.flights().waiting.values_mut() {
            if slot.answer.is_none() {
                slot.answer = Some(Err(failure(slot)));
                wakers.extend(slot.waker.take());
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Flights {
    /// Why the connection is to be gone now. A subscription is no reason to keep it.
    fn due(&self) -> Option<LinkError> {
        let shut = self.shut.as_ref().filter(|_| !self.gone)?;
        let mut waiting = self.waiting.values();
        let any = waiting.any(|slot| slot.sent && !slot.listens && slot.answer.is_none());
        (!any).then(|| shut.clone())
    }
}
