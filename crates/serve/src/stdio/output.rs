//! What goes to the client: written by a task of its own, so that nobody has to wait
//! for a client that does not take it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::model::ServerJsonRpcMessage;
use serde::Serialize;
use serde_json::json;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::envelope::Malformed;

/// What a message costs besides its bytes, rounded up: its place in the queue, what tells that it
/// is written, and what the allocator takes for both.
const OF_A_MESSAGE: usize = 256;

/// Where messages are put.
pub(super) struct Output {
    queue: Option<mpsc::UnboundedSender<Message>>,
    untaken: Arc<Untaken>,
}

/// What was put into the queue and is not written.
struct Untaken {
    bytes: AtomicUsize,
    most: usize,
    /// Nothing is written any more.
    broken: CancellationToken,
}

/// What becomes of all messages.
pub(super) struct Written(JoinHandle<()>);

/// What becomes of one.
pub(super) struct OnItsWay(oneshot::Receiver<()>);

struct Message {
    /// Without room for more: so much of the memory would count for nothing.
    line: Box<[u8]>,
    written: oneshot::Sender<()>,
}

impl Output {
    /// For a client that may leave so many bytes of memory full of what it does not take.
    pub(super) fn new(
        to: impl AsyncWrite + Send + Unpin + 'static,
        most: usize,
    ) -> (Self, Written) {
        let (queue, messages) = mpsc::unbounded_channel();
        let untaken = Arc::new(Untaken {
            bytes: AtomicUsize::new(0),
            most,
            broken: CancellationToken::new(),
        });
        let task = tokio::spawn(write(to, messages, Arc::clone(&untaken)));
        let queue = Some(queue);
        (Self { queue, untaken }, Written(task))
    }

    /// Puts a message into the queue.
    pub(super) fn send(&self, message: &ServerJsonRpcMessage) -> io::Result<OnItsWay> {
        self.put(message)
    }

    /// Says that a message is not served.
    pub(super) fn refuse(&self, malformed: &Malformed) -> io::Result<OnItsWay> {
        let error = json!({ "code": malformed.code, "message": malformed.message });
        // An `id` that cannot be read is left out (2026-07-28, "Error Responses").
        self.put(&match &malformed.id {
            Some(id) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
            None => json!({ "jsonrpc": "2.0", "error": error }),
        })
    }

    /// Resolves when nothing can be written any more.
    pub(super) async fn broken(&self) {
        self.untaken.broken.cancelled().await;
    }

    /// There is nothing more to come.
    pub(super) fn close(&mut self) {
        self.queue = None;
    }

    fn put(&self, message: &impl Serialize) -> io::Result<OnItsWay> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let (written, on_its_way) = oneshot::channel();
        let message = Message {
            line: line.into_boxed_slice(),
            written,
        };
        self.untaken.add(message.cost())?;
        match &self.queue {
            Some(queue) if queue.send(message).is_ok() => Ok(OnItsWay(on_its_way)),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Message {
    /// The bytes of memory that it takes.
    fn cost(&self) -> usize {
        self.line.len() + OF_A_MESSAGE
    }
}

impl Untaken {
    /// What is put into the queue. A client that goes on asking and takes no answers is given
    /// up: to read no more of it would hide that it leaves.
    fn add(&self, bytes: usize) -> io::Result<()> {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.most && !self.broken.is_cancelled() {
            let most = self.most;
            tracing::error!(
                "the client has not taken answers that take {most} bytes of memory: it is given up"
            );
            self.broken.cancel();
        }
        match self.broken.is_cancelled() {
            true => Err(io::ErrorKind::BrokenPipe.into()),
            false => Ok(()),
        }
    }

    fn take(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Written {
    /// Waits until all that was put into the queue is written, but no longer than this.
    pub(super) async fn wait(self, until: Instant) {
        if tokio::time::timeout_at(until, self.0).await.is_err() {
            tracing::warn!("the client has not taken all its answers");
        }
    }
}

impl OnItsWay {
    /// Waits until it is written.
    pub(super) async fn wait(self) -> io::Result<()> {
        let written = self.0.await;
        written.map_err(|_broken| io::ErrorKind::BrokenPipe.into())
    }
}

async fn write(
    mut to: impl AsyncWrite + Unpin,
    mut queue: mpsc::UnboundedReceiver<Message>,
    untaken: Arc<Untaken>,
) {
    while let Some(message) = queue.recv().await {
        let writing = async {
            to.write_all(&message.line).await?;
            to.flush().await
        };
        let done = tokio::select! {
            done = writing => done,
            () = untaken.broken.cancelled() => return,
        };
        if let Err(error) = done {
            tracing::warn!(%error, "nothing can be written to the client");
            untaken.broken.cancel();
            return;
        }
        untaken.take(message.cost());
        // Not everybody wants to know.
        let _unheard = message.written.send(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, duplex};

    const LINE: &str = "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":1,\"message\":\"no\"}}\n";

    /// Room for two lines, and less than is needed for a third.
    const TWO: usize = 3 * (LINE.len() + OF_A_MESSAGE) - 1;

    fn refused() -> Malformed {
        Malformed {
            id: None,
            code: 1,
            message: "no".into(),
        }
    }

    #[tokio::test]
    async fn what_a_client_takes_makes_room_for_more() {
        let (to, mut client) = duplex(1);
        let (output, _written) = Output::new(to, TWO);
        for _ in 0..10 {
            let one = output.refuse(&refused()).expect("room");
            let other = output.refuse(&refused()).expect("room");
            let mut lines = vec![0; 2 * LINE.len()];
            client.read_exact(&mut lines).await.expect("two lines");
            assert_eq!(lines, LINE.repeat(2).into_bytes());
            one.wait().await.expect("written");
            other.wait().await.expect("written");
        }
    }

    #[tokio::test]
    async fn a_client_that_takes_too_little_is_given_up() {
        let (to, mut client) = duplex(1);
        let (output, written) = Output::new(to, TWO);
        for _ in 0..2 {
            output.refuse(&refused()).expect("room");
        }
        for _ in 0..2 {
            let error = output.refuse(&refused()).err().expect("no room");
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        }
        output.broken().await;
        written.0.await.expect("no panic");
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.expect("an end");
        assert!(LINE.as_bytes().starts_with(&rest) && rest.len() < LINE.len());
    }
}
