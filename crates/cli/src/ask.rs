//! Asks the person at the terminal whether a call may be made.

mod beforehand;

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};

use callgate::{Answer, Asker, Question, Shown, harmless, question_text};
use futures::future::BoxFuture;
use indicatif::MultiProgress;
use rustix::termios::{QueueSelector, tcflush};

use crate::terminal::{self, Conversation};

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
        terminal::is_attended().then_some(Self { progress })
    }
}

impl Asker for TerminalAsker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            // No answer is a no: the terminal went away.
            self.answer(&question).await.unwrap_or(Answer::Deny)
        })
    }
}

impl TerminalAsker {
    async fn answer(&self, question: &Question) -> std::io::Result<Answer> {
        let always = question
            .keeps_in
            .as_deref()
            .map(|place| format!("  [a] always, in {}", harmless(place)));
        let prompt = format!(
            "allow? [y] this call  [r] all calls of this tool in this run{}  [w] show whole  [n] no: ",
            always.as_deref().unwrap_or_default()
        );
        let mut conversation = Conversation::begin(&self.progress).await?;
        let text = question_text(question, Shown::Short);
        conversation.show(&format!("\n{text}")).await?;
        loop {
            let Some(line) = conversation.ask(&prompt).await? else {
                return Ok(Answer::Deny);
            };
            match line.trim().to_lowercase().as_str() {
                "y" | "yes" => return Ok(Answer::Once),
                "r" | "run" => return Ok(Answer::Run),
                "a" | "always" if always.is_some() => return Ok(Answer::Always),
                "n" | "no" => return Ok(Answer::Deny),
                "w" | "whole" => {
                    let text = question_text(question, Shown::Whole);
                    conversation.show(&text).await?;
                }
                _ => {}
            }
        }
    }
}

/// Questions and answers at the terminal while nothing else goes on.
struct Dialogue {
    terminal: File,
    answers: BufReader<File>,
}

impl Dialogue {
    fn begin(text: &str) -> std::io::Result<Self> {
        let terminal = terminal::open()?;
        let answers = BufReader::new(terminal.try_clone()?);
        let mut dialogue = Self { terminal, answers };
        dialogue.say(text)?;
        // What was typed before the question was there is no answer to it.
        tcflush(&dialogue.terminal, QueueSelector::IFlush)?;
        Ok(dialogue)
    }

    fn say(&mut self, text: &str) -> std::io::Result<()> {
        self.terminal.write_all(harmless(text).as_bytes())
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
