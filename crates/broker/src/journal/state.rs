//! Which of its lines a journal's file has, and where the others are: beside it, where they
//! outlive the process, or, if nothing takes them, in memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::file::{Bounds, LineFile, append};
use super::wal::{Lent, Wal};
use super::{JournalError, MOVED_WITHIN};
use crate::moment::Moment;

/// The most lines that wait for a file that takes none. No call is made while
/// one waits, so these are of calls that were in flight.
const MAX_WAITING: usize = 10_000;

/// The longest line that is noted beside the file, in bytes. A `write` of it costs little more
/// than two copies.
const LONG: usize = 16 << 10;

/// How many bytes of lines stand beside the file before it is to take them without delay.
const MANY: usize = 64 << 10;

/// How late the runtime may be that is to move them.
const LATE: Duration = MOVED_WITHIN.saturating_mul(2);

/// When it is tried again to make a file beside the journal's, where there was none to be made.
const AGAIN: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct State {
    pub(super) file: LineFile,
    pub(super) bounds: Bounds,
    beside: Beside,
    /// How many wait until lines that were lent are back.
    pub(super) wanted: usize,
    /// How many calls have a line before them and none after them yet.
    pub(super) in_flight: usize,
    /// Whether the file did not take what it was last to take.
    is_behind: bool,
    /// Since when lines are about to be moved to the file, or, if none are there, would be.
    due: Option<Moment>,
    /// Lines of calls that were made, which nothing has taken.
    waiting: VecDeque<Vec<u8>>,
}

/// What takes lines before the file does.
#[derive(Debug)]
enum Beside {
    /// No line has come yet.
    Unused,
    Open(Wal),
    /// None could be made there, at this time.
    Nothing(Instant),
}

impl State {
    pub(super) fn new(file: LineFile, bounds: Bounds) -> Self {
        Self {
            file,
            bounds,
            beside: Beside::Unused,
            wanted: 0,
            in_flight: 0,
            is_behind: false,
            due: None,
            waiting: VecDeque::new(),
        }
    }

    /// Whether a thread has the file take lines. Until they are back, nobody else does anything
    /// with the file.
    pub(super) fn is_lent(&self) -> bool {
        matches!(&self.beside, Beside::Open(wal) if wal.is_lent())
    }

    /// Whether there are so many lines that the file is to take them, and nobody waits for it.
    pub(super) fn has_many(&self) -> bool {
        matches!(&self.beside, Beside::Open(wal) if wal.text().len() >= MANY)
            && !self.is_lent()
            && self.wanted == 0
            && !self.is_behind
            && self.waiting.is_empty()
    }

    /// If there are many lines, lends them to a thread that has the file take them while other
    /// calls go on; where there are no others, or it cannot, has the file take them now.
    pub(super) fn lend_many(&mut self) -> Option<Loan> {
        if !self.has_many() {
            return None;
        }
        let loan = if self.in_flight > 1 {
            self.lend()
        } else {
            None
        };
        if loan.is_none() {
            // The lines are there, whatever comes of this.
            self.flush_or_say();
        }
        loan
    }

    /// Lends the lines that stand beside the file to a thread that has it take them. `None`
    /// where that is more than one `write`.
    pub(super) fn lend(&mut self) -> Option<Loan> {
        let Beside::Open(wal) = &mut self.beside else {
            return None;
        };
        self.file.look_if_due().ok()?;
        if !self.file.has_room(wal.text().len(), &self.bounds) {
            return None;
        }
        let file = self.file.to_append_to()?;
        wal.aim(self.file.place());
        Some(Loan {
            lines: wal.lend(),
            file,
        })
    }

    /// Has lines back, with what the file has taken of them.
    pub(super) fn take_back(&mut self, loan: Loan, taken: io::Result<usize>) {
        if let Beside::Open(wal) = &mut self.beside {
            let text = loan.lines.text();
            let (bytes, taken) = (text.len(), self.file.took(text, taken));
            wal.take_back(loan.lines);
            let taken = drop_taken(wal, bytes, taken);
            self.note_taken(&taken);
        }
    }

    /// Takes a line about a call that depends on it, behind all that are there.
    pub(super) fn take(&mut self, line: &[u8]) -> Result<(), JournalError> {
        self.take_within(line, true)
    }

    /// Takes a line about a call that was made: if there is no room for it, beyond what the
    /// file may have, and if nothing takes it, in memory.
    pub(super) fn take_or_wait(&mut self, line: &[u8]) {
        let Err(error) = self.take_within(line, false) else {
            return;
        };
        // It may be the file alone that takes nothing.
        if self.waiting.is_empty() && self.note(line, false) {
            return;
        }
        if self.waiting.len() < MAX_WAITING {
            tracing::error!(%error, "a call has no line after it yet");
            self.waiting.push_back(line.to_owned());
        } else {
            tracing::error!(%error, "a call has no line after it: too many wait already");
        }
    }

    /// [`Self::catch_up`]; what it does not, the log says.
    pub(super) fn catch_up_or_say(&mut self) {
        if let Err(error) = self.catch_up() {
            let lines = self.waiting.len();
            if lines > 0 {
                tracing::error!(%error, lines, "calls have no line after them yet");
            }
        }
    }

    /// True once, if lines stand beside the file and nobody is about to move them.
    pub(super) fn is_moving_due(&mut self, now: Moment) -> bool {
        if self.beside.is_empty() {
            return false;
        }
        let Some(due) = self.due else {
            self.due = Some(now);
            return true;
        };
        // The runtime that it is left to is at a standstill.
        if now.since(due) > LATE && !self.is_behind && !self.is_lent() {
            self.flush_or_say();
            self.due = Some(now);
        }
        false
    }

    /// Moves the lines that were due by now. If the file does not take them, it is tried again,
    /// by the next call too. False if there are none.
    pub(super) fn move_due(&mut self) -> bool {
        let now = Moment::now();
        let is_new = self.due.is_some_and(|due| now.since(due) < MOVED_WITHIN);
        if !is_new && !self.beside.is_empty() {
            self.flush_or_say();
            self.due = Some(now);
            return true;
        }
        is_new
    }

    /// Moves what there is: nobody does it later.
    pub(super) fn moves_no_more(&mut self) {
        self.due = None;
        self.flush_or_say();
    }

    /// As if the runtime had been at a standstill.
    #[cfg(test)]
    pub(super) fn make_late(&mut self) {
        self.due = self.due.map(|due| due.before(LATE));
    }

    /// Whether there is somebody who moves lines.
    #[cfg(test)]
    pub(super) fn is_moving(&self) -> bool {
        self.due.is_some()
    }

    fn take_within(&mut self, line: &[u8], bounded: bool) -> Result<(), JournalError> {
        if self.is_behind || !self.waiting.is_empty() {
            self.catch_up()?;
        }
        if self.beside.is_empty() {
            // What leads to no file, and a file that nobody finds, take nothing that lasts.
            self.file.look_if_due()?;
            self.beside.leave_if_gone();
        }
        if self.note(line, bounded) {
            return Ok(());
        }
        self.flush()?;
        self.file.look_if_due()?;
        match self.file.make_room(line.len(), &self.bounds) {
            Err(JournalError::Full { .. }) if !bounded => {}
            made => made?,
        }
        if self.note(line, bounded) {
            return Ok(());
        }
        match self.file.write(line) {
            // A record is there also where its end is not.
            Err((taken, error)) if taken + 1 < line.len() => Err(error),
            _ => Ok(()),
        }
    }

    /// Notes a line beside the file, if there is room, there and, where it is `bounded`, in the
    /// file.
    pub(super) fn note(&mut self, line: &[u8], bounded: bool) -> bool {
        if line.len() > LONG {
            return false;
        }
        let Some(wal) = self.beside.wal(&self.file) else {
            return false;
        };
        let bytes = wal.text().len() + line.len();
        (!bounded || self.file.has_room(bytes, &self.bounds)) && wal.append(line)
    }

    /// Has the file take all lines.
    fn catch_up(&mut self) -> Result<(), JournalError> {
        self.flush()?;
        while let Some(line) = self.waiting.pop_front() {
            let waiting = std::mem::take(&mut self.waiting);
            let taken = self.take_within(&line, false);
            self.waiting = waiting;
            if taken.is_err() {
                self.waiting.push_front(line);
            }
            taken?;
        }
        self.flush()
    }

    /// Has the file take the lines that stand beside it.
    fn flush(&mut self) -> Result<(), JournalError> {
        let Beside::Open(wal) = &mut self.beside else {
            return Ok(());
        };
        let taken = drain(wal, &mut self.file, &self.bounds);
        self.note_taken(&taken);
        taken
    }

    /// [`Self::flush`]; what the file does not take, the log says.
    pub(super) fn flush_or_say(&mut self) {
        let _said = self.flush();
    }

    /// Has the file take all there is, for the last time, and leaves nothing beside it that is not
    /// needed.
    pub(super) fn close(&mut self) {
        if let Err(error) = self.catch_up() {
            let lines = self.waiting.len();
            if lines > 0 {
                tracing::error!(%error, lines, "calls have no line after them, and get none");
            }
            if !self.beside.is_empty() {
                tracing::error!(%error, "lines of calls stay in a file beside the ledger");
            }
        }
        self.beside = Beside::Unused;
    }

    /// Notes whether the file has taken what stood beside it.
    fn note_taken(&mut self, taken: &Result<(), JournalError>) {
        if let Err(error) = taken
            && !self.is_behind
            && let Beside::Open(wal) = &self.beside
        {
            let bytes = wal.text().len();
            tracing::error!(%error, bytes, "lines of calls stay beside the ledger for now");
        }
        self.is_behind = taken.is_err();
    }
}

/// Lines for a file, as another thread has them.
#[derive(Debug)]
pub(super) struct Loan {
    lines: Lent,
    file: Arc<File>,
}

impl Loan {
    /// Has the file take them by one `write`.
    pub(super) fn write(&self) -> io::Result<usize> {
        // It may have been a while until somebody came to this.
        if self.file.metadata()?.nlink() == 0 {
            return Err(io::Error::other("it was deleted"));
        }
        append(&self.file, self.lines.text())
    }
}

impl Beside {
    /// What takes lines; made with the first one.
    fn wal(&mut self, file: &LineFile) -> Option<&mut Wal> {
        let is_to_be_made = match self {
            Self::Unused => true,
            Self::Nothing(tried) => tried.elapsed() >= AGAIN,
            Self::Open(_) => false,
        };
        if is_to_be_made {
            *self = match Wal::create(file.path()) {
                Ok(wal) => Self::Open(wal),
                Err(error) => {
                    tracing::debug!(%error, "each line is written to the ledger by itself");
                    Self::Nothing(Instant::now())
                }
            };
        }
        match self {
            Self::Open(wal) => Some(wal),
            Self::Unused | Self::Nothing(_) => None,
        }
    }

    fn is_empty(&self) -> bool {
        !matches!(self, Self::Open(wal) if !wal.is_empty())
    }

    /// Has another one made, if this was deleted.
    fn leave_if_gone(&mut self) {
        if matches!(self, Self::Open(wal) if !wal.is_there()) {
            *self = Self::Unused;
        }
    }
}

/// Has a file take lines in their order, those together for which it has room. They were noted
/// when it had room, or are of calls that were made: where it has none by now, they go beyond
/// it.
pub(super) fn drain(
    wal: &mut Wal,
    file: &mut LineFile,
    bounds: &Bounds,
) -> Result<(), JournalError> {
    while !wal.is_empty() {
        file.look_if_due()?;
        let text = wal.text();
        let ends = memchr::memchr_iter(b'\n', text).map(|end| end + 1);
        let fits = ends.take_while(|end| file.has_room(*end, bounds)).last();
        let Some(end) = fits else {
            let Some(first) = memchr::memchr(b'\n', text).map(|end| end + 1) else {
                return Err(file.unwritten("what stands beside it ends in the middle of a line"));
            };
            match file.make_room(first, bounds) {
                Err(JournalError::Full { .. }) => {}
                made => made?,
            }
            if !file.has_room(first, bounds) {
                write(wal, file, first)?;
            }
            continue;
        };
        write(wal, file, end)?;
    }
    Ok(())
}

/// Has a file take so many bytes of lines by one `write`.
fn write(wal: &mut Wal, file: &mut LineFile, bytes: usize) -> Result<(), JournalError> {
    wal.aim(file.place());
    let text = wal.text();
    let taken = file.write(text.get(..bytes).unwrap_or(text));
    drop_taken(wal, bytes, taken)
}

/// Drops the lines that a file has taken, of so many bytes that it was to take.
fn drop_taken(
    wal: &mut Wal,
    bytes: usize,
    taken: Result<(), (usize, JournalError)>,
) -> Result<(), JournalError> {
    let (taken, error) = match taken {
        Ok(()) => (bytes, None),
        Err((taken, error)) => (taken, Some(error)),
    };
    // A record is there also where its end is not.
    let text = wal.text();
    let whole = text.get(..=taken).unwrap_or(text);
    let whole = memchr::memrchr(b'\n', whole).map_or(0, |end| end + 1);
    wal.advance(whole);
    error.map_or(Ok(()), Err)
}
