//! Streams of events: answers that come as one, and the session's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::ACCEPT;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use reqwest::Response;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::body::Content;
use super::endpoint::Exchange;
use super::events::{Event, Events};
use super::link::{Era, Shared, no_success};
use crate::failure::Failure;
use crate::link::{LinkError, LinkErrorKind};
use callgate_auth::{AuthErrorKind, Prompt};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// How often in a row an answer's stream is taken up again without anything
/// coming of it.
const RESUME_TIMES: u32 = 4;
/// The pause before that if the server names none; doubled each time.
const RESUME_PAUSE: Duration = Duration::from_millis(100);
/// The shortest pause, whatever the server says: it may say 0.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
/// How long a server has to end a stream after its answer, so that the
/// connection can be used again.
const END_PATIENCE: Duration = Duration::from_millis(100);
/// How long the first request of a session waits for the session's own stream.
const LISTEN_PATIENCE: Duration = Duration::from_millis(500);
/// The pauses before the session's own stream is opened again: from the first
/// they double up to the last, as long as nothing comes.
const LISTEN_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// The session's own stream, by which a server speaks without being asked.
#[derive(Debug)]
pub(super) struct Listening {
    begun: AtomicBool,
    /// Once it is open, or known not to be: by this time at the latest it is
    /// not waited for any more.
    settled: watch::Sender<Option<Settled>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settled {
    /// Not yet, and waited for until then.
    Expected(Instant),
    /// It is.
    Known,
}

impl Default for Listening {
    fn default() -> Self {
        Self {
            begun: AtomicBool::new(false),
            settled: watch::Sender::new(None),
        }
    }
}

/// How far a stream is read.
#[derive(Debug, Clone, Copy)]
enum Until {
    /// To the answer to this request, to which all of it belongs.
    Answer(u64),
    /// To the end of such a stream, after the answer.
    EndOf(u64),
    /// To the end of the session's own.
    End,
}

/// Why no more is read of a stream.
enum End {
    /// The answer is there.
    Answered,
    /// The server closed it, or it broke.
    Over(Option<reqwest::Error>),
}

impl Shared {
    /// Opens the session's own stream if nobody has, and waits a little for
    /// the server to take it.
    pub(super) async fn listen(self: &Arc<Self>) {
        let listening = &self.listening;
        if !listening.begun.swap(true, Ordering::Relaxed) {
            let until = Instant::now() + LISTEN_PATIENCE;
            listening
                .settled
                .send_replace(Some(Settled::Expected(until)));
            let shared = Arc::clone(self);
            tokio::spawn(async move {
                shared.ended.run_until_cancelled(shared.hear()).await;
                shared.settle();
            });
        }
        let mut settled = listening.settled.subscribe();
        let expected = *settled.borrow();
        if let Some(Settled::Expected(until)) = expected {
            // A server that keeps its headers back until it has something to
            // say costs this once.
            let known = settled.wait_for(|settled| *settled == Some(Settled::Known));
            drop(timeout_at(until, known).await);
        }
    }

    /// Reads the stream that answers a request, and takes it up again where
    /// the revision and the server allow for it. Once the request is `left`, it is read as
    /// after its answer, which may have come by another stream, and taken up no more.
    pub(super) async fn read_answer(&self, id: u64, response: Response, left: CancellationToken) {
        let mut events = Events::new(self.inbox.max_message_bytes());
        let mut response = Some(response);
        let mut fruitless = 0;
        // Why it broke off, and why it was not taken up again.
        let mut broken = None;
        let mut refused: Option<LinkError> = None;
        loop {
            if let Some(mut stream) = response.take() {
                let before = events.last_id().cloned();
                let until = Until::Answer(id);
                let read = self.read_events(&mut stream, &mut events, until);
                match left.run_until_cancelled(read).await {
                    Some(End::Answered) | None => {
                        let until = Until::EndOf(id);
                        let rest = self.read_events(&mut stream, &mut events, until);
                        let _cut = timeout(END_PATIENCE, rest).await;
                        return;
                    }
                    Some(End::Over(error)) => {
                        broken = error.map(|error| self.endpoint.broken(error, true));
                    }
                }
                // A server that polls gives a new id each time.
                if events.last_id() != before.as_ref() {
                    fruitless = 0;
                }
            }
            fruitless += 1;
            let resumable = self.speaks() != Era::Stateless && fruitless <= RESUME_TIMES;
            let Some(last_id) = events.last_id().filter(|_| resumable) else {
                let mut error = broken.unwrap_or_else(|| LinkError {
                    kind: LinkErrorKind::Unreachable,
                    reason: "the server ended its answer before it was whole".to_owned(),
                    sent: true,
                });
                if let Some(refused) = refused {
                    let why = format!("; it was not taken up again: {}", refused.reason);
                    error.reason.push_str(&why);
                    error.kind = refused.kind;
                }
                return self.inbox.failed(id, Failure::Lost(error));
            };
            let pause = events
                .retry()
                .unwrap_or(RESUME_PAUSE * 2_u32.pow(fruitless - 1));
            let taken_up = left.run_until_cancelled(async {
                sleep(pause.max(SHORTEST_PAUSE)).await;
                self.open(Some(last_id), true, Prompt::Allowed).await
            });
            let Some(opened) = taken_up.await else {
                return;
            };
            match opened {
                Ok(stream) => {
                    response = Some(stream);
                    refused = None;
                    events = events.resumed();
                }
                Err(error) if error.kind == LinkErrorKind::Closed => return,
                Err(error) => {
                    if is_for_good(&error.kind) {
                        fruitless = RESUME_TIMES;
                    }
                    refused = Some(error);
                }
            }
        }
    }

    /// Reads the session's own stream for as long as there is one.
    async fn hear(&self) {
        let mut events = Events::new(self.inbox.max_message_bytes());
        let (first, last) = LISTEN_PAUSES;
        // How many streams in a row ended at once, without a message.
        let mut fruitless: u32 = 0;
        let mut was_open = false;
        let mut accepted = self.endpoint.watch_accepted();
        loop {
            accepted.mark_unchanged();
            let (messages, since) = (events.messages(), Instant::now());
            match self.open(events.last_id(), was_open, Prompt::Never).await {
                Ok(mut stream) => {
                    was_open = true;
                    self.settle();
                    let until = Until::End;
                    self.read_events(&mut stream, &mut events, until).await;
                }
                Err(error) => {
                    self.settle();
                    let is_over = match was_open {
                        // A server that has no such stream says so with a status.
                        false => is_for_good(&error.kind),
                        // It may not have noticed yet that its last one has ended, or want a
                        // login that somebody has yet to make.
                        true => matches!(
                            error.kind,
                            LinkErrorKind::Closed | LinkErrorKind::Status(405)
                        ),
                    };
                    tracing::debug!(server = %self.server, %error, is_over, "no stream");
                    if is_over && wants_another(&error.kind) && accepted.changed().await.is_ok() {
                        continue;
                    }
                    if is_over {
                        return;
                    }
                }
            }
            let was_worth_it = events.messages() > messages || since.elapsed() > first;
            fruitless = if was_worth_it { 0 } else { fruitless + 1 };
            let asked = events.retry().unwrap_or(first).max(SHORTEST_PAUSE);
            // What the server asks for holds, until nothing comes of it.
            let backed_off = first * 2_u32.pow(fruitless.min(10));
            let pause = if fruitless > RESUME_TIMES {
                asked.max(backed_off.min(last))
            } else {
                asked
            };
            sleep(pause).await;
            events = events.resumed();
        }
    }

    /// Opens a stream by GET: the session's own, or one that broke off. `was_open` says
    /// whether the server has had it.
    async fn open(
        &self,
        last_id: Option<&HeaderValue>,
        was_open: bool,
        waits: Prompt,
    ) -> Result<Response, LinkError> {
        let mut headers = self.headers();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_id {
            headers.insert(LAST_EVENT_ID, id.clone());
        }
        let response = self
            .endpoint
            .exchange(Exchange::new(Method::GET, headers, Bytes::new(), waits))
            .await?;
        // A server without such streams may answer 404 as well as 405; of one
        // that has had this stream, 404 says that the session is gone.
        if was_open && let Some(error) = self.session_ended(&response) {
            return Err(error);
        }
        if response.status() == StatusCode::OK && Content::of(&response) == Content::Events {
            return Ok(response);
        }
        if response.status().is_success() {
            return Err(LinkError {
                kind: LinkErrorKind::Status(StatusCode::METHOD_NOT_ALLOWED.as_u16()),
                reason: "it answers a GET with something else than a stream".to_owned(),
                sent: false,
            });
        }
        Err(no_success(&response))
    }

    /// Delivers events until the stream is over, or the answer is there.
    async fn read_events(&self, stream: &mut Response, events: &mut Events, until: Until) -> End {
        let (answer, stream_of) = match until {
            Until::Answer(id) => (Some(id), Some(id)),
            Until::EndOf(id) => (None, Some(id)),
            Until::End => (None, None),
        };
        loop {
            let chunk = match stream.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return End::Over(None),
                Err(error) => return End::Over(Some(error)),
            };
            events.push(&chunk, |event| match (event, answer) {
                (Event::Message(message), _) => self.inbox.deliver_on(&message, stream_of),
                (Event::TooLarge, Some(id)) => {
                    let limit = self.inbox.max_message_bytes();
                    self.inbox.failed(id, Failure::TooLarge(limit));
                }
                (Event::TooLarge, None) => {
                    tracing::warn!(server = %self.server, "a message over the limit is dropped");
                }
            });
            if answer.is_some_and(|id| !self.inbox.waits(id)) {
                return End::Answered;
            }
        }
    }

    fn settle(&self) {
        self.listening.settled.send_replace(Some(Settled::Known));
    }
}

/// Whether what was refused so may be taken with another `Authorization`.
fn wants_another(kind: &LinkErrorKind) -> bool {
    match kind {
        LinkErrorKind::Unauthorized => true,
        LinkErrorKind::Authorization(error) => {
            !matches!(error.kind(), AuthErrorKind::Settings { .. })
        }
        LinkErrorKind::Closed
        | LinkErrorKind::Unreachable
        | LinkErrorKind::Status(_)
        | LinkErrorKind::Changed(_) => false,
    }
}

/// Whether what was refused so will be refused again.
pub(crate) fn is_for_good(kind: &LinkErrorKind) -> bool {
    match kind {
        // Those others say "later": a time-out, a conflict, too early, too many.
        LinkErrorKind::Status(status) => {
            matches!(status, 300..=499) && !matches!(status, 408 | 409 | 425 | 429)
        }
        LinkErrorKind::Closed | LinkErrorKind::Unauthorized => true,
        // Until a person does something; an authorization server or a keyring that
        // fails may be well again.
        LinkErrorKind::Authorization(error) => matches!(
            error.kind(),
            AuthErrorKind::LoginRequired { .. }
                | AuthErrorKind::Declined { .. }
                | AuthErrorKind::InsufficientScope { .. }
                | AuthErrorKind::Settings { .. }
        ),
        LinkErrorKind::Unreachable | LinkErrorKind::Changed(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use callgate_auth::{AuthError, Grant};

    #[test]
    fn what_a_person_has_to_mend_is_not_tried_again() {
        let authorization = |kind| LinkErrorKind::Authorization(AuthError::new("s", kind));
        let reason = || "why".to_owned();
        for kind in [
            LinkErrorKind::Status(404),
            LinkErrorKind::Status(405),
            LinkErrorKind::Closed,
            LinkErrorKind::Unauthorized,
            authorization(AuthErrorKind::LoginRequired { reason: reason() }),
            authorization(AuthErrorKind::Declined { scope: None }),
            authorization(AuthErrorKind::InsufficientScope {
                scope: None,
                grant: Grant::AuthorizationCode,
            }),
            authorization(AuthErrorKind::Settings { reason: reason() }),
        ] {
            assert!(is_for_good(&kind), "{kind:?}");
        }
        for kind in [
            LinkErrorKind::Status(429),
            LinkErrorKind::Status(503),
            LinkErrorKind::Unreachable,
            authorization(AuthErrorKind::Discovery { reason: reason() }),
            authorization(AuthErrorKind::Exchange { reason: reason() }),
            authorization(AuthErrorKind::Renewal { reason: reason() }),
            authorization(AuthErrorKind::Store { reason: reason() }),
        ] {
            assert!(!is_for_good(&kind), "{kind:?}");
        }
    }
}
