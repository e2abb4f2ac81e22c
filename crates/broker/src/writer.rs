//! Where messages to a child's standard input go: in the order they were given, and those that wait
//! together in one write.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;

/// Messages that wait for a server to read them, beyond which it counts as one
/// that does not.
const MANY: usize = 64;

/// Bytes of several messages that are written together.
const TOGETHER_BYTES: usize = 64 << 10;

/// A child's standard input. The child sees its end when the last clone is
/// gone.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// Messages in their order. Whoever holds `stdin` writes them.
    queue: Mutex<VecDeque<Vec<u8>>>,
    stdin: tokio::sync::Mutex<Stdin>,
}

#[derive(Debug)]
struct Stdin {
    pipe: ChildStdin,
    /// What has been taken from the queue and is not written.
    rest: Vec<u8>,
    /// How much of that is.
    written: usize,
}

/// The server's input is closed.
#[derive(Debug, thiserror::Error)]
#[error("the server's standard input is closed")]
pub(crate) struct Closed;

impl Writer {
    pub(crate) fn new(pipe: ChildStdin) -> Self {
        let (rest, written) = (Vec::new(), 0);
        let stdin = Stdin {
            pipe,
            rest,
            written,
        };
        Self {
            inner: Arc::new(Inner {
                queue: Mutex::default(),
                stdin: tokio::sync::Mutex::new(stdin),
            }),
        }
    }

    /// Whether the server has stopped reading, for now.
    pub(crate) fn is_full(&self) -> bool {
        self.inner.queue().len() >= MANY
    }

    /// Takes one message, and writes it with the others that wait when the
    /// future is polled. Messages are written in the order of these calls; one
    /// whose future is dropped is written by the next.
    pub(crate) fn send<M: serde::Serialize>(
        &self,
        message: &M,
    ) -> impl Future<Output = Result<(), Closed>> + Send + use<M> {
        let queued = serde_json::to_vec(message).map(|mut text| {
            text.push(b'\n');
            self.inner.queue().push_back(text);
        });
        let inner = Arc::clone(&self.inner);
        async move {
            queued.map_err(|_| Closed)?;
            inner.write().await
        }
    }
}

impl Inner {
    /// Writes everything there is.
    async fn write(&self) -> Result<(), Closed> {
        let mut stdin = self.stdin.lock().await;
        while self.next(&mut stdin) {
            let Stdin {
                pipe,
                rest,
                written,
            } = &mut *stdin;
            match pipe.write(rest.get(*written..).unwrap_or_default()).await {
                Ok(bytes) if bytes > 0 => *written += bytes,
                Ok(_) | Err(_) => return Err(Closed),
            }
        }
        Ok(())
    }

    /// Takes what waits, as much as is written at once, if what was taken
    /// before is written; false if there is nothing.
    fn next(&self, stdin: &mut Stdin) -> bool {
        if stdin.written < stdin.rest.len() {
            return true;
        }
        stdin.written = 0;
        let mut queue = self.queue();
        stdin.rest = queue.pop_front().unwrap_or_default();
        while let Some(message) = queue.front()
            && stdin.rest.len() + message.len() <= TOGETHER_BYTES
        {
            stdin.rest.extend_from_slice(message);
            queue.pop_front();
        }
        !stdin.rest.is_empty()
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use serde_json::json;
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn messages_come_whole_and_in_order_through_a_pipe_that_is_full() {
        let mut cat = tokio::process::Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cat is there");
        let writer = Writer::new(cat.stdin.take().expect("it has an input"));
        let messages: Vec<_> = (0..200)
            .map(|i| json!({ "i": i, "text": "x".repeat(i * 97) }))
            .collect();
        let expected: String = messages.iter().map(|m| format!("{m}\n")).collect();
        // Nobody reads yet, so the pipes fill, and every other future is dropped: that of the last
        // message writes them all.
        let sent: Vec<_> = messages.iter().map(|m| writer.send(m)).collect();
        assert!(writer.is_full());
        let mut futures = sent.into_iter();
        let last = futures.next_back().expect("there are messages");
        drop(futures);
        let mut out = cat.stdout.take().expect("it has an output");
        let read = async {
            let mut read = vec![0; expected.len()];
            out.read_exact(&mut read).await.map(|_| read)
        };
        let (sent, read) = tokio::join!(last, read);
        assert!(sent.is_ok());
        assert!(read.expect("all comes back") == expected.as_bytes());
        assert!(!writer.is_full());

        drop(writer);
        assert!(cat.wait().await.expect("it ends").success());
    }

    #[tokio::test]
    async fn a_closed_input_is_an_error() {
        let mut child = tokio::process::Command::new("true")
            .stdin(Stdio::piped())
            .spawn()
            .expect("true is there");
        let writer = Writer::new(child.stdin.take().expect("it has an input"));
        child.wait().await.expect("it ends");
        assert!(writer.send(&json!(1)).await.is_err());
    }
}
