//! MCP over a child's standard streams.
//!
//! The transport is our own and not rmcp's, for four reasons: a line that is no
//! JSON must not end the connection, a line has a length limit, results are
//! kept as text (see [`crate::results`]), and the handshake needs the raw
//! stream to find out what the server speaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId, ServerJsonRpcMessage, ServerResult};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::BufReader;
use tokio::process::{ChildStdin, ChildStdout};

use crate::lines::{Line, Lines, id_of_overlong};
use crate::results::{Answer, Frame, Results};
use crate::writer::{Closed, Writer};

/// Both directions of a child's streams.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) lines: Lines<BufReader<ChildStdout>>,
    pub(crate) writer: Arc<Writer>,
    pub(crate) junk: Arc<AtomicU64>,
    max_message_bytes: usize,
}

impl Streams {
    pub(crate) fn new(stdin: ChildStdin, stdout: ChildStdout, max_message_bytes: usize) -> Self {
        let stdout = BufReader::with_capacity(64 << 10, stdout);
        Self {
            lines: Lines::new(stdout, max_message_bytes),
            writer: Arc::new(Writer::new(stdin)),
            junk: Arc::default(),
            max_message_bytes,
        }
    }
}

/// The streams after the handshake, as rmcp wants them.
#[derive(Debug)]
pub(crate) struct StdioTransport {
    server: Arc<str>,
    /// None once it is closed.
    lines: Option<Lines<BufReader<ChildStdout>>>,
    writer: Option<Arc<Writer>>,
    junk: Arc<AtomicU64>,
    max_message_bytes: usize,
    results: Arc<Results>,
    /// Messages for rmcp that are ready before the next line is read.
    ready: Vec<ServerJsonRpcMessage>,
}

impl StdioTransport {
    pub(crate) fn new(server: Arc<str>, streams: Streams, results: Arc<Results>) -> Self {
        let Streams {
            lines,
            writer,
            junk,
            max_message_bytes,
        } = streams;
        Self {
            server,
            lines: Some(lines),
            writer: Some(writer),
            junk,
            max_message_bytes,
            results,
            ready: Vec::new(),
        }
    }

    /// What rmcp is to know of a line; `None` if nothing.
    fn interpret(&self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let Some(frame) = frame(line) else {
            self.note_junk(line);
            return None;
        };
        let (Some(id), None) = (&frame.id, &frame.method) else {
            return self.typed(&frame, line);
        };
        let id = id.clone();
        if !self.results.expects(&id) {
            tracing::debug!(server = %self.server, %id, "an answer nobody waits for");
            return None;
        }
        if let Some(error) = frame.error {
            return Some(ServerJsonRpcMessage::error(error_data(error), Some(id)));
        }
        let answer = match frame.result {
            Some(result) => Answer::Result(result.to_owned()),
            None => Answer::Malformed("it has neither a result nor an error".to_owned()),
        };
        self.results.arrived(&id, answer);
        Some(woken(id))
    }

    /// A request or notification of the server's.
    fn typed(&self, frame: &Frame<'_>, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        // Answers wait in memory for the server to read them, so a server that
        // asks and does not read is not answered.
        if frame.id.is_some()
            && self
                .writer
                .as_ref()
                .is_none_or(|writer| writer.is_congested())
        {
            tracing::debug!(server = %self.server, "a server asks and does not read the answers");
            return None;
        }
        match serde_json::from_slice(line) {
            Ok(message) => Some(message),
            Err(error) => {
                tracing::debug!(server = %self.server, %error, "a message that is not understood");
                None
            }
        }
    }

    fn note_junk(&self, line: &[u8]) {
        note_junk(&self.server, &self.junk, line);
    }

    fn overlong(&self, head: &[u8], tail: &[u8]) -> Vec<ServerJsonRpcMessage> {
        let number = |id: u64| RequestId::Number(i64::try_from(id).unwrap_or(-1));
        let wanted = |id| self.results.expects(&number(id));
        let ids = match id_of_overlong(head, tail, wanted) {
            Some(id) => vec![number(id)],
            // Whose answer it was cannot be told, so nobody may wait for it.
            None => self.results.unanswered(),
        };
        for id in &ids {
            self.results
                .arrived(id, Answer::TooLarge(self.max_message_bytes));
        }
        ids.into_iter().map(woken).collect()
    }
}

/// The message that wakes whoever waits for `id`.
pub(crate) fn woken(id: RequestId) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::response(ServerResult::empty(()), id)
}

/// A line as a JSON-RPC message, if it is one.
pub(crate) fn frame(line: &[u8]) -> Option<Frame<'_>> {
    let frame: Frame<'_> = serde_json::from_slice(line).ok()?;
    (frame.id.is_some() || frame.method.is_some()).then_some(frame)
}

/// Counts a line that is no message, and logs the first few.
pub(crate) fn note_junk(server: &str, junk: &AtomicU64, line: &[u8]) {
    if line.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    if junk.fetch_add(1, Ordering::Relaxed) < 3 {
        let bytes = line.len();
        tracing::warn!(
            server,
            bytes,
            "a line on a server's standard output is no MCP message"
        );
    }
}

/// A JSON-RPC error, read leniently: the message is for people, and a server
/// that fails should not fail twice.
pub(crate) fn error_data(error: &RawValue) -> ErrorData {
    #[derive(Deserialize)]
    struct Lenient {
        #[serde(default)]
        code: Value,
        #[serde(default)]
        message: Value,
        #[serde(default)]
        data: Value,
    }
    let read = serde_json::from_str(error.get());
    let Lenient {
        code,
        message,
        data,
    } = read.unwrap_or(Lenient {
        code: Value::Null,
        message: Value::Null,
        data: Value::Null,
    });
    let code = code
        .as_i64()
        .and_then(|code| i32::try_from(code).ok())
        .unwrap_or(-32603);
    let message = match message {
        Value::String(message) => message,
        _ => "the server gave an error without a message".to_owned(),
    };
    let data = (!data.is_null()).then_some(data);
    ErrorData::new(rmcp::model::ErrorCode(code), message, data)
}

impl rmcp::transport::Transport<RoleClient> for StdioTransport {
    type Error = Closed;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let message: ClientJsonRpcMessage = message;
        self.results.expect(&message);
        let sent = self.writer.as_ref().ok_or(Closed).and_then(|writer| {
            let text = serde_json::to_string(&message).map_err(|_| Closed)?;
            writer.write(&text)
        });
        std::future::ready(sent)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(message) = self.ready.pop() {
                return Some(message);
            }
            match self.lines.as_mut()?.next().await? {
                Line::Whole(line) => self.ready.extend(self.interpret(&line)),
                Line::Overlong { head, tail } => self.ready = self.overlong(&head, &tail),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.writer = None;
        self.lines = None;
        Ok(())
    }
}
