//! The streams of a server's process as an rmcp `Transport`: lines of bounded length, and
//! messages written in the order of sending.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use crate::failure::{CallFailure, Lost};
use crate::json_rpc::{self, END_BYTES};
use crate::tap::Tap;

/// Bytes that wait for a server that does not read, those of cancelled calls included.
const MAX_UNREAD: u32 = 64 << 20;
/// The time to read answers that a server wrote before it exited.
const LAST_ANSWERS: Duration = Duration::from_millis(250);

/// A message in the queue of the writer.
struct Outgoing {
    text: Vec<u8>,
    /// The id of a request.
    id: Option<RequestId>,
    /// Its share of [`MAX_UNREAD`].
    _room: OwnedSemaphorePermit,
}

/// The transport over the streams of a process.
pub(crate) struct StdioTransport {
    lines: Lines<ChildStdout>,
    /// Ends shortly after the process.
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Messages for rmcp that were read.
    read: VecDeque<ServerJsonRpcMessage>,
    /// Messages for rmcp that settle unwritten requests.
    unwritten: UnboundedReceiver<ServerJsonRpcMessage>,
    write: Option<UnboundedSender<Outgoing>>,
    /// The bytes that may still be queued.
    room: Arc<Semaphore>,
    tap: Arc<Tap>,
    is_closed: bool,
}

impl StdioTransport {
    /// A transport with lines of up to `limit` bytes. `exited` is the end of the process.
    pub(crate) fn new(
        stdout: ChildStdout,
        stdin: ChildStdin,
        exited: impl Future<Output = ()> + Send + 'static,
        tap: Arc<Tap>,
        limit: usize,
    ) -> Self {
        let (write, writes) = mpsc::unbounded_channel();
        let (failed, unwritten) = mpsc::unbounded_channel();
        tokio::spawn(write_all(writes, stdin, Arc::clone(&tap), failed));
        Self {
            lines: Lines::new(stdout, limit),
            over: Box::pin(async move {
                exited.await;
                sleep(LAST_ANSWERS).await;
            }),
            read: VecDeque::new(),
            unwritten,
            write: Some(write),
            room: Arc::new(Semaphore::new(MAX_UNREAD as usize)),
            tap,
            is_closed: false,
        }
    }

    /// Puts a message in the queue of the writer.
    fn enqueue(&self, text: Vec<u8>, id: Option<RequestId>) -> Result<(), &'static str> {
        let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).try_acquire_many_owned(bytes.min(MAX_UNREAD));
        let _room = room.map_err(|_| "the server does not read its input")?;
        let closed = "the connection was closed";
        let write = self.write.as_ref().ok_or(closed)?;
        let queued = write.send(Outgoing { text, id, _room });
        queued.map_err(|_| closed)
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    /// rmcp calls this in the order of sending, and runs the futures concurrently, so messages are
    /// queued here and not in the future.
    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let mut text = json_rpc::text(&message);
        text.push(b'\n');
        let id = match &message {
            ClientJsonRpcMessage::Request(sent) => Some(sent.id.clone()),
            _ => None,
        };
        self.tap.register(&message);
        let queued = self.enqueue(text, id.clone());
        if let (Err(reason), Some(id)) = (queued, &id) {
            let failure = CallFailure::lost(Lost::Unreachable, reason, false);
            self.tap.fail(id, failure);
        }
        std::future::ready(queued.map_err(io::Error::other))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.read.pop_front() {
                return Some(message);
            }
            if self.is_closed {
                return None;
            }
            let line = tokio::select! {
                biased;
                Some(message) = self.unwritten.recv() => return Some(message),
                line = self.lines.next() => line,
                () = &mut self.over => Ok(None),
            };
            let messages = match line {
                Ok(Some(line)) if line.is_cut => self.tap.too_long(&line.text, self.lines.limit),
                Ok(Some(line)) => self.tap.incoming(&line.text, None),
                // Calls in flight end now, before rmcp has closed the transport.
                Ok(None) | Err(_) => {
                    self.is_closed = true;
                    self.tap.end("the server closed its standard output")
                }
            };
            self.read.extend(messages);
        }
    }

    /// Closes the server's input. The owner of the process ends it.
    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write = None;
        Ok(())
    }
}

async fn write_all(
    mut writes: UnboundedReceiver<Outgoing>,
    mut stdin: ChildStdin,
    tap: Arc<Tap>,
    failed: UnboundedSender<ServerJsonRpcMessage>,
) {
    while let Some(Outgoing { text, id, _room }) = writes.recv().await {
        if let Some(id) = &id {
            tap.sent(id);
        }
        let written = async {
            stdin.write_all(&text).await?;
            stdin.flush().await
        };
        // Without its end, the server has not read the line.
        if let (Err(_), Some(id)) = (written.await, &id) {
            let reason = "the server closed its standard input";
            let settled = tap.fail(id, CallFailure::closed(reason, false));
            tap.close(reason);
            if let Some(settled) = settled {
                let _ = failed.send(settled);
            }
        }
    }
}

/// Lines of bounded length.
pub(crate) struct Lines<R> {
    stream: BufReader<R>,
    limit: usize,
    line: Line,
}

/// A line without its end.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Line {
    pub(crate) text: Vec<u8>,
    /// True if the line is over the limit. Then the text is only its first and its last bytes.
    pub(crate) is_cut: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(stream: R, limit: usize) -> Self {
        Self {
            stream: BufReader::with_capacity(64 << 10, stream),
            limit,
            line: Line::default(),
        }
    }

    /// The next line; `None` at the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.stream.fill_buf().await?;
            if available.is_empty() {
                let rest = std::mem::take(&mut self.line);
                return Ok(Some(rest).filter(|rest| !rest.text.is_empty()));
            }
            let newline = memchr::memchr(b'\n', available);
            let taken = newline.unwrap_or(available.len());
            let Line { text, is_cut } = &mut self.line;
            text.extend_from_slice(available.get(..taken).unwrap_or_default());
            *is_cut |= text.len() > self.limit;
            if *is_cut {
                let end = text.len().saturating_sub(END_BYTES);
                text.drain(END_BYTES.min(end)..end);
            }
            self.stream.consume(taken + usize::from(newline.is_some()));
            if newline.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn line_over_limit_is_cut() {
        let long = format!("{}{}", "a".repeat(600), "b".repeat(600));
        let text = format!("{}\n{long}\n\nend\nrest", "x".repeat(1_000));
        let mut lines = Lines::new(text.as_bytes(), 1_000);
        let ends = format!("{}{}", "a".repeat(512), "b".repeat(512));
        for (text, is_cut) in [("x".repeat(1_000), false), (ends, true)] {
            let text = text.into_bytes();
            let line = lines.next().await.expect("a line");
            assert_eq!(line, Some(Line { text, is_cut }));
        }
        for expected in ["", "end", "rest"] {
            let line = lines.next().await.expect("a line").expect("a line");
            assert_eq!(line.text, expected.as_bytes());
        }
        assert_eq!(lines.next().await.expect("the end"), None);
    }
}
