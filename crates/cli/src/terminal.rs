//! The controlling terminal, for one conversation at a time.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::termios::{QueueSelector, tcflush, tcgetwinsize};
use tokio::sync::{Mutex, MutexGuard, mpsc};

use crate::{log, print, progress, script_output};

/// Time for the signal that comes with the terminal's end.
const HANG_UP: Duration = Duration::from_secs(2);
/// Time to notice that a withdrawn question was replaced by another one.
const ANOTHER: Duration = Duration::from_secs(1);
/// Time in which a second Enter by mistake arrives: it must not answer the next question.
const TWICE: Duration = Duration::from_millis(400);

/// True if a person can be asked: there is a controlling terminal, and standard error shows the
/// question.
pub fn is_attended() -> bool {
    io::stderr().is_terminal() && open().is_ok()
}

/// A conversation. Others wait until it is dropped, at any point.
pub struct Conversation {
    lines: MutexGuard<'static, Lines>,
    terminal: File,
    question: Question,
}

/// The state of a conversation's last question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Question {
    /// There is no question, or it is answered.
    Settled,
    /// A person may be typing the answer.
    Open,
    /// The terminal has ended.
    Unanswered,
}

impl Conversation {
    /// Waits for its turn, and hides the live lines.
    pub async fn begin() -> io::Result<Self> {
        let lines = lines().lock().await;
        let terminal = open()?;
        // The terminal may be taking the script's output.
        tokio::task::spawn_blocking(script_output::hold).await?;
        progress::hide();
        log::hold();
        Ok(Self {
            lines,
            terminal,
            question: Question::Settled,
        })
    }

    /// The width of the terminal, if known.
    pub fn columns(&self) -> Option<usize> {
        let size = tcgetwinsize(&self.terminal).ok()?;
        (size.ws_col > 0).then(|| size.ws_col.into())
    }

    /// Shows a text. Servers' words in it must be harmless already.
    pub async fn show(&self, text: &str) -> io::Result<()> {
        let mut terminal = self.terminal.try_clone()?;
        let text = text.to_owned();
        // A person can stop the terminal's output (Ctrl-S), and other calls need this thread.
        tokio::task::spawn_blocking(move || terminal.write_all(text.as_bytes())).await?
    }

    /// Drops what was typed before, shows a text, and waits for a line; `None` if the terminal has
    /// ended.
    pub async fn ask(&mut self, text: &str) -> io::Result<Option<String>> {
        self.question = Question::Open;
        // A person may still be answering the withdrawn question.
        if self.lines.is_withdrawn {
            tokio::time::sleep(ANOTHER).await;
            self.lines.is_withdrawn = false;
        }
        if let Some(settled) = self.lines.settled.take() {
            tokio::time::sleep(TWICE.saturating_sub(settled.elapsed())).await;
        }
        // Earlier input is not an answer. After the prompt nothing is dropped, since a person may
        // answer at once.
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
            // The signal that ends the command is on its way, unless it is ignored.
            tokio::time::sleep(HANG_UP).await;
        }
        line
    }

    /// Asks until `read` takes the answer, in lower case; `None` if the terminal has ended.
    pub async fn choose<T>(
        &mut self,
        prompt: &str,
        keys: &[&str],
        read: impl Fn(&str) -> Option<T>,
    ) -> io::Result<Option<T>> {
        loop {
            let Some(line) = self.ask(prompt).await? else {
                return Ok(None);
            };
            if let Some(answer) = read(line.trim().to_lowercase().as_str()) {
                return Ok(Some(answer));
            }
            let (last, first) = keys.split_last().unwrap_or((&"", &[]));
            let keys = format!("├ type {} or {last}, then Enter\n", first.join(", "));
            self.show(&keys).await?;
        }
    }
}

/// The items with these numbers, which begin with 1, with blanks or commas between; `None` if there
/// is anything else.
pub fn numbered<T: Clone>(text: &str, all: &[T]) -> Option<Vec<T>> {
    let numbers = text.split([' ', ',']).filter(|word| !word.is_empty());
    let item = |word: &str| {
        all.get(word.parse::<usize>().ok()?.checked_sub(1)?)
            .cloned()
    };
    let chosen: Option<Vec<T>> = numbers.map(item).collect();
    chosen.filter(|chosen| !chosen.is_empty())
}

impl Drop for Conversation {
    fn drop(&mut self) {
        match self.question {
            Question::Settled => {}
            Question::Open => {
                self.lines.is_withdrawn = true;
                print::err("\n(withdrawn: no answer is taken any more)\n");
            }
            Question::Unanswered => print::err("\n"),
        }
        // Before the next conversation, which begins when `lines` are dropped.
        log::release();
        progress::unhide();
        script_output::release();
    }
}

/// Typed lines, read by one thread: a read cannot be cancelled with its question, and a second
/// reader would take every other line.
struct Lines {
    wanted: std::sync::mpsc::Sender<()>,
    read: mpsc::UnboundedReceiver<io::Result<Option<String>>>,
    /// The thread is reading, perhaps for a conversation that has ended.
    reading: bool,
    /// The last question was withdrawn while it waited for a line.
    is_withdrawn: bool,
    /// The time of the last answer.
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

    /// Drops lines that came outside of a question.
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

/// Reads a line for each order. Input after the command is left to the shell.
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

/// Opens the controlling terminal.
pub fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}
