//! A child's standard input: messages in the order they were given, written by
//! whoever gives them as long as the pipe takes them, and by a task of their own
//! when it does not.
//!
//! Requests that come right after one another, such as the calls of a
//! `Promise.all`, are written a few at a time: each write may wake the server.
//! The first is written at once, so that the server has something to do
//! meanwhile, and what is left is written by the task, which runs as soon as
//! whoever gives them waits for something.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::io::AsyncWrite;
use tokio::process::ChildStdin;
use tokio::runtime::Handle;

use crate::pipe::{USUAL_BYTES, Wide};

/// Answers that wait for a server to read them, beyond which it counts as one
/// that does not.
const MANY: usize = 64;
/// Requests follow one another if they are given within this time: faster than
/// a server answers one.
const TOGETHER: Duration = Duration::from_micros(15);
/// Requests that are written together, and bytes of them.
const MOST_TOGETHER: usize = 8;
const MOST_BYTES_TOGETHER: usize = 16 << 10;
/// Bytes that wait for the server to read them, beyond which it is given no more requests: calls
/// that are given up leave theirs here.
const MOST_UNREAD: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };
/// The largest buffer that is kept for the next message, in bytes.
const KEPT_BYTES: usize = 64 << 10;

/// A child's standard input. The child sees its end when the writer is closed
/// or gone; what waits then is lost.
#[derive(Debug)]
pub(crate) struct Writer {
    state: Arc<Mutex<State>>,
    runtime: Handle,
}

#[derive(Debug)]
struct State {
    /// None once it is closed.
    pipe: Option<ChildStdin>,
    /// Once more was written than a pipe takes.
    wide: Option<Wide>,
    /// Messages, with their line feeds, of which so much is written.
    waiting: Vec<u8>,
    written: usize,
    /// How many bytes there have been, those that wait among them.
    taken: u64,
    /// Where the answers to requests of the server's end that wait among them.
    answers: VecDeque<u64>,
    /// Whether a task writes what waits.
    draining: bool,
    /// Whether a task is about to run that writes what waits, if anything does.
    gathering: bool,
    /// Requests that wait to be written together.
    gathered: usize,
    /// When the last request was given.
    last: Option<Instant>,
}

/// The server's input is closed.
#[derive(Debug, thiserror::Error)]
#[error("the server's standard input is closed")]
pub(crate) struct Closed;

impl Writer {
    /// Must be called within a runtime.
    pub(crate) fn new(pipe: ChildStdin) -> Self {
        let state = State {
            pipe: Some(pipe),
            wide: None,
            waiting: Vec::new(),
            written: 0,
            taken: 0,
            answers: VecDeque::new(),
            draining: false,
            gathering: false,
            gathered: 0,
            last: None,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            runtime: Handle::current(),
        }
    }

    /// Whether the server has stopped reading, for now.
    pub(crate) fn is_congested(&self) -> bool {
        lock(&self.state).answers.len() >= MANY
    }

    /// Whether a request of so many bytes may wait too; an error says how many wait already.
    /// Where nothing waits there is room for any length.
    pub(crate) fn has_room(&self, bytes: usize) -> Result<(), usize> {
        match lock(&self.state).unread() {
            0 => Ok(()),
            unread if unread.saturating_add(bytes) <= MOST_UNREAD => Ok(()),
            unread => Err(unread),
        }
    }

    /// Takes a message and writes it, or has it written as soon as the server
    /// reads on. Never waits.
    pub(crate) fn write(&self, message: &str) -> Result<(), Closed> {
        let mut state = lock(&self.state);
        state.take(message)?;
        self.flush(state)
    }

    /// [`Writer::write`] for requests, which may wait for a moment to be written
    /// with others.
    pub(crate) fn request(&self, message: &str) -> Result<(), Closed> {
        let mut state = lock(&self.state);
        state.take(message)?;
        let now = Instant::now();
        let last = state.last.replace(now);
        let follows = last.is_some_and(|last| now.duration_since(last) < TOGETHER);
        if state.draining {
            return Ok(());
        }
        if !follows && state.gathered == 0 {
            return self.flush(state);
        }
        state.gathered += 1;
        if state.gathered >= MOST_TOGETHER || state.waiting.len() >= MOST_BYTES_TOGETHER {
            return self.flush(state);
        }
        if !std::mem::replace(&mut state.gathering, true) {
            drop(state);
            self.runtime.spawn(gathered(Arc::downgrade(&self.state)));
        }
        Ok(())
    }

    fn flush(&self, mut state: MutexGuard<'_, State>) -> Result<(), Closed> {
        if state.draining {
            return Ok(());
        }
        // What the pipe does not take at once is left to a task, which is then
        // woken for the rest.
        match state.poll_write(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(written) => written,
            Poll::Pending => {
                state.draining = true;
                drop(state);
                self.runtime.spawn(drain(Arc::downgrade(&self.state)));
                Ok(())
            }
        }
    }

    /// [`Writer::write`] for answers to the server's requests, which count for
    /// [`Writer::is_congested`].
    pub(crate) fn answer(&self, message: &str) -> Result<(), Closed> {
        let mut state = lock(&self.state);
        state.take(message)?;
        let end = state.taken;
        state.answers.push_back(end);
        self.flush(state)
    }

    /// Closes the pipe. What waits is lost.
    pub(crate) fn close(&self) {
        lock(&self.state).close();
    }
}

impl State {
    fn take(&mut self, message: &str) -> Result<(), Closed> {
        if self.pipe.is_none() {
            return Err(Closed);
        }
        // A server that is always behind would have all that it has read kept, too.
        if self.written > KEPT_BYTES && self.written > self.unread() {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
        self.waiting.reserve(message.len() + 1);
        self.waiting.extend_from_slice(message.as_bytes());
        self.waiting.push(b'\n');
        self.taken += message.len() as u64 + 1;
        if self.wide.is_none() && self.unread() > USUAL_BYTES {
            self.wide = self.pipe.as_ref().and_then(Wide::make);
        }
        Ok(())
    }

    fn unread(&self) -> usize {
        self.waiting.len().saturating_sub(self.written)
    }

    /// Writes what waits.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Closed>> {
        let Some(pipe) = &mut self.pipe else {
            return Poll::Ready(Err(Closed));
        };
        while self.written < self.waiting.len() {
            let rest = self.waiting.get(self.written..).unwrap_or_default();
            match Pin::new(&mut *pipe).poll_write(cx, rest) {
                Poll::Ready(Ok(bytes)) if bytes > 0 => {
                    self.written += bytes;
                    let written = self.taken - (self.waiting.len() - self.written) as u64;
                    while self.answers.pop_front_if(|end| *end <= written).is_some() {}
                }
                Poll::Ready(_) => {
                    self.close();
                    return Poll::Ready(Err(Closed));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        self.empty();
        Poll::Ready(Ok(()))
    }

    fn close(&mut self) {
        self.pipe = None;
        self.wide = None;
        self.empty();
    }

    fn empty(&mut self) {
        self.gathered = 0;
        self.written = 0;
        self.answers.clear();
        self.waiting.clear();
        self.waiting.shrink_to(KEPT_BYTES);
    }
}

/// Writes the requests that wait for others to be written with.
async fn gathered(state: Weak<Mutex<State>>) {
    if let Some(known) = state.upgrade() {
        let mut known = lock(&known);
        known.gathering = false;
        if known.draining || known.waiting.is_empty() {
            return;
        }
        known.draining = true;
    }
    drain(state).await;
}

/// Writes what waits until nothing does.
async fn drain(state: Weak<Mutex<State>>) {
    std::future::poll_fn(|cx| {
        let Some(state) = state.upgrade() else {
            return Poll::Ready(());
        };
        let mut state = lock(&state);
        // A closed pipe is found out by whoever writes or reads next.
        state.poll_write(cx).map(|_closed| state.draining = false)
    })
    .await;
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::io::AsyncReadExt;
    use tokio::process::{Child, Command};

    use super::*;

    /// A child that gives back what it is sent, and the writer of its input.
    fn cat() -> (Child, Writer) {
        let mut cat = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("cat is there");
        let writer = Writer::new(cat.stdin.take().expect("it has an input"));
        (cat, writer)
    }

    #[tokio::test]
    async fn messages_come_whole_and_in_order_through_a_pipe_that_is_full() {
        let (mut cat, writer) = cat();
        let messages: Vec<String> = (0..300)
            .map(|i| format!("{i} {}", "x".repeat(i * 97)))
            .collect();
        // Nobody reads yet, so the pipes fill.
        for message in &messages {
            writer.answer(message).expect("it is open");
        }
        assert!(writer.is_congested());
        let mut expected = messages.join("\n");
        expected.push('\n');
        let mut out = cat.stdout.take().expect("it has an output");
        let mut read = vec![0; expected.len()];
        out.read_exact(&mut read).await.expect("all comes back");
        assert!(read == expected.as_bytes());
        assert!(!writer.is_congested());

        drop(writer);
        assert!(cat.wait().await.expect("it ends").success());
    }

    #[tokio::test]
    async fn an_answer_that_is_read_waits_no_more_whatever_comes_after_it() {
        let (mut cat, writer) = cat();
        // More than the pipes and `cat` have room for together.
        let long = "x".repeat(8 * MOST_UNREAD);
        writer.write(&long).expect("it is open");
        for _ in 0..MANY {
            assert!(!writer.is_congested());
            writer.answer("answer").expect("it is open");
        }
        assert!(writer.is_congested());
        writer.write(&long).expect("it is open");
        let mut out = cat.stdout.take().expect("it has an output");
        let mut read = vec![0; long.len() + 1 + MANY * "answer\n".len()];
        out.read_exact(&mut read).await.expect("it comes back");
        assert!(read.ends_with(b"answer\n"));
        assert!(!writer.is_congested());
        assert!(writer.has_room(long.len()).is_err(), "the rest waits");
    }

    #[tokio::test]
    async fn what_is_not_read_is_bounded() {
        let (mut cat, writer) = cat();
        assert_eq!(writer.has_room(usize::MAX), Ok(()));
        // More than the pipes and `cat` have room for together.
        let long = "x".repeat(8 * MOST_UNREAD);
        writer.request(&long).expect("it is open");
        let unread = writer.has_room(1).expect_err("nobody reads yet");
        assert!(unread > MOST_UNREAD, "{unread}");
        // What has been read is not kept.
        let mut out = cat.stdout.take().expect("it has an output");
        let mut half = vec![0; long.len() / 2 + KEPT_BYTES];
        out.read_exact(&mut half).await.expect("it comes back");
        writer.write("end").expect("it is open");
        let kept = lock(&writer.state).waiting.len();
        assert!(kept < long.len() / 2, "{kept}");
        let mut rest = vec![0; long.len() + 1 + "end\n".len() - half.len()];
        out.read_exact(&mut rest).await.expect("all comes back");
        assert!(rest.ends_with(b"x\nend\n"));
        assert_eq!(writer.has_room(usize::MAX), Ok(()));
    }

    #[tokio::test]
    async fn requests_are_written_whether_others_follow_or_not() {
        let (mut cat, writer) = cat();
        let mut out = cat.stdout.take().expect("it has an output");
        let mut number = 0;
        for together in [1, 2, 3, MOST_TOGETHER, MOST_TOGETHER + 2, 100] {
            let mut expected = String::new();
            for _ in 0..together {
                number += 1;
                expected.push_str(&format!("request {number}\n"));
                writer
                    .request(&format!("request {number}"))
                    .expect("it is open");
            }
            // What is no request goes with those before it.
            writer.write("answer").expect("it is open");
            expected.push_str("answer\n");
            number += 1;
            writer
                .request(&format!("request {number}"))
                .expect("it is open");
            expected.push_str(&format!("request {number}\n"));
            let mut read = vec![0; expected.len()];
            out.read_exact(&mut read).await.expect("all comes back");
            assert_eq!(String::from_utf8(read).expect("text"), expected);
        }
        assert!(!lock(&writer.state).draining);
    }

    #[tokio::test]
    async fn a_closed_input_is_an_error() {
        let mut child = Command::new("true")
            .stdin(Stdio::piped())
            .spawn()
            .expect("true is there");
        let writer = Writer::new(child.stdin.take().expect("it has an input"));
        child.wait().await.expect("it ends");
        assert!(writer.write("1").is_err());
        assert!(writer.write("2").is_err());
    }
}
