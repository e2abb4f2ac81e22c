//! What arrives from a server: answers go to the flights that wait for them, all
//! else to the session.
//!
//! Results are kept as the JSON text the server sent. A result that is parsed
//! into types and printed again costs more than its call, and one malformed
//! member of it would take the rest along.

mod end;
mod whose;

pub(crate) use whose::{Token, Who};

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use callgate_schema::replace_lone_surrogates as mended;
use rmcp::model::ErrorData;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::failure::Failure;
use crate::handshake::{DISCOVER, INITIALIZE};
use crate::incoming::{Incoming, Stream};
use crate::lines::id_of_overlong;
use crate::link::LinkError;
use crate::object::{First, object};
use crate::refusal::error_data;

/// An answer, or why there is none.
pub(crate) type Answer = Result<Box<RawValue>, Failure>;

/// The longest id of a server's request that is answered, in bytes.
const MAX_ID_BYTES: usize = 1_024;
/// How many lines that are no messages are logged.
const LOGGED_JUNK: u64 = 3;
/// The most messages of one batch that are read; the others are as if they had not been sent.
const MAX_BATCH: usize = 1_024;

/// Where a link leaves what arrives.
#[derive(Debug)]
pub(crate) struct Inbox {
    server: Arc<str>,
    max_message_bytes: usize,
    flights: Mutex<Flights>,
    incoming: OnceLock<Weak<dyn Incoming>>,
    lost: watch::Sender<Option<LinkError>>,
    /// Told when something leaves that was on somebody's behalf.
    left: Notify,
    junk: AtomicU64,
}

#[derive(Debug, Default)]
struct Flights {
    waiting: FxHashMap<u64, Slot>,
    last_id: u64,
    /// Why no more are opened, where that is so.
    shut: Option<LinkError>,
    /// Whether those that waited then have ended, too.
    gone: bool,
}

#[derive(Debug, Default)]
struct Slot {
    answer: Option<Answer>,
    waker: Option<Waker>,
    /// Whether its flight is reading right now, and looks here when it has read.
    reads: bool,
    who: Option<Who>,
    /// The id of the task that it is about, if it is about one.
    task: Option<Box<str>>,
    listens: bool,
    sent: bool,
    progress: Option<f64>,
    progressed_at: Option<Instant>,
}

/// A JSON-RPC message, looked at no deeper than needed to see what it is.
#[derive(Debug, Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

impl Inbox {
    /// An empty one. `max_message_bytes` is for messages only; the link holds
    /// the limit.
    pub(crate) fn new(server: Arc<str>, max_message_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            server,
            max_message_bytes,
            flights: Mutex::default(),
            incoming: OnceLock::new(),
            lost: watch::Sender::new(None),
            left: Notify::new(),
            junk: AtomicU64::new(0),
        })
    }

    /// Names who hears what is no answer. Until then, such messages are dropped.
    pub(crate) fn attach(&self, incoming: Weak<dyn Incoming>) {
        // A second one is a mistake of the code; the first stays.
        let _already = self.incoming.set(incoming);
    }

    /// Requests go with another login than before.
    pub(crate) fn login_changed(&self) {
        if let Some(incoming) = self.incoming() {
            incoming.login_changed();
        }
    }

    /// Takes one message. Whatever is no JSON-RPC message is counted and
    /// forgotten.
    pub(crate) fn deliver(&self, message: &[u8]) {
        self.deliver_on(message, None);
    }

    /// [`Inbox::deliver`] of what came on the stream that answers a request.
    pub(crate) fn deliver_on(&self, message: &[u8], stream: Stream) {
        let Ok(text) = std::str::from_utf8(message) else {
            return self.garbled(message);
        };
        // From here on, everybody sees the same text of what the server said.
        let mended = mended(text);
        let text = mended.as_deref().unwrap_or(text);
        if let Some(frame) = parse(text) {
            return self.take(&frame, stream);
        }
        // Revision 2025-03-26 has batches.
        if text.trim_ascii_start().starts_with('[')
            && let Ok(batch) = serde_json::from_str::<First<&RawValue, MAX_BATCH>>(text)
            && batch
                .first
                .iter()
                .any(|message| parse(message.get()).is_some())
        {
            if batch.more {
                tracing::warn!(server = %self.server, read = MAX_BATCH, "a batch is too long");
            }
            for message in batch.first {
                match parse(message.get()) {
                    Some(frame) => self.take(&frame, stream),
                    None => self.note_junk(message.get().as_bytes()),
                }
            }
            return;
        }
        self.note_junk(message);
    }

    /// Takes a message that is not UTF-8. If it answers a request, that one fails: its answer
    /// would be waited for in vain.
    fn garbled(&self, message: &[u8]) {
        let lossy = String::from_utf8_lossy(message);
        let frame = parse(&lossy).filter(|frame| frame.method.is_none());
        let id = frame.and_then(|frame| frame.id?.get().parse().ok());
        match id.filter(|id| self.waits(*id)) {
            Some(id) => {
                tracing::warn!(server = %self.server, id, "an answer is not UTF-8");
                self.failed(id, Failure::Malformed("it is not UTF-8".to_owned()));
            }
            None => self.note_junk(message),
        }
    }

    /// Takes the two ends of a message that was over the limit. Its flight
    /// fails; if it cannot be told which one it was, every one does, since the
    /// right one would wait for ever.
    pub(crate) fn overlong(&self, head: &[u8], tail: &[u8]) {
        let id = {
            let flights = self.flights();
            id_of_overlong(head, tail, |id| flights.waits(id))
        };
        match id {
            Some(id) => self.failed(id, Failure::TooLarge(self.max_message_bytes)),
            None => {
                self.fail_all(|_| Failure::TooLarge(self.max_message_bytes));
                self.end_if_due();
            }
        }
    }

    /// Ends one flight without an answer.
    pub(crate) fn failed(&self, id: u64, failure: Failure) {
        self.complete(id, Err(failure));
    }

    /// The limit that an overlong message is over, in bytes.
    pub(crate) fn max_message_bytes(&self) -> usize {
        self.max_message_bytes
    }

    /// Messages that were none, so far.
    pub(crate) fn junk(&self) -> u64 {
        self.junk.load(Ordering::Relaxed)
    }

    /// Opens a flight and returns its id, which no other request of this
    /// connection has had. One that `listens` is a subscription.
    pub(crate) fn open(&self, who: Option<Who>, listens: bool) -> Result<u64, LinkError> {
        let mut flights = self.flights();
        if let Some(error) = &flights.shut {
            return Err(LinkError {
                sent: false,
                ..error.clone()
            });
        }
        flights.last_id += 1;
        let id = flights.last_id;
        let slot = Slot {
            who,
            listens,
            ..Slot::default()
        };
        flights.waiting.insert(id, slot);
        Ok(id)
    }

    /// Notes that the server may have the request from now on. False if it has ended before
    /// that: it must not be sent then, since whoever hears of it may send it elsewhere.
    #[must_use]
    pub(crate) fn sent(&self, id: u64) -> bool {
        let mut flights = self.flights();
        let slot = flights.waiting.get_mut(&id);
        let waits = slot.filter(|slot| slot.answer.is_none());
        waits.map(|slot| slot.sent = true).is_some()
    }

    /// The answer, or `cx` is woken when it is there.
    pub(crate) fn poll(&self, id: u64, cx: &mut Context<'_>) -> Poll<Answer> {
        self.poll_and(false, id, cx)
    }

    /// Whether there is an answer, which stays; or `cx` is woken when it is there.
    pub(crate) fn poll_answered(&self, id: u64, cx: &mut Context<'_>) -> Poll<()> {
        let mut flights = self.flights();
        match flights.waiting.get_mut(&id) {
            Some(slot) if slot.answer.is_none() => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// [`Inbox::poll`] for a flight that reads next and then polls again: it is
    /// not woken for an answer that it finds itself. A task that is woken while it
    /// runs is run once more, and the runtime wakes another thread for it.
    pub(crate) fn poll_to_read(&self, id: u64, cx: &mut Context<'_>) -> Poll<Answer> {
        self.poll_and(true, id, cx)
    }

    fn poll_and(&self, reads: bool, id: u64, cx: &mut Context<'_>) -> Poll<Answer> {
        let mut flights = self.flights();
        let Some(slot) = flights.waiting.get_mut(&id) else {
            let reason = "the request was forgotten before its answer".to_owned();
            return Poll::Ready(Err(Failure::Malformed(reason)));
        };
        if let Some(answer) = slot.answer.take() {
            let slot = flights.waiting.remove(&id);
            drop(flights);
            self.left(slot.and_then(|slot| slot.who));
            return Poll::Ready(answer);
        }
        slot.reads = reads;
        match &mut slot.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            empty => *empty = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Whether this request waits for its answer.
    pub(crate) fn waits(&self, id: u64) -> bool {
        self.flights().waits(id)
    }

    /// Forgets a flight; true if its answer had not come.
    pub(crate) fn forget(&self, id: u64) -> bool {
        let Some(slot) = self.flights().waiting.remove(&id) else {
            return false;
        };
        self.left(slot.who);
        self.end_if_due();
        slot.answer.is_none()
    }

    /// Wakes one flight that waits for its answer, so that it reads. False if
    /// there is none.
    pub(crate) fn wake_one(&self) -> bool {
        let waker = {
            let flights = self.flights();
            let waiting = flights.waiting.values();
            let mut waiting = waiting.filter(|slot| slot.answer.is_none());
            waiting.find_map(|slot| slot.waker.clone())
        };
        waker.map(Waker::wake).is_some()
    }

    /// Whether this is the id of a subscription that has not ended.
    pub(crate) fn is_listening(&self, id: u64) -> bool {
        let flights = self.flights();
        let slot = flights.waiting.get(&id);
        slot.is_some_and(|slot| slot.listens && slot.answer.is_none())
    }

    fn take(&self, frame: &Frame<'_>, stream: Stream) {
        match (frame.id, &frame.method) {
            (Some(id), Some(method)) if self.is_ours(id, method) => {
                let reason = "it is our own request, sent back, which no MCP server does; check \
                    what is configured for it";
                if let Ok(id) = id.get().parse() {
                    self.failed(id, Failure::Malformed(reason.to_owned()));
                }
            }
            (Some(id), Some(method)) => {
                let id_is_fit = id.get().len() <= MAX_ID_BYTES
                    && id
                        .get()
                        .starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit());
                match self.incoming() {
                    Some(incoming) if id_is_fit => {
                        incoming.request(id, method, frame.params, stream);
                    }
                    _ => tracing::debug!(server = %self.server, "a request that has no answer"),
                }
            }
            (None, Some(method)) => {
                if let Some(incoming) = self.incoming() {
                    incoming.notification(method, frame.params, stream);
                }
            }
            (Some(id), None) => {
                let answer = match (frame.result, frame.error) {
                    (_, Some(error)) => Err(Failure::Refused(error_data(error))),
                    (Some(result), None) => Ok(result.to_owned()),
                    (None, None) => {
                        let reason = "it has neither a result nor an error".to_owned();
                        Err(Failure::Malformed(reason))
                    }
                };
                match id.get().parse() {
                    Ok(id) => self.complete(id, answer),
                    Err(_) => tracing::debug!(server = %self.server, "an answer nobody waits for"),
                }
            }
            (None, None) => {}
        }
    }

    /// Whether a request is one of ours that was sent back. No server asks for these.
    fn is_ours(&self, id: &RawValue, method: &str) -> bool {
        let is_opening = matches!(method, DISCOVER | INITIALIZE);
        is_opening && id.get().parse().is_ok_and(|id| self.waits(id))
    }

    fn complete(&self, id: u64, answer: Answer) {
        let waker = {
            let mut flights = self.flights();
            match flights.waiting.get_mut(&id) {
                Some(slot) if slot.answer.is_none() => {
                    slot.answer = Some(answer);
                    slot.waker.take().filter(|_| !slot.reads)
                }
                _ => {
                    drop(flights);
                    tracing::debug!(server = %self.server, id, "an answer nobody waits for");
                    None
                }
            }
        };
        // Outside of the lock: waking may run anything.
        if let Some(waker) = waker {
            waker.wake();
        }
        self.end_if_due();
    }

    fn incoming(&self) -> Option<Arc<dyn Incoming>> {
        self.incoming.get()?.upgrade()
    }

    fn note_junk(&self, message: &[u8]) {
        if message.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        if self.junk.fetch_add(1, Ordering::Relaxed) < LOGGED_JUNK {
            tracing::warn!(
                server = %self.server,
                bytes = message.len(),
                "what a server sent is no MCP message"
            );
        }
    }

    fn flights(&self) -> MutexGuard<'_, Flights> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flights {
    fn waits(&self, id: u64) -> bool {
        self.waiting
            .get(&id)
            .is_some_and(|slot| slot.answer.is_none())
    }
}

/// A message, if it is one.
fn parse(message: &str) -> Option<Frame<'_>> {
    let mut frame: Frame<'_> = object(message).ok()?;
    // As if it were absent: an error about a request that could not be read.
    frame.id = frame.id.filter(|id| id.get() != "null");
    (frame.id.is_some() || frame.method.is_some()).then_some(frame)
}

/// The error of an answer that names no request, if it is one.
pub(crate) fn nameless_error(message: &[u8]) -> Option<ErrorData> {
    let frame: Frame<'_> = object(std::str::from_utf8(message).ok()?).ok()?;
    let is_nameless = frame.id.is_none_or(|id| id.get() == "null") && frame.method.is_none();
    frame.error.filter(|_| is_nameless).map(error_data)
}

/// Keeps `null` apart from an absent member.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
