//! Lines that are written together: those of calls that are made, or answered, in
//! one turn of a task.
//!
//! A `write` costs more than all else about a line, and for many lines hardly more
//! than for one. So a line that comes right after another of its sort, while other
//! calls are under way, is not written at once. A task writes it, with all that have
//! come by then, which runs as soon as the one that makes the calls waits for
//! something; until then nobody goes on whose line it is. A call that is alone does
//! not wait: to be woken once more costs as much as a `write`.

use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::{Journal, JournalError};

/// Lines follow one another if they are given within this time: faster than most
/// servers answer a call.
const TOGETHER: Duration = Duration::from_micros(50);
/// Bytes of lines, beyond which none waits any longer.
const MOST_BYTES: usize = 64 << 10;

/// What a line is about, which says what becomes of it if the file does not take
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// A call that is to be sent: it is not sent then.
    Before,
    /// A call that was to be sent, and is over: the line is kept.
    After,
    /// A call that is not sent: the line is lost.
    NotSent,
}

/// The lines that are to be written next, and whether more are waited for.
#[derive(Debug)]
pub(super) struct Group {
    /// [`TOGETHER`], but in tests.
    pub(super) together: Duration,
    pub(super) text: String,
    lines: Vec<About>,
    /// There if a line waits.
    waited_for: Option<WaitedFor>,
    /// Calls with a line before them and none after.
    under_way: usize,
    last_before: Option<Instant>,
    last_after: Option<Instant>,
}

/// What those share whose lines wait.
#[derive(Debug)]
struct WaitedFor {
    told: Arc<Told>,
    /// Where the task runs that writes them.
    thread: ThreadId,
}

/// How those hear of it whose lines waited.
#[derive(Debug, Default)]
pub(super) struct Told {
    written: OnceLock<Written>,
    notify: Notify,
}

/// What became of a group.
#[derive(Debug, Clone, Default)]
pub(super) struct Written {
    /// How many of its lines the kernel has: the first ones.
    pub(super) taken: usize,
    /// Why it has not all.
    pub(super) error: Option<JournalError>,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            together: TOGETHER,
            text: String::new(),
            lines: Vec::new(),
            waited_for: None,
            under_way: 0,
            last_before: None,
            last_after: None,
        }
    }
}

impl Group {
    /// Takes a line, and says which one of the group it is.
    pub(super) fn push(&mut self, line: &str, about: About) -> usize {
        match about {
            About::Before => self.under_way += 1,
            About::After => self.under_way = self.under_way.saturating_sub(1),
            About::NotSent => {}
        }
        self.text.push_str(line);
        self.lines.push(about);
        self.lines.len() - 1
    }

    /// Whether the line that was just pushed may wait for others.
    pub(super) fn may_wait(&mut self, about: About, now: Instant) -> bool {
        let (last, others) = match about {
            About::Before => (&mut self.last_before, self.under_way.saturating_sub(1)),
            About::After => (&mut self.last_after, self.under_way),
            About::NotSent => return false,
        };
        let last = last.replace(now);
        // A task of another thread may be long about what it does.
        let is_here = |waited_for: &WaitedFor| waited_for.thread == thread::current().id();
        others > 0
            && last.is_some_and(|last| now.duration_since(last) < self.together)
            && self.text.len() < MOST_BYTES
            && self.waited_for.as_ref().is_none_or(is_here)
    }

    /// Has a line wait, with all before it; and the first one of them says so.
    pub(super) fn wait(&mut self) -> (Arc<Told>, bool) {
        let is_first = self.waited_for.is_none();
        let waited_for = self.waited_for.get_or_insert_with(|| WaitedFor {
            told: Arc::default(),
            thread: thread::current().id(),
        });
        (Arc::clone(&waited_for.told), is_first)
    }

    /// Whether nothing is to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines about calls that are over which the kernel does not have.
    pub(super) fn untaken_after(&self, written: &Written) -> impl Iterator<Item = &str> {
        let lines = self.text.split_inclusive('\n').zip(&self.lines);
        let untaken = lines.skip(written.taken);
        untaken.filter_map(|(line, about)| (*about == About::After).then_some(line))
    }

    /// Empties the group, and says whom to wake, outside of every lock.
    pub(super) fn end(&mut self, written: &Written) -> Option<Arc<Told>> {
        let untaken = self.lines.get(written.taken..).unwrap_or_default();
        let unsent = untaken.iter().filter(|about| **about == About::Before);
        self.under_way = self.under_way.saturating_sub(unsent.count());
        self.text.clear();
        self.text.shrink_to(MOST_BYTES);
        self.lines.clear();
        let told = self.waited_for.take()?.told;
        // A group is written once.
        let _first = told.written.set(written.clone());
        Some(told)
    }
}

impl Told {
    /// Wakes those who wait.
    pub(super) fn wake(&self) {
        self.notify.notify_waiters();
    }
}

impl Written {
    /// Not one line.
    pub(super) fn nothing(error: JournalError) -> Self {
        Self {
            taken: 0,
            error: Some(error),
        }
    }

    /// What became of one line.
    pub(super) fn of(&self, index: usize) -> Result<(), JournalError> {
        match &self.error {
            Some(error) if index >= self.taken => Err(error.clone()),
            _ => Ok(()),
        }
    }
}

/// Has a task write what waits; also if its runtime ends before. Not to be called
/// under the journal's lock: a runtime that has ended drops the task at once.
pub(super) fn flush_soon(journal: &Arc<Journal>, runtime: &Handle) {
    let flush = FlushOnDrop(Arc::clone(journal));
    runtime.spawn(async move { drop(flush) });
}

struct FlushOnDrop(Arc<Journal>);

impl Drop for FlushOnDrop {
    fn drop(&mut self) {
        self.0.flush();
    }
}

/// A line that waits to be written. If nobody waits for it any more, it is written
/// at once, with all that wait.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(super) journal: Arc<Journal>,
    pub(super) told: Arc<Told>,
    /// Which line of its group it is.
    pub(super) index: usize,
}

impl Pending {
    /// Waits until it is written.
    pub(crate) async fn written(&self) -> Result<(), JournalError> {
        let notified = self.told.notify.notified();
        if self.told.written.get().is_none() {
            notified.await;
        }
        self.outcome()
    }

    /// Has it written at once.
    pub(crate) fn write(&self) -> Result<(), JournalError> {
        if self.told.written.get().is_none() {
            self.journal.flush();
        }
        self.outcome()
    }

    fn outcome(&self) -> Result<(), JournalError> {
        // It is told before anybody is woken, and before a flush is over.
        match self.told.written.get() {
            Some(written) => written.of(self.index),
            None => Err(self.journal.unwritten("the line was not tried")),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // What became of it, its call has asked for, or no longer wants to know.
        let _written = self.write();
    }
}

#[cfg(test)]
mod tests;
