//! Asks the person at the terminal whether a call may be made.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};

use callgate::{Answer, Asker, Question};
use futures::future::BoxFuture;
use indicatif::{MultiProgress, ProgressDrawTarget};
use rustix::termios::{QueueSelector, tcflush};

use crate::print::{self, harmless};

/// Characters that a question shows from the beginning of the arguments.
const SHOWN_HEAD: usize = 300;

/// Characters that it shows from their end.
const SHOWN_TAIL: usize = 150;

/// Asks on the controlling terminal, whatever standard input is: the script
/// itself may come from there.
pub struct TerminalAsker {
    progress: MultiProgress,
}

impl TerminalAsker {
    /// An asker, if somebody is there to answer: both a controlling terminal
    /// and a standard error that shows the question.
    pub fn if_attended(progress: MultiProgress) -> Option<Self> {
        let attended = std::io::stderr().is_terminal() && terminal().is_ok();
        attended.then_some(Self { progress })
    }
}

impl Asker for TerminalAsker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        let text = text(&question);
        let quiet = Quiet::over(&self.progress);
        Box::pin(async move {
            // No answer is a no: the terminal went away, or the thread did.
            let answer = tokio::task::spawn_blocking(move || ask(&text)).await;
            quiet.answered();
            answer.ok().and_then(Result::ok).unwrap_or(Answer::Deny)
        })
    }
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

fn text(question: &Question) -> String {
    let arguments = &question.arguments;
    let shown = shortened(arguments);
    format!(
        "\nThe script wants to call {} (tool {:?} of server {:?}), which {}:\n  {}\n",
        question.function,
        question.tool,
        question.server,
        question.decision,
        harmless(&shown),
    )
}

/// Head and tail: what matters must not be pushed out of sight by padding.
fn shortened(arguments: &str) -> String {
    let (Some((head, _)), Some((tail, _))) = (
        arguments.char_indices().nth(SHOWN_HEAD),
        arguments.char_indices().rev().nth(SHOWN_TAIL),
    ) else {
        return arguments.to_owned();
    };
    if head >= tail {
        return arguments.to_owned();
    }
    format!(
        "{} … {} (the middle is cut: {} bytes in all)",
        arguments.get(..head).unwrap_or_default(),
        arguments.get(tail..).unwrap_or_default(),
        arguments.len()
    )
}

fn ask(text: &str) -> std::io::Result<Answer> {
    let mut terminal = terminal()?;
    let mut answers = BufReader::new(terminal.try_clone()?);
    terminal.write_all(text.as_bytes())?;
    // What was typed before the question was there is no answer to it.
    tcflush(&terminal, QueueSelector::IFlush)?;
    loop {
        terminal
            .write_all(b"allow? [y] this call  [n] no  [a] all calls of this tool in this run: ")?;
        let mut line = String::new();
        if answers.read_line(&mut line)? == 0 {
            return Ok(Answer::Deny);
        }
        match line.trim() {
            "y" | "Y" | "yes" => return Ok(Answer::Once),
            "n" | "N" | "no" => return Ok(Answer::Deny),
            "a" | "A" | "all" => return Ok(Answer::Run),
            _ => {}
        }
    }
}

fn terminal() -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}
