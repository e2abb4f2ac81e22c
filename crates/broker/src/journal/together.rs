//! The lines of a run that are written together: those of all its calls that have come
//! to a line before anybody waits for something else.
//!
//! Each `write` costs more than making the line. Of calls that are made at once, all
//! have their lines in a few.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use super::{Journal, JournalError};

/// The longest line that waits for others, in bytes.
const LONG: usize = 16 << 10;

/// What one run has for a journal. Whoever polls the run's calls calls
/// [`Together::settle`] when none of them can go on by itself.
#[derive(Debug)]
pub(crate) struct Together {
    journal: Arc<Journal>,
    batch: Mutex<Batch>,
}

#[derive(Debug, Default)]
struct Batch {
    text: String,
    lines: Vec<Line>,
    wakers: Vec<Waker>,
    written: Arc<OnceLock<Written>>,
}

/// A line of a batch.
#[derive(Debug, Clone, Copy)]
struct Line {
    /// Where it ends in the text.
    end: usize,
    untaken: Untaken,
}

/// What becomes of a line that the file does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Untaken {
    /// Whoever waits for it is told.
    Told,
    /// It is written as soon as it can be: the call was made.
    Waits,
    /// Nothing: the call was not made.
    Lost,
}

/// What became of a batch: how many of its lines the file has, and why not all.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) lines: usize,
    pub(super) error: Option<JournalError>,
}

impl Together {
    pub(crate) fn new(journal: Arc<Journal>) -> Self {
        Self {
            journal,
            batch: Mutex::default(),
        }
    }

    /// Writes a line about a call that depends on it, with others. When this is ready,
    /// the kernel has the line; dropped before that, it may get it yet. Either way, `sent`
    /// is emptied if the file did not take it: that call is not made.
    pub(crate) async fn write(
        &self,
        line: &str,
        sent: &mut Option<Instant>,
    ) -> Result<(), JournalError> {
        if line.len() > LONG {
            self.settle();
            return self.journal.write(line).inspect_err(|_| *sent = None);
        }
        let (nth, written) = {
            let mut batch = self.batch();
            batch.push(line, Untaken::Told);
            (batch.lines.len() - 1, Arc::clone(&batch.written))
        };
        Ticket {
            together: self,
            nth,
            written,
            sent,
        }
        .await
    }

    /// Writes a line about a call that is over, with others. If the file does not take
    /// it, it waits: no further call is made before it is written.
    pub(crate) fn write_or_wait(&self, line: String) {
        if line.len() > LONG {
            self.settle();
            return self.journal.write_or_wait(line);
        }
        self.batch().push(&line, Untaken::Waits);
    }

    /// Writes a line about a call that was not made, with others, if the file takes it.
    pub(crate) fn write_if_taken(&self, line: &str) {
        if line.len() > LONG {
            self.settle();
            return self.journal.write_if_taken(line);
        }
        self.batch().push(line, Untaken::Lost);
    }

    /// Writes what has come together. True if a call can go on now.
    pub(crate) fn settle(&self) -> bool {
        // Held until the outcome is there: who looks for it finds it, or is woken for it.
        let mut batch = self.batch();
        let Batch {
            text,
            lines,
            wakers,
            written,
        } = std::mem::take(&mut *batch);
        if lines.is_empty() {
            return false;
        }
        let ends: Vec<usize> = lines.iter().map(|line| line.end).collect();
        let outcome = self.journal.write_together(&text, &ends);
        let mut start = 0;
        for (nth, line) in lines.iter().enumerate() {
            if nth >= outcome.lines {
                let text = text.get(start..line.end).unwrap_or_default();
                match line.untaken {
                    Untaken::Told => {}
                    Untaken::Waits => self.journal.write_or_wait(text.to_owned()),
                    Untaken::Lost => self.journal.write_if_taken(text),
                }
            }
            start = line.end;
        }
        // Nobody else has a batch that was taken.
        let _first = written.set(outcome);
        drop(batch);
        let goes_on = !wakers.is_empty();
        wakers.into_iter().for_each(Waker::wake);
        goes_on
    }

    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Together {
    fn drop(&mut self) {
        self.settle();
    }
}

impl Batch {
    fn push(&mut self, line: &str, untaken: Untaken) {
        self.text.push_str(line);
        self.lines.push(Line {
            end: self.text.len(),
            untaken,
        });
    }
}

/// Waits for a line to be written.
struct Ticket<'a> {
    together: &'a Together,
    nth: usize,
    written: Arc<OnceLock<Written>>,
    sent: &'a mut Option<Instant>,
}

impl Future for Ticket<'_> {
    type Output = Result<(), JournalError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut batch = self.together.batch();
        match self.written.get() {
            Some(Written { lines, error }) if self.nth >= *lines => {
                Poll::Ready(error.clone().map_or(Ok(()), Err))
            }
            Some(_) => Poll::Ready(Ok(())),
            None => {
                batch.wakers.push(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut batch = self.together.batch();
        if let Some(written) = self.written.get() {
            if self.nth >= written.lines {
                *self.sent = None;
            }
            return;
        }
        // Whoever gave the call up has another line for it, that says so.
        if Arc::ptr_eq(&batch.written, &self.written)
            && let Some(line) = batch.lines.get_mut(self.nth)
        {
            line.untaken = Untaken::Waits;
        }
    }
}

#[cfg(test)]
mod tests;
