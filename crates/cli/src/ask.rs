//! Asks the person at the terminal whether a call may be made.

mod beforehand;

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};

use callgate::{Answer, Asker, Question, Shown, question_text};
use futures::future::BoxFuture;
use indicatif::{MultiProgress, ProgressDrawTarget};
use rustix::termios::{QueueSelector, tcflush};

use crate::print;

pub use beforehand::{Chosen, choose};

/// Asks on the controlling terminal, whatever standard input is: the script
/// itself may come from there.
pub struct TerminalAsker {
    progress: MultiProgress,
}

impl TerminalAsker {
    /// An asker, if somebody is there to answer: both a controlling terminal
    /// and a standard error that shows the question.
    pub fn if_attended(progress: MultiProgress) -> Option<Self> {
        is_attended().then_some(Self { progress })
    }
}

impl Asker for TerminalAsker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        let quiet = Quiet::over(&self.progress);
        Box::pin(async move {
            // No answer is a no: the terminal went away, or the thread did.
            let answer = tokio::task::spawn_blocking(move || ask(&question)).await;
            quiet.answered();
            answer.ok().and_then(Result::ok).unwrap_or(Answer::Deny)
        })
    }
}

/// Whether somebody can be asked.
pub fn is_attended() -> bool {
    std::io::stderr().is_terminal() && terminal().is_ok()
}

/// No live lines are drawn as long as this lives. They are hidden rather than
/// held up: the calls that report to them go on while a person thinks.
struct Quiet {
    progress: MultiProgress,
    answered: bool,
}

impl Quiet {
    fn over(progress: &MultiProgress) -> Self {
        drop(progress.clear());
        progress.set_draw_target(ProgressDrawTarget::hidden());
        Self {
            progress: progress.clone(),
            answered: false,
        }
    }

    fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if !self.answered {
            // The run ended first; what comes next is no answer to this.
            print::err("\n");
        }
        self.progress.set_draw_target(ProgressDrawTarget::stderr());
    }
}

fn ask(question: &Question) -> std::io::Result<Answer> {
    let always = question
        .keeps_in
        .as_deref()
        .map(|place| format!("  [a] always, in {}", callgate::harmless(place)));
    let prompt = format!(
        "allow? [y] this call  [r] all calls of this tool in this run{}  [w] show whole  [n] no: ",
        always.as_deref().unwrap_or_default()
    );
    let mut dialogue = Dialogue::begin(&format!("\n{}", question_text(question, Shown::Short)))?;
    loop {
        let Some(line) = dialogue.answer(&prompt)? else {
            return Ok(Answer::Deny);
        };
        match line.as_str() {
            "y" | "yes" => return Ok(Answer::Once),
            "r" | "run" => return Ok(Answer::Run),
            "a" | "always" if always.is_some() => return Ok(Answer::Always),
            "n" | "no" => return Ok(Answer::Deny),
            "w" | "whole" => dialogue.say(&question_text(question, Shown::Whole))?,
            _ => {}
        }
    }
}

/// Questions and answers at the terminal.
struct Dialogue {
    terminal: File,
    answers: BufReader<File>,
}

impl Dialogue {
    fn begin(text: &str) -> std::io::Result<Self> {
        let terminal = terminal()?;
        let answers = BufReader::new(terminal.try_clone()?);
        let mut dialogue = Self { terminal, answers };
        dialogue.say(text)?;
        // What was typed before the question was there is no answer to it.
        tcflush(&dialogue.terminal, QueueSelector::IFlush)?;
        Ok(dialogue)
    }

    fn say(&mut self, text: &str) -> std::io::Result<()> {
        self.terminal.write_all(text.as_bytes())
    }

    /// A line, in small letters and without what surrounds it; `None` at the
    /// end of the input.
    fn answer(&mut self, prompt: &str) -> std::io::Result<Option<String>> {
        self.say(prompt)?;
        let mut line = String::new();
        match self.answers.read_line(&mut line)? {
            0 => Ok(None),
            _ => Ok(Some(line.trim().to_lowercase())),
        }
    }
}

fn terminal() -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}
