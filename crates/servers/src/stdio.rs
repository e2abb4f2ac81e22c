//! The streams of a server's process as an rmcp `Transport`: lines of bounded length, and
//! messages written in the order in which they were sent.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::failure::{CallFailure, Lost};
use crate::json_rpc::{self, END_BYTES};
use crate::tap::Tap;

/// The bytes that may wait for a server that does not read, beside one message.
const MAX_UNREAD: usize = 64 << 20;
/// The wait for answers that a server wrote before it exited.
const LAST_ANSWERS: Duration = Duration::from_millis(250);
/// The messages that wait for rmcp.
const CHANNEL: usize = 64;

/// A message on its way to the server.
struct Outgoing {
    text: Vec<u8>,
    /// Its id, if it is a request.
    id: Option<RequestId>,
}

/// The transport.
pub(crate) struct Stdio {
    /// Messages of the server; `None` is the end.
    arrived: mpsc::Receiver<Option<ServerJsonRpcMessage>>,
    write: Option<mpsc::UnboundedSender<Outgoing>>,
    unread: Arc<AtomicUsize>,
    tap: Arc<Tap>,
    reader: JoinHandle<()>,
}

impl Stdio {
    /// Reads lines of up to `limit` bytes and writes in tasks of its own. `exited` is the end of the
    /// process.
    pub(crate) fn new(
        stdout: impl AsyncRead + Unpin + Send + 'static,
        stdin: impl AsyncWrite + Unpin + Send + 'static,
        exited: impl Future<Output = ()> + Send + 'static,
        tap: Arc<Tap>,
        limit: usize,
    ) -> Self {
        let (arrive, arrived) = mpsc::channel(CHANNEL);
        let (write, writes) = mpsc::unbounded_channel();
        let unread = Arc::<AtomicUsize>::default();
        let writer = Writer {
            writes,
            unread: Arc::clone(&unread),
            tap: Arc::clone(&tap),
            arrive: arrive.clone(),
        };
        tokio::spawn(writer.write_all(stdin));
        let lines = Lines::new(stdout, limit);
        let reader = tokio::spawn(read_all(lines, exited, Arc::clone(&tap), arrive));
        Self {
            arrived,
            write: Some(write),
            unread,
            tap,
            reader,
        }
    }

    /// Puts a message in the queue of the writer.
    fn enqueue(&self, text: Vec<u8>, id: Option<RequestId>) -> io::Result<()> {
        let waiting = self.unread.load(Ordering::Relaxed);
        if waiting > 0 && waiting.saturating_add(text.len()) > MAX_UNREAD {
            return Err(io::Error::other("the server does not read its input"));
        }
        self.unread.fetch_add(text.len(), Ordering::Relaxed);
        let closed = || io::Error::from(io::ErrorKind::NotConnected);
        let write = self.write.as_ref().ok_or_else(closed)?;
        write.send(Outgoing { text, id }).map_err(|_| closed())
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    /// rmcp calls it in the order of sending, and lets the futures race: so messages are put in
    /// order here.
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
        self.tap.outgoing(&message);
        let enqueued = self.enqueue(text, id.clone());
        if let (Err(error), Some(id)) = (&enqueued, &id) {
            let failure = CallFailure::lost(Lost::Unreachable, error.to_string(), false);
            self.tap.fail(id, failure);
        }
        std::future::ready(enqueued)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.arrived.recv().await.flatten()
    }

    /// Closes the server's input. Its process is ended by its owner.
    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write = None;
        Ok(())
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Writes messages in their order.
struct Writer {
    writes: mpsc::UnboundedReceiver<Outgoing>,
    unread: Arc<AtomicUsize>,
    tap: Arc<Tap>,
    arrive: mpsc::Sender<Option<ServerJsonRpcMessage>>,
}

impl Writer {
    async fn write_all(mut self, mut stdin: impl AsyncWrite + Unpin) {
        while let Some(Outgoing { text, id }) = self.writes.recv().await {
            let written = async {
                let (line, end) = text.split_at(text.len().saturating_sub(1));
                stdin.write_all(line).await?;
                // With its end, the server may read it.
                if let Some(id) = &id {
                    self.tap.sent(id);
                }
                stdin.write_all(end).await?;
                stdin.flush().await
            };
            let written = written.await;
            self.unread.fetch_sub(text.len(), Ordering::Relaxed);
            if let (Err(_), Some(id)) = (written, &id) {
                let reason = "the server closed its standard input";
                let failed = self.tap.fail(id, CallFailure::closed(reason, false));
                self.tap.close(reason);
                if let Some(failed) = failed {
                    let _ = self.arrive.send(Some(failed)).await;
                }
            }
        }
    }
}

async fn read_all(
    mut lines: Lines<impl AsyncRead + Unpin>,
    exited: impl Future<Output = ()>,
    tap: Arc<Tap>,
    arrive: mpsc::Sender<Option<ServerJsonRpcMessage>>,
) {
    let limit = lines.limit;
    let mut exited = std::pin::pin!(exited);
    let mut end: Option<Instant> = None;
    loop {
        let line = tokio::select! {
            biased;
            line = lines.next() => line,
            () = &mut exited, if end.is_none() => {
                end = Some(Instant::now() + LAST_ANSWERS);
                continue;
            }
            () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => break,
        };
        let messages = match line {
            Ok(Some(Line::Whole(text))) if text.trim_ascii().is_empty() => continue,
            Ok(Some(Line::Whole(text))) => tap.incoming(&text, None),
            Ok(Some(Line::TooLong(ends))) => tap.too_long(&ends, limit),
            Ok(None) | Err(_) => break,
        };
        for message in messages {
            if arrive.send(Some(message)).await.is_err() {
                return;
            }
        }
    }
    // Calls in flight end at once, not when rmcp has closed the transport.
    for message in tap.end("the server closed its standard output") {
        let _ = arrive.send(Some(message)).await;
    }
    let _ = arrive.send(None).await;
}

/// Lines of bounded length.
pub(crate) struct Lines<R> {
    stream: BufReader<R>,
    limit: usize,
    line: Vec<u8>,
    /// The last bytes of a line over the limit.
    end: Option<Vec<u8>>,
}

/// A line without its end.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    Whole(Vec<u8>),
    /// The first and the last bytes of a line over the limit.
    TooLong(Vec<u8>),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(stream: R, limit: usize) -> Self {
        Self {
            stream: BufReader::with_capacity(64 << 10, stream),
            limit,
            line: Vec::new(),
            end: None,
        }
    }

    /// The next line; `None` at the end. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.stream.fill_buf().await?;
            if available.is_empty() {
                return Ok(None);
            }
            let newline = memchr::memchr(b'\n', available);
            let taken = available
                .get(..newline.unwrap_or(available.len()))
                .unwrap_or_default();
            if let Some(end) = &mut self.end {
                end.extend_from_slice(last(taken));
                end.drain(..end.len().saturating_sub(END_BYTES));
            } else if self.line.len() + taken.len() > self.limit {
                self.line
                    .extend_from_slice(taken.get(..END_BYTES.min(taken.len())).unwrap_or_default());
                let mut end = last(&self.line).to_vec();
                end.extend_from_slice(last(taken));
                end.drain(..end.len().saturating_sub(END_BYTES));
                self.end = Some(end);
                self.line.truncate(END_BYTES);
                self.line.shrink_to_fit();
            } else {
                self.line.extend_from_slice(taken);
            }
            let used = taken.len() + usize::from(newline.is_some());
            self.stream.consume(used);
            if newline.is_some() {
                let mut line = std::mem::take(&mut self.line);
                return Ok(Some(match self.end.take() {
                    Some(end) => {
                        line.extend(end);
                        Line::TooLong(line)
                    }
                    None => Line::Whole(line),
                }));
            }
        }
    }
}

fn last(bytes: &[u8]) -> &[u8] {
    bytes
        .get(bytes.len().saturating_sub(END_BYTES)..)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_bounded() {
        let long = format!("{}{}", "a".repeat(600), "b".repeat(600));
        let text = format!("{}\n{long}\n\nend\nrest", "x".repeat(1_000));
        let mut lines = Lines::new(text.as_bytes(), 1_000);
        let whole = |text: &str| Some(Line::Whole(text.as_bytes().to_vec()));
        assert_eq!(
            lines.next().await.expect("a line"),
            whole(&"x".repeat(1_000))
        );
        let ends = format!("{}{}", "a".repeat(512), "b".repeat(512));
        let too_long = Some(Line::TooLong(ends.into_bytes()));
        assert_eq!(lines.next().await.expect("a line"), too_long);
        assert_eq!(lines.next().await.expect("a line"), whole(""));
        assert_eq!(lines.next().await.expect("a line"), whole("end"));
        assert_eq!(lines.next().await.expect("the end"), None);
    }
}
