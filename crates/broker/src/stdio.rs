//! MCP over a child's standard streams.
//!
//! Whoever waits for an answer reads, for all who wait: a task that did nothing
//! else would have to be woken for every answer, and wake the one it is for.
//! With each poll of a flight, what has arrived is read and delivered, and the
//! last one polled is the one that is woken when more comes. When it leaves,
//! another one that waits is.
//!
//! What a server says when nobody waits is read by a task that steps in when no
//! flight has read for a while, and steps back at the next one that does. It is
//! also what reads when a flight is held and not polled.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use rmcp::model::ProtocolVersion;
use tokio::io::BufReader;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::inbox::Inbox;
use crate::lines::{Line, Lines};
use crate::link::{Link, LinkError, LinkErrorKind, Outgoing};
use crate::pipe::{USUAL_BYTES, Wide};
use crate::writer::Writer;

/// For how long no flight has to have read before the task does.
const QUIET: Duration = Duration::from_millis(100);
/// What is read at once, in bytes.
const CHUNK: usize = 64 << 10;

/// Stands for the task among the ids of flights, which begin at 1.
const TASK: u64 = 0;
/// Stands for nobody.
const NOBODY: u64 = u64::MAX;

/// Both directions of a child's streams.
#[derive(Debug)]
pub(crate) struct StdioLink {
    inbox: Arc<Inbox>,
    writer: Writer,
    /// None once it has ended or is closed.
    lines: Mutex<Option<Lines<BufReader<ChildStdout>>>>,
    /// Once a message was longer than a pipe takes.
    wide: OnceLock<Wide>,
    /// Who is woken when something arrives.
    woken: AtomicU64,
    /// How often flights have read.
    reads: AtomicU64,
    /// Told when a flight takes over from the task.
    stepped_back: Arc<Notify>,
    task: OnceLock<AbortHandle>,
    /// What reads on, to nobody, once it is closed.
    drain: OnceLock<AbortHandle>,
}

impl StdioLink {
    /// Must be called within a runtime.
    pub(crate) fn new(stdin: ChildStdin, stdout: ChildStdout, inbox: Arc<Inbox>) -> Arc<Self> {
        let stdout = BufReader::with_capacity(CHUNK, stdout);
        let lines = Lines::new(stdout, inbox.max_message_bytes());
        let link = Arc::new(Self {
            inbox,
            writer: Writer::new(stdin),
            lines: Mutex::new(Some(lines)),
            wide: OnceLock::new(),
            woken: AtomicU64::new(NOBODY),
            reads: AtomicU64::new(0),
            stepped_back: Arc::default(),
            task: OnceLock::new(),
            drain: OnceLock::new(),
        });
        let task = tokio::spawn(read_when_quiet(Arc::downgrade(&link)));
        let _first = link.task.set(task.abort_handle());
        link
    }

    /// Reads what is there, for `who` to be woken when there is more.
    fn read_for(&self, who: u64, cx: &mut Context<'_>) {
        // Whoever holds it reads right now, and will be woken, or wakes another.
        let Ok(mut lines) = self.lines.try_lock() else {
            return;
        };
        let Some(stream) = &mut *lines else {
            return;
        };
        loop {
            match stream.poll_next(cx) {
                Poll::Ready(Some(Line::Whole(line))) => self.inbox.deliver(&line),
                Poll::Ready(Some(Line::Overlong { head, tail })) => {
                    self.inbox.overlong(&head, &tail);
                }
                Poll::Ready(None) => break,
                Poll::Pending => {
                    if stream.unended() >= USUAL_BYTES && self.wide.get().is_none() {
                        let wide = Wide::make(stream.stream().get_ref());
                        let _first = wide.map(|wide| self.wide.set(wide));
                    }
                    if self.woken.swap(who, Ordering::AcqRel) == TASK && who != TASK {
                        self.stepped_back.notify_one();
                    }
                    return;
                }
            }
        }
        *lines = None;
        drop(lines);
        let reason = "the server closed its standard output";
        self.inbox.lost(LinkError::closed(reason, true));
    }

    fn has_ended(&self) -> bool {
        let lines = self.lines.lock();
        lines.unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn closed() -> LinkError {
        LinkError::closed("the server closed its standard input", false)
    }
}

impl Link for StdioLink {
    fn send<'a>(&'a self, message: Outgoing<'a>) -> BoxFuture<'a, Result<(), LinkError>> {
        if message.id.is_some()
            && let Err(unread) = self.writer.has_room(message.text.len())
        {
            let error = LinkError {
                kind: LinkErrorKind::Unreachable,
                reason: format!(
                    "the server does not read its input, where {unread} bytes of earlier messages \
                     wait; wait until it does, or start it anew"
                ),
                sent: false,
            };
            return Box::pin(std::future::ready(Err(error)));
        }
        // Before it is: the server may take it and end before this goes on.
        if let Some(id) = message.id
            && !self.inbox.sent(id)
        {
            return Box::pin(std::future::ready(Ok(())));
        }
        let written = self.writer.request(message.text);
        let written = written.map_err(|_| Self::closed());
        Box::pin(std::future::ready(written))
    }

    fn post(&self, method: &str, _name: Option<&str>, message: String) {
        // A server that is gone needs none.
        let _closed = match method {
            "" => self.writer.answer(&message),
            _ => self.writer.write(&message),
        };
    }

    fn read(&self, flight: u64, cx: &mut Context<'_>) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_for(flight, cx);
    }

    fn left(&self, flight: u64) {
        let taken =
            self.woken
                .compare_exchange(flight, NOBODY, Ordering::AcqRel, Ordering::Acquire);
        if taken.is_ok() {
            self.inbox.wake_one();
        }
    }

    fn cancel(&self, _id: u64, notification: Option<String>) {
        if let Some(notification) = notification {
            // A server that is gone does nothing any more.
            let _closed = self.writer.write(&notification);
        }
    }

    fn agreed(&self, _version: &ProtocolVersion) {}

    fn is_congested(&self) -> bool {
        self.writer.is_congested()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.writer.close();
        let lines = self.lines.lock();
        let lines = lines.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(lines) = lines {
            // A server that still writes when its input has ended would die of a closed output, before
            // it has done what it does at its end.
            let mut rest = lines.into_stream();
            let drain = tokio::spawn(async move {
                let _ended = tokio::io::copy_buf(&mut rest, &mut tokio::io::sink()).await;
            });
            let _first = self.drain.set(drain.abort_handle());
        }
        self.inbox
            .lost(LinkError::closed("the connection was closed", true));
        Box::pin(std::future::ready(()))
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        for task in [&self.task, &self.drain] {
            if let Some(task) = task.get() {
                task.abort();
            }
        }
    }
}

/// Reads whenever no flight does.
async fn read_when_quiet(link: Weak<StdioLink>) {
    let mut seen = None;
    while let Some(reads) = link
        .upgrade()
        .map(|link| link.reads.load(Ordering::Relaxed))
    {
        let quiet = seen.replace(reads) == Some(reads);
        if quiet && !read_until_taken_over(&link).await {
            return;
        }
        tokio::time::sleep(QUIET).await;
    }
}

/// Reads until a flight does; false if nothing more will come.
async fn read_until_taken_over(link: &Weak<StdioLink>) -> bool {
    let Some(stepped_back) = link.upgrade().map(|link| Arc::clone(&link.stepped_back)) else {
        return false;
    };
    let reading = poll_fn(|cx| {
        let Some(link) = link.upgrade() else {
            return Poll::Ready(false);
        };
        link.read_for(TASK, cx);
        if link.has_ended() {
            Poll::Ready(false)
        } else if link.woken.load(Ordering::Acquire) == TASK {
            Poll::Pending
        } else {
            Poll::Ready(true)
        }
    });
    let goes_on = tokio::select! {
        // First: reading once more would have the task be woken instead of that flight.
        biased;
        () = stepped_back.notified() => true,
        goes_on = reading => goes_on,
    };
    // It may have read at the same time as the flight, and be the one who is woken.
    if let Some(link) = link.upgrade() {
        link.left(TASK);
    }
    goes_on
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::process::Stdio;
    use std::sync::atomic::AtomicBool;
    use std::task::{Wake, Waker};

    use tokio::process::{Child, Command};

    use super::*;
    use crate::failure::Failure;
    use crate::flight::Flight;

    const REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#;

    /// A link to a shell that does this.
    fn link(script: &str) -> (Child, Arc<Inbox>, Arc<StdioLink>) {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("a shell is there");
        let stdin = child.stdin.take().expect("it has an input");
        let stdout = child.stdout.take().expect("it has an output");
        let inbox = Inbox::new("s".into(), 1_000);
        let link = StdioLink::new(stdin, stdout, Arc::clone(&inbox));
        (child, inbox, link)
    }

    fn outgoing(id: u64) -> Outgoing<'static> {
        Outgoing {
            text: REQUEST,
            method: "tools/call",
            id: Some(id),
            name: None,
            parameters: &[],
            decided: None,
        }
    }

    /// Notes that it was woken.
    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }

    /// Otherwise what comes wakes nobody until the task reads again.
    #[tokio::test]
    async fn the_task_gives_the_reading_up_to_a_flight() {
        let (_child, inbox, link) = link("exec cat > /dev/null");
        link.task.get().expect("there is one").abort();
        let weak = Arc::downgrade(&link);
        // Which of two things is seen first was a matter of luck.
        for round in 0..40 {
            let mut task = pin!(read_until_taken_over(&weak));
            let mut of_task = Context::from_waker(Waker::noop());
            assert_eq!(task.as_mut().poll(&mut of_task), Poll::Pending);
            assert_eq!(link.woken.load(Ordering::Acquire), TASK);

            let id = inbox.open(None, false).expect("it is not lost");
            let woken = Arc::new(Woken::default());
            let waker = Waker::from(Arc::clone(&woken));
            let mut of_flight = Context::from_waker(&waker);
            assert!(inbox.poll_to_read(id, &mut of_flight).is_pending());
            link.read(id, &mut of_flight);
            let at_the_same_time = round % 2 == 1;
            if at_the_same_time {
                link.read_for(TASK, &mut of_task);
            }
            assert_eq!(task.as_mut().poll(&mut of_task), Poll::Ready(true));
            let who = link.woken.load(Ordering::Acquire);
            let reads_again = woken.0.load(Ordering::Acquire);
            let expected = match at_the_same_time {
                true => (NOBODY, true),
                false => (id, false),
            };
            assert_eq!((who, reads_again), expected);

            assert!(inbox.forget(id));
            link.left(id);
        }
    }

    /// The others come from calls, which are bounded themselves.
    #[tokio::test]
    async fn only_answers_keep_a_server_from_being_answered() {
        let (_child, _inbox, link) = link("exec sleep 100");
        // More than the pipe has room for.
        let long = "x".repeat(1 << 20);
        link.post("tasks/cancel", None, long);
        for _ in 0..1_000 {
            link.post("tasks/cancel", None, REQUEST.to_owned());
        }
        assert!(!link.is_congested());
        for _ in 0..1_000 {
            link.post("", None, REQUEST.to_owned());
        }
        assert!(link.is_congested());
    }

    /// The server takes a request and ends, and whoever reads hears of that before whoever
    /// sent it goes on: it must not count as one that never left.
    #[tokio::test]
    async fn a_request_counts_as_sent_before_its_server_can_have_taken_it() {
        let (mut child, inbox, link) = link("read -r request");
        let id = inbox.open(None, false).expect("it is not lost");
        let sending = link.send(outgoing(id));
        let read = poll_fn(|cx| {
            link.read(id, cx);
            inbox.poll(id, cx)
        });
        let Err(Failure::Lost(error)) = read.await else {
            panic!("there is no answer");
        };
        let closed = LinkError::closed("the server closed its standard output", true);
        assert_eq!(error, closed);
        assert_eq!(sending.await, Ok(()));
        assert!(child.wait().await.expect("it ends").success());
    }

    /// More than a pipe has room for.
    #[tokio::test]
    async fn a_server_may_write_when_its_input_has_ended() {
        let (mut child, inbox, link) = link("cat > /dev/null; head -c 1000000 /dev/zero && exit 7");
        link.close().await;
        assert!(!inbox.is_open());
        let ended = child.wait().await.expect("it ends");
        assert_eq!(ended.code(), Some(7));
    }

    /// It is sent again to the next one.
    #[tokio::test]
    async fn a_request_that_has_ended_is_not_sent() {
        let (mut child, inbox, link) = link("read -r request && exit 3; exit 0");
        let of_flight: Arc<dyn Link> = Arc::<StdioLink>::clone(&link);
        let flight = Flight::open(&inbox, &of_flight, None, "tools/call");
        let mut flight = flight.expect("it is not lost");
        inbox.lost(LinkError::closed("it ended", true));
        let sent = flight.send(outgoing(flight.id())).await;
        sent.expect("it has its end");
        let Err(Failure::Lost(error)) = flight.answer().await else {
            panic!("there is no answer");
        };
        assert_eq!(error, LinkError::closed("it ended", false));
        link.close().await;
        let ended = child.wait().await.expect("it ends");
        assert_eq!(ended.code(), Some(0), "it got nothing");
    }

    /// What cannot be written no server has, so that it may be sent to the next one.
    #[tokio::test]
    async fn a_request_that_cannot_be_written_was_not_sent() {
        let (mut child, inbox, link) = link("true");
        let link: Arc<dyn Link> = link;
        let flight = Flight::open(&inbox, &link, None, "tools/call");
        let mut flight = flight.expect("it is not lost");
        assert!(child.wait().await.expect("it ends").success());
        let sent = flight.send(outgoing(flight.id())).await;
        let Err(Failure::Lost(error)) = sent else {
            panic!("it is not sent");
        };
        let closed = LinkError::closed("the server closed its standard input", false);
        assert_eq!(error, closed);
    }
}
