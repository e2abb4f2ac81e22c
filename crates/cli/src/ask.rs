//! Asks the person at the terminal whether a call may be made.

mod beforehand;

use callgate::{Answer, Asker, Question, Shown, harmless, question_text};
use futures::future::BoxFuture;
use indicatif::MultiProgress;

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
            "└ allow? [y] this call  [r] all calls of this tool in this run{}  [w] show whole  [n] no: ",
            always.as_deref().unwrap_or_default()
        );
        let mut conversation = Conversation::begin(&self.progress).await?;
        let text = question_text(question, Shown::Short, conversation.columns());
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
                    let text = question_text(question, Shown::Whole, conversation.columns());
                    conversation.show(&text).await?;
                }
                _ => {}
            }
        }
    }
}
