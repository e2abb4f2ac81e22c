//! The controlling terminal, for one conversation at a time.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressDrawTarget};
use rustix::termios::{QueueSelector, tcflush, tcgetwinsize};
use tokio::sync::{Mutex, MutexGuard, mpsc};

use crate::{log, print};

/// Time for the signal that comes with the end of the terminal.
const HANG_UP: Duration = Duration::from_secs(2);
/// Time to see that a question is another than the one that was there a moment
/// ago.
const ANOTHER: Duration = Duration::from_secs(1);
/// In which a key that is struck twice has come twice: the second time is no answer to the next
/// question.
const TWICE: Duration = Duration::from_millis(400);

/// Whether somebody is there to answer: both a controlling terminal and a
/// standard error that shows what is asked.
pub fn is_attended() -> bool {
    io::stderr().is_terminal() && open().is_ok()
}

/// A conversation. Others wait until it is dropped, which may happen at any
/// point: what is typed after that is for the next one.
pub struct Conversation {
    // The first to be dropped: the live lines are back before somebody else's
    // turn begins.
    _quiet: Quiet,
    lines: MutexGuard<'static, Lines>,
    terminal: File,
    question: Question,
}

/// How far the last question of a conversation is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Question {
    /// There is none, or it has its answer.
    Settled,
    /// Somebody may be typing the answer.
    Open,
    /// The terminal has ended under it.
    Unanswered,
}

impl Conversation {
    /// Waits for its turn and takes the live lines off the terminal.
    pub async fn begin(progress: &MultiProgress) -> io::Result<Self> {
        let lines = lines().lock().await;
        let terminal = open()?;
        Ok(Self {
            _quiet: Quiet::over(progress),
            lines,
            terminal,
            question: Question::Settled,
        })
    }

    /// How wide the terminal is now, if it knows.
    pub fn columns(&self) -> Option<usize> {
        let size = tcgetwinsize(&self.terminal).ok()?;
        (size.ws_col > 0).then(|| size.ws_col.into())
    }

    /// Shows a text. What servers say of themselves in it must be harmless
    /// already.
    pub async fn show(&self, text: &str) -> io::Result<()> {
        let mut terminal = self.terminal.try_clone()?;
        let text = text.to_owned();
        // A person can hold the terminal up (Ctrl-S), and the calls that go on
        // meanwhile need this thread.
        tokio::task::spawn_blocking(move || terminal.write_all(text.as_bytes())).await?
    }

    /// Says what may be typed, where something else was.
    pub async fn show_keys(&self, keys: &[&str]) -> io::Result<()> {
        self.show(&format!("├ type {}, then Enter\n", either(keys)))
            .await
    }

    /// Forgets what was typed before, shows a text, and waits for a line; `None`
    /// if the terminal has ended.
    pub async fn ask(&mut self, text: &str) -> io::Result<Option<String>> {
        self.question = Question::Open;
        // Whoever answers the question that was withdrawn has not read this one, in
        // whose place it comes.
        if self.lines.is_withdrawn {
            tokio::time::sleep(ANOTHER).await;
            self.lines.is_withdrawn = false;
        }
        if let Some(settled) = self.lines.settled.take() {
            tokio::time::sleep(TWICE.saturating_sub(settled.elapsed())).await;
        }
        // What was typed before the question was there is no answer to it. Whoever has
        // seen the prompt may answer at once, so nothing is forgotten after it.
        self.lines.forget();
        tcflush(&self.terminal, QueueSelector::IFlush)?;
        self.show(text).await?;
        let line = self.lines.next().await;
        self.question = match line {
            Ok(Some(_)) => {
                self.lines.settled = Some(Instant::now());
                Question::Settled
            }
            Ok(None) | Err(_) => Question::Unanswered,
        };
        if self.question == Question::Unanswered && open().is_err() {
            // It has gone, and the signal that ends the command is on its way. Until
            // then nobody has answered, unless that signal is ignored.
            tokio::time::sleep(HANG_UP).await;
        }
        line
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        match self.question {
            Question::Settled => {}
            Question::Open => {
                self.lines.is_withdrawn = true;
                print::err("\n(withdrawn: no answer is taken any more)\n");
            }
            // What comes next is no answer to this.
            Question::Unanswered => print::err("\n"),
        }
    }
}

/// No live lines are drawn, and nothing is logged, as long as this lives. They are
/// hidden rather than held up: the calls that report to them go on while a person
/// thinks.
struct Quiet {
    progress: MultiProgress,
}

impl Quiet {
    fn over(progress: &MultiProgress) -> Self {
        drop(progress.clear());
        progress.set_draw_target(ProgressDrawTarget::hidden());
        log::hold();
        Self {
            progress: progress.clone(),
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        log::release();
        self.progress.set_draw_target(ProgressDrawTarget::stderr());
    }
}

/// Lines typed at the terminal, read by a thread of its own: a read cannot be
/// given up when the question is, and a second one beside it would take every
/// other answer.
struct Lines {
    wanted: std::sync::mpsc::Sender<()>,
    read: mpsc::UnboundedReceiver<io::Result<Option<String>>>,
    /// Whether the thread is reading for somebody who may have left.
    reading: bool,
    /// Whether the last question was taken back while it waited for a line.
    is_withdrawn: bool,
    /// When the last question had its answer.
    settled: Option<Instant>,
}

impl Lines {
    async fn next(&mut self) -> io::Result<Option<String>> {
        if !self.reading {
            self.reading = self.wanted.send(()).is_ok();
        }
        let line = self.read.recv().await;
        self.reading = false;
        line.unwrap_or_else(|| Err(io::Error::other("the thread that reads the terminal ended")))
    }

    /// Drops a line that came when nobody waited.
    fn forget(&mut self) {
        while self.read.try_recv().is_ok() {
            self.reading = false;
        }
    }
}

fn lines() -> &'static Mutex<Lines> {
    static LINES: OnceLock<Mutex<Lines>> = OnceLock::new();
    LINES.get_or_init(|| {
        let (wanted, orders) = std::sync::mpsc::channel();
        let (found, read) = mpsc::unbounded_channel();
        let started = std::thread::Builder::new()
            .name("callgate-terminal".to_owned())
            .spawn(move || read_lines(&orders, &found));
        if let Err(error) = started {
            tracing::warn!(%error, "the terminal cannot be read");
        }
        Mutex::new(Lines {
            wanted,
            read,
            reading: false,
            is_withdrawn: false,
            settled: None,
        })
    })
}

/// Reads a line for each order. Without one the terminal is left alone: what is
/// typed after the command is its shell's.
fn read_lines(
    orders: &std::sync::mpsc::Receiver<()>,
    found: &mpsc::UnboundedSender<io::Result<Option<String>>>,
) {
    let mut terminal = None;
    for () in orders {
        let mut read = || -> io::Result<Option<String>> {
            let terminal = match &mut terminal {
                Some(terminal) => terminal,
                None => terminal.insert(BufReader::new(open()?)),
            };
            let mut line = String::new();
            let bytes = terminal.read_line(&mut line)?;
            Ok((bytes > 0).then_some(line))
        };
        if found.send(read()).is_err() {
            return;
        }
    }
}

/// One of these, in words.
fn either(keys: &[&str]) -> String {
    match keys {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        keys => keys.concat(),
    }
}

/// Opens the terminal that this process belongs to.
pub fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}
