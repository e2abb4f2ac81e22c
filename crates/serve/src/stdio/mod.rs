//! MCP over standard input and output: a line is a message.
//!
//! The transport is our own for what rmcp's does not do: every request that cannot be
//! served is answered, over stdio as over HTTP, and the end comes in bounded time,
//! whichever end of the client's goes away and whatever it takes of its answers.

mod input;
mod output;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetExtensions as _,
    JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{RoleServer, ServerInitializeError};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use self::input::{Line, Lines};
use self::output::Output;
use crate::ServeError;
use crate::envelope::{Envelope, Malformed, NOT_ITS_FORM, envelope};
use crate::face;
use crate::runs::Roots;
use crate::service::Service;
use crate::unanswered::{Asked, Unanswered};

/// The most bytes of a line.
const MAX_LINE: usize = 16 << 20;

/// The most bytes of memory that answers take which a client leaves untaken.
const MAX_UNTAKEN: usize = 256 << 20;

/// How long answers may take to be taken when the client has left, counted from then.
const LEAVING: Duration = Duration::from_secs(5);

/// What they have at least, counted from when there are no more.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves one client until it goes away, which either end of it tells.
pub(crate) async fn serve(
    service: &Arc<Service>,
    from: impl AsyncRead + Send + Unpin + 'static,
    to: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), ServeError> {
    let (output, written) = Output::new(to, MAX_UNTAKEN);
    let left = Arc::default();
    let session = service.session();
    let roots = Arc::clone(&session.standing.roots);
    let transport = Stdio::new(from, output, roots, Arc::clone(&left));
    let served = match session.serve(transport).await {
        Ok(session) => match session.waiting().await {
            Ok(_quit) => Ok(()),
            Err(error) => Err(ServeError::Connection(error.to_string())),
        },
        Err(error) => not_begun(error),
    };
    service.end().await;
    let now = Instant::now();
    let left = *left.get_or_init(|| now);
    written.wait((left + LEAVING).max(now + LAST_WORDS)).await;
    served
}

fn not_begun(error: ServerInitializeError) -> Result<(), ServeError> {
    match error {
        ServerInitializeError::InitializeFailed(error) => {
            Err(ServeError::Handshake(error.message.into_owned()))
        }
        // A client that goes away before it says anything wanted nothing.
        _ => Ok(()),
    }
}

/// How the client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Era {
    /// It has said nothing that would tell.
    Open,
    /// It has begun a session (2025-11-25 and before).
    Session,
    /// Its requests are on their own (2026-07-28).
    Single,
}

/// The transport.
struct Stdio<R> {
    lines: Lines<R>,
    output: Output,
    era: Era,
    /// Requests that were handed on, and not answered or cancelled since.
    asked: HashMap<RequestId, Arc<Asked>>,
    unanswered: Unanswered,
    roots: Arc<Roots>,
    /// When the client went away.
    left: Arc<OnceLock<Instant>>,
}

impl<R: AsyncRead + Send + Unpin> Stdio<R> {
    fn new(from: R, output: Output, roots: Arc<Roots>, left: Arc<OnceLock<Instant>>) -> Self {
        Self {
            lines: Lines::new(from, MAX_LINE),
            output,
            era: Era::Open,
            asked: HashMap::new(),
            unanswered: Unanswered::default(),
            roots,
            left,
        }
    }

    /// The message that a line is, if there is something to do about it.
    fn message(&mut self, line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Malformed> {
        let envelope = envelope("the line", line)?;
        let message = match serde_json::from_slice(line) {
            Ok(message) => message,
            Err(error) => match misfit(envelope, &error)? {
                Some(message) => message,
                None => return Ok(None),
            },
        };
        match message {
            JsonRpcMessage::Request(mut request) => {
                let id = request.id.clone();
                let value = id.clone().into_json_value();
                if let ClientRequest::CustomRequest(unread) = &request.request
                    && unread.method == "initialize"
                    && let Some(misfit) = face::misfit(&unread.method, unread.params.as_ref())
                {
                    return Err(Malformed::unfit(misfit).to(Some(value)));
                }
                if self.era == Era::Single
                    && matches!(request.request, ClientRequest::InitializeRequest(_))
                {
                    return Err(Malformed::new(
                        "there is no session to initialize: this client has begun with requests \
                         of 2026-07-28; go on with these, or start callgate anew",
                    )
                    .to(Some(value)));
                }
                let asked = Arc::new(self.unanswered.ask("", &value)?);
                // Whoever works for a request that was cancelled may not be done yet.
                request.request.extensions_mut().insert(Arc::clone(&asked));
                self.asked.insert(id, asked);
                Ok(Some(JsonRpcMessage::Request(request)))
            }
            // There is nothing yet that it could be about.
            _ if self.era == Era::Open => {
                tracing::debug!("a message before the first request was ignored");
                Ok(None)
            }
            JsonRpcMessage::Notification(notification) => {
                match &notification.notification {
                    ClientNotification::CancelledNotification(cancelled) => {
                        if let Some(id) = &cancelled.params.request_id {
                            // It gets no answer any more.
                            self.asked.remove(id);
                        }
                    }
                    // What comes after it is of the folders that there are now.
                    ClientNotification::RootsListChangedNotification(_) => self.roots.changed(),
                    _ => {}
                }
                Ok(Some(JsonRpcMessage::Notification(notification)))
            }
            answer => Ok(Some(answer)),
        }
    }

    fn refuse(&self, malformed: &Malformed) {
        tracing::warn!(reason = %malformed.message, "a message of the client was refused");
        // Where it cannot be written, that shows.
        let _answered = self.output.refuse(malformed);
    }

    fn leave<T>(&self) -> Option<T> {
        self.left.get_or_init(Instant::now);
        None
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for Stdio<R> {
    type Error = io::Error;

    /// What is sent to the client. Answers are not waited for: what is done when they
    /// are sent is done whether or not the client takes them.
    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let is_answer = match &message {
            JsonRpcMessage::Response(response) => {
                self.asked.remove(&response.id);
                if let ServerResult::InitializeResult(_) = response.result {
                    self.era = Era::Session;
                }
                true
            }
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.asked.remove(id);
                }
                true
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => false,
        };
        let written = self.output.send(&message);
        async move {
            match is_answer {
                true => written.map(drop),
                false => written?.wait().await,
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        // Until a client has chosen, requests are answered one by one; the first that is
        // not has chosen.
        if self.era == Era::Open && !self.asked.is_empty() {
            self.era = Era::Single;
        }
        loop {
            let line = tokio::select! {
                line = self.lines.next() => line,
                () = self.output.broken() => {
                    tracing::warn!("the client takes no answers any more: it is gone");
                    return self.leave();
                }
            };
            let message = match line {
                Line::Whole(line) => self.message(&line),
                Line::TooLong(id) => Err(Malformed::new(format!(
                    "the message has more than {MAX_LINE} bytes"
                ))
                .to(id)),
                Line::End => return self.leave(),
            };
            match message {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(malformed) => self.refuse(&malformed),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.close();
        Ok(())
    }
}

/// What is made of a message that does not have the form of its method: a request is
/// refused, an answer is an error to whoever waits for it, and the rest is nothing.
fn misfit(
    envelope: Envelope,
    error: &serde_json::Error,
) -> Result<Option<ClientJsonRpcMessage>, Malformed> {
    let why = match error.is_data() {
        true => NOT_ITS_FORM.to_owned(),
        // It is JSON, so this is what is left.
        false => format!(
            "the message has half a surrogate pair in a text, or a number that is out of range \
             (column {})",
            error.column()
        ),
    };
    match (envelope.method, envelope.id) {
        (Some(_), Some(id)) => Err(Malformed::new(why).to(Some(id))),
        (None, Some(id)) => {
            tracing::warn!(reason = why, "an answer of the client was not understood");
            let id = request_id(&id);
            Ok(id.map(|id| JsonRpcMessage::error(ErrorData::invalid_request(why, None), Some(id))))
        }
        (_, None) => {
            tracing::warn!(reason = why, "a message of the client was ignored");
            Ok(None)
        }
    }
}

fn request_id(id: &Value) -> Option<RequestId> {
    serde_json::from_value(id.clone()).ok()
}
