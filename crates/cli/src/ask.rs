//! Questions about calls at the terminal.

mod beforehand;

use callgate::faces::{Shown, answer_text, question_text};
use callgate::{Answer, Asker, Question};
use futures::future::BoxFuture;

use crate::terminal::Conversation;

pub use beforehand::choose;

/// The keys and words of answers, in the order of the prompt.
const KEYS: [(&str, &str, Answer); 4] = [
    ("y", "yes", Answer::Once),
    ("r", "run", Answer::Run),
    ("a", "always", Answer::Always),
    ("n", "no", Answer::Deny),
];

/// Asks on the controlling terminal, because standard input may be the script.
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
    let read = |typed: &str| {
        let mut offered = offered.clone();
        let named = offered.find(|(key, word, _)| typed == *key || typed == *word);
        named.map(|(.., answer)| *answer)
    };
    let whole = |columns| question_text(question, Shown::Whole, columns);
    let answer = conversation
        .choose_or_show(&prompt, &keys, read, whole)
        .await?;
    // Without an answer, the terminal has ended.
    Ok(answer.unwrap_or(Answer::Failed))
}
