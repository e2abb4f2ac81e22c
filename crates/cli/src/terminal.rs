//! The controlling terminal, for one conversation at a time.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use callgate_text::{text_width, wrapped};
use rustix::termios::{LocalModes, QueueSelector, tcflush, tcgetattr, tcgetwinsize};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::{log, print, progress, script_output, style};

/// Wait for the signal that follows the end of the terminal.
const HANG_UP: Duration = Duration::from_secs(2);
/// Pause after a withdrawn question, so that a person notices the next one.
const AFTER_WITHDRAWAL: Duration = Duration::from_secs(1);
/// The place of the typed answer after a prompt.
const ANSWER: &str = "______";
/// Pause after an answer: a second Enter by mistake must not answer the next question.
const AFTER_ANSWER: Duration = Duration::from_millis(400);

/// True if a person can be asked: a controlling terminal exists, and standard error is a terminal.
pub fn is_attended() -> bool {
    io::stderr().is_terminal() && open().is_ok()
}

/// A conversation with the person at the terminal. Other conversations wait until it is dropped.
pub struct Conversation {
    lines: MutexGuard<'static, Lines>,
    terminal: File,
    question: Question,
    /// The text shown and typed since the beginning of a row.
    shown: String,
    /// The size at the start, if shown text can be erased.
    size: Option<(usize, usize)>,
    /// The writes of others before the conversation.
    writes: usize,
}

/// The state of a conversation's last question.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Question {
    /// No question was asked yet, or the last one was answered.
    Settled,
    /// A person may be typing the answer.
    Open,
    /// The terminal has ended.
    Unanswered,
}

impl Conversation {
    /// Waits for the end of earlier conversations, and hides the live lines.
    pub async fn begin() -> io::Result<Self> {
        let lines = LINES.lock().await;
        let terminal = open()?;
        // The terminal may be taking the script's output.
        spawn_blocking(script_output::hold).await?;
        progress::hide();
        log::hold();
        Ok(Self {
            lines,
            size: erasable_size(&terminal),
            writes: print::writes(),
            terminal,
            question: Question::Settled,
            shown: String::new(),
        })
    }

    pub fn columns(&self) -> Option<usize> {
        let size = tcgetwinsize(&self.terminal).ok()?;
        (size.ws_col > 0).then(|| size.ws_col.into())
    }

    /// Begins a row, after an empty one; the row after a question that has shrunk is the next one.
    pub async fn begin_row(&mut self) -> io::Result<()> {
        self.shown.clear();
        let is_next = self.lines.shrunk == Some(print::writes());
        // Characters that were typed meanwhile are not part of the text.
        self.write(if is_next { "\r\u{1b}[K" } else { "\n" }).await
    }

    /// Shows a text. Foreign text in it must be escaped already.
    pub async fn show(&mut self, text: &str) -> io::Result<()> {
        self.shown += &style::unstyled(text);
        self.write(text).await
    }

    /// Replaces all that was shown since [`Self::begin_row`] by a line for this number of columns.
    /// Does nothing unless all of it is certainly on the screen: text above it is never erased.
    pub async fn shrink(&mut self, line: impl FnOnce(usize) -> String) -> io::Result<()> {
        let Some((rows, columns)) = self.rows_on_screen() else {
            return Ok(());
        };
        let line = format!("\u{1b}[{rows}A\r\u{1b}[J{}\n", line(columns));
        self.shown.clear();
        self.lines.shrunk = Some(self.writes);
        self.write(&line).await
    }

    /// Keeps on the screen what was shown: a different program has written there.
    pub fn keep(&mut self) {
        self.size = None;
    }

    /// The number of rows that were shown, and the width of the terminal; `None` if a row may have
    /// been broken, moved or scrolled away, or if others have written.
    fn rows_on_screen(&self) -> Option<(usize, usize)> {
        let (rows, columns) = self.size?;
        let is_unchanged =
            self.size == erasable_size(&self.terminal) && self.writes == print::writes();
        let is_one_row =
            |line: &str| text_width(line) <= columns && !line.contains(char::is_control);
        let shown = self.shown.strip_suffix('\n')?;
        let mut lines = shown.split('\n');
        let count = lines.clone().count();
        // The cursor is on the row after them.
        (is_unchanged && count < rows && lines.all(is_one_row)).then_some((count, columns))
    }

    async fn write(&self, text: &str) -> io::Result<()> {
        let mut terminal = self.terminal.try_clone()?;
        let text = text.to_owned();
        // Ctrl-S can block the write, and other calls need this thread.
        spawn_blocking(move || terminal.write_all(text.as_bytes())).await?
    }

    /// Discards earlier input, shows a prompt, and waits for a line; `None` if the terminal has
    /// ended.
    pub async fn ask(&mut self, prompt: &str) -> io::Result<Option<String>> {
        self.question = Question::Open;
        // A person may still be answering the withdrawn question.
        if self.lines.is_withdrawn {
            tokio::time::sleep(AFTER_WITHDRAWAL).await;
            self.lines.is_withdrawn = false;
        }
        if let Some(settled) = self.lines.settled.take() {
            tokio::time::sleep(AFTER_ANSWER.saturating_sub(settled.elapsed())).await;
        }
        // Earlier input is not an answer. Input after the prompt is kept: a person may answer at once.
        self.lines.discard();
        tcflush(&self.terminal, QueueSelector::IFlush)?;
        // The answer stands on the row of the last choice.
        let prompt = format!("{prompt}{ANSWER}");
        let choices: Vec<&str> = prompt.split("  ").collect();
        let prompt = wrapped(&choices, self.columns().unwrap_or(usize::MAX));
        self.show(prompt.trim_end_matches(ANSWER)).await?;
        let line = self.lines.next().await;
        if let Ok(Some(typed)) = &line {
            self.shown += typed;
        }
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

    /// Asks until `read` accepts the answer, given in lower case; `None` if the terminal has ended.
    pub async fn choose<T>(
        &mut self,
        prompt: &str,
        keys: &[&str],
        read: impl Fn(&str) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let read = |line: &str| read(&line.to_lowercase());
        self.choose_line(prompt, keys, read).await
    }

    /// [`Self::choose`], with the answer as it was typed.
    pub async fn choose_line<T>(
        &mut self,
        prompt: &str,
        keys: &[&str],
        read: impl Fn(&str) -> Option<T>,
    ) -> io::Result<Option<T>> {
        loop {
            let Some(line) = self.ask(prompt).await? else {
                return Ok(None);
            };
            if let Some(answer) = read(line.trim()) {
                return Ok(Some(answer));
            }
            let (last, first) = keys.split_last().unwrap_or((&"", &[]));
            let keys = format!("├ type {} or {last}, then Enter", first.join(", "));
            let keys = wrapped(&[keys.as_str()], self.columns().unwrap_or(usize::MAX));
            self.show(&format!("{keys}\n")).await?;
        }
    }

    /// Asks a question for yes or no; `None` if the terminal has ended.
    pub async fn agrees(&mut self, question: &str) -> io::Result<Option<bool>> {
        let prompt = format!("└ {question} [y] yes  [n] no: ");
        let read = |answer: &str| match answer {
            "y" | "yes" => Some(true),
            "n" | "no" => Some(false),
            _ => None,
        };
        self.choose(&prompt, &["y", "n"], read).await
    }
}

/// The items with these numbers, counted from 1 and separated by blanks or commas; `None` if a
/// word is not the number of an item.
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
                print::err("\n(the question was withdrawn)\n");
            }
            Question::Unanswered => print::err("\n"),
        }
        // Before the next conversation, which begins when `lines` are dropped.
        log::release();
        progress::unhide();
        script_output::release();
    }
}

/// The reads of typed lines, and what a question must know of the one before.
struct Lines {
    /// A read that is under way, perhaps since a conversation that has ended: a read cannot be
    /// cancelled, and two reads would each get some of the lines.
    read: Option<JoinHandle<io::Result<Option<String>>>>,
    /// True if the last question was withdrawn while it waited for a line.
    is_withdrawn: bool,
    /// The time of the last answer.
    settled: Option<Instant>,
    /// The writes of others before the last question that has shrunk.
    shrunk: Option<usize>,
}

static LINES: Mutex<Lines> = Mutex::const_new(Lines {
    read: None,
    is_withdrawn: false,
    settled: None,
    shrunk: None,
});

impl Lines {
    /// Reads one line only, so that the shell gets the input after the command.
    async fn next(&mut self) -> io::Result<Option<String>> {
        let read = || -> io::Result<Option<String>> {
            let mut line = String::new();
            let bytes = BufReader::new(open()?).read_line(&mut line)?;
            Ok((bytes > 0).then_some(line))
        };
        let read = self.read.get_or_insert_with(|| spawn_blocking(read));
        let line = read.await;
        self.read = None;
        line?
    }

    /// Discards a line that was typed outside of a question.
    fn discard(&mut self) {
        if self.read.as_ref().is_some_and(JoinHandle::is_finished) {
            self.read = None;
        }
    }
}

/// The rows and columns of a terminal, if they are known and what was shown can be erased: it obeys
/// control codes, and shows the typed lines.
fn erasable_size(terminal: &File) -> Option<(usize, usize)> {
    let modes = tcgetattr(terminal).ok()?.local_modes;
    let size = tcgetwinsize(terminal).ok()?;
    let is_erasable = style::has_codes() && modes.contains(LocalModes::ECHO | LocalModes::ICANON);
    (is_erasable && size.ws_row > 0 && size.ws_col > 0)
        .then(|| (size.ws_row.into(), size.ws_col.into()))
}

/// Opens the controlling terminal.
fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}
