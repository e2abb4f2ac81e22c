//! What goes to the client: written by a task of its own, so that nobody has to wait
//! for a client that does not take it.

use std::io;

use rmcp::model::ServerJsonRpcMessage;
use serde::Serialize;
use serde_json::json;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::envelope::Malformed;

/// Where messages are put.
pub(super) struct Output {
    queue: Option<mpsc::UnboundedSender<Message>>,
    broken: CancellationToken,
}

/// What becomes of all messages.
pub(super) struct Written(JoinHandle<()>);

/// What becomes of one.
pub(super) struct OnItsWay(oneshot::Receiver<()>);

struct Message {
    line: Vec<u8>,
    written: oneshot::Sender<()>,
}

impl Output {
    pub(super) fn new(to: impl AsyncWrite + Send + Unpin + 'static) -> (Self, Written) {
        let (queue, messages) = mpsc::unbounded_channel();
        let broken = CancellationToken::new();
        let task = tokio::spawn(write(to, messages, broken.clone()));
        let queue = Some(queue);
        (Self { queue, broken }, Written(task))
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
        self.broken.cancelled().await;
    }

    /// There is nothing more to come.
    pub(super) fn close(&mut self) {
        self.queue = None;
    }

    fn put(&self, message: &impl Serialize) -> io::Result<OnItsWay> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let (written, on_its_way) = oneshot::channel();
        let message = Message { line, written };
        match &self.queue {
            Some(queue) if queue.send(message).is_ok() => Ok(OnItsWay(on_its_way)),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
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
    broken: CancellationToken,
) {
    while let Some(Message { line, written }) = queue.recv().await {
        let writing = async {
            to.write_all(&line).await?;
            to.flush().await
        };
        if let Err(error) = writing.await {
            tracing::warn!(%error, "nothing can be written to the client");
            broken.cancel();
            return;
        }
        // Not everybody wants to know.
        let _unheard = written.send(());
    }
}
