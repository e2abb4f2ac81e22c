//! Asks the person at the terminal whether a call may be made.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};

use callgate::{Answer, Asker, Question};
use futures::future::BoxFuture;
use indicatif::MultiProgress;

use crate::print::harmless;

/// Characters of the arguments that a question shows.
const SHOWN_ARGUMENTS: usize = 400;

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
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        let text = text(&question);
        let progress = self.progress.clone();
        Box::pin(async move {
            let answer = tokio::task::spawn_blocking(move || progress.suspend(|| ask(&text)));
            // No answer is a no: the terminal went away, or the thread did.
            answer
                .await
                .ok()
                .and_then(Result::ok)
                .unwrap_or(Answer::Deny)
        })
    }
}

fn text(question: &Question<'_>) -> String {
    let arguments = question.arguments;
    let mut shown: String = arguments.chars().take(SHOWN_ARGUMENTS).collect();
    if shown.len() < arguments.len() {
        shown.push_str(&format!("… ({} bytes in all)", arguments.len()));
    }
    format!(
        "\n{} (tool {:?} of server {:?}) asks to run: {}\n  {}\n",
        question.function,
        question.tool,
        question.server,
        question.decision,
        harmless(&shown),
    )
}

fn ask(text: &str) -> std::io::Result<Answer> {
    let mut terminal = terminal()?;
    let mut answers = BufReader::new(terminal.try_clone()?);
    terminal.write_all(text.as_bytes())?;
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
