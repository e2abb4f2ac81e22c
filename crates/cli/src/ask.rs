//! Questions about calls at the terminal.

mod beforehand;

use callgate::{
    Answer, Asker, Question,
    present::{Shown, answer_text, question_text},
};
use futures::future::BoxFuture;

use crate::terminal::Conversation;

pub use beforehand::choose;

/// The keys and words for answers, in the order in which they are offered.
const KEYS: [(&str, &str, Answer); 4] = [
    ("y", "yes", Answer::Once),
    ("r", "run", Answer::Run),
    ("a", "always", Answer::Always),
    ("n", "no", Answer::Deny),
];

/// Asks on the controlling terminal; standard input may be the script.
pub struct TerminalAsker;

impl Asker for TerminalAsker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move { answer(&question).await.unwrap_or(Answer::Failed) })
    }
}

async fn answer(question: &Question) -> std::io::Result<Answer> {
    let offered = question.answers();
    let offered = KEYS.iter().filter(|(.., answer)| offered.contains(answer));
    let mut prompt = String::from("└ allow? ");
    let mut keys = Vec::new();
    for (key, _, answer) in offered.clone() {
        if *answer == Answer::Deny {
            prompt += "[w] show whole  ";
            keys.push("w");
        }
        keys.push(key);
        prompt += &format!("[{key}] {}  ", answer_text(question, *answer));
    }
    let prompt = format!("{}: ", prompt.trim_end());
    let mut conversation = Conversation::begin().await?;
    let text = question_text(question, Shown::Short, conversation.columns());
    conversation.show(&format!("\n{text}")).await?;
    let read = |said: &str| {
        let mut offered = offered.clone();
        let named = offered.find(|(key, word, _)| said == *key || said == *word);
        match named {
            Some((.., answer)) => Some(Some(*answer)),
            None => matches!(said, "w" | "whole").then_some(None),
        }
    };
    loop {
        match conversation.choose(&prompt, &keys, read).await? {
            // The terminal has ended.
            None => return Ok(Answer::Failed),
            Some(Some(answer)) => return Ok(answer),
            Some(None) => {
                let text = question_text(question, Shown::Whole, conversation.columns());
                conversation.show(&text).await?;
            }
        }
    }
}
