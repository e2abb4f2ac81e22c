//! Waiting for replies that come soon without going to sleep.
//!
//! A thread that sleeps on a processor that is idle, too, takes about as long to wake up as a short
//! call takes. So the isolate's thread watches the socket for a moment first, if the last wait was
//! short, and gives the processor to whoever else wants it while it does.

use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long it watches. As script time, a script pays it once a wait at most.
const WATCH: Duration = Duration::from_micros(100);

/// A wait longer than this is expected to be followed by one that is, too.
const SHORT: Duration = Duration::from_micros(300);

/// What is known of the waits of the isolate's thread.
#[derive(Debug)]
pub(super) struct Waiting {
    socket: RawFd,
    start: Instant,
    /// When the wait began, and how long the last one was, in nanoseconds.
    since: AtomicU64,
    last: AtomicU64,
}

impl Waiting {
    /// Waits for this socket, which stays open as long as the process lives.
    pub(super) fn new(socket: &UnixStream) -> Self {
        Self {
            socket: socket.as_raw_fd(),
            start: Instant::now(),
            since: AtomicU64::new(0),
            last: AtomicU64::new(0),
        }
    }

    /// The runtime has nothing to do and is about to go to sleep.
    pub(super) fn begins(&self, for_calls: bool) {
        let began = self.start.elapsed();
        self.since.store(nanoseconds(began), Ordering::Relaxed);
        if !for_calls || self.last.load(Ordering::Relaxed) > nanoseconds(SHORT) {
            return;
        }
        while !self.is_readable() && self.start.elapsed() < began + WATCH {
            std::thread::yield_now();
        }
    }

    /// It has something to do again.
    pub(super) fn ends(&self) {
        let since = self.since.load(Ordering::Relaxed);
        let now = nanoseconds(self.start.elapsed());
        self.last
            .store(now.saturating_sub(since), Ordering::Relaxed);
    }

    fn is_readable(&self) -> bool {
        let mut poll = libc::pollfd {
            fd: self.socket,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one live value, and a count that says so.
        unsafe { libc::poll(&raw mut poll, 1, 0) != 0 }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
