//! Questions about calls at the terminal.

mod beforehand;
mod layout;

use callgate::faces::{Shown, answer_text, question_text};
use callgate::question::GrantStoreError;
use callgate::question::Reply;
use callgate::{Answer, Asker, Question};
use callgate_text::label;
use futures::future::BoxFuture;

use crate::terminal::Conversation;
use layout::{capped, highlighted, summary};

pub use beforehand::choose;

/// The keys and words of answers, in the order of the prompt.
const KEYS: [(&str, &str, Answer); 5] = [
    ("y", "yes", Answer::Once),
    ("r", "run", Answer::Run),
    ("a", "always", Answer::Always),
    ("x", "never", Answer::DenyRun),
    ("n", "no", Answer::Deny),
];

/// Asks on the controlling terminal, because standard input may be the script.
pub struct TerminalAsker;

impl Asker for TerminalAsker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        Box::pin(async move { answer(&question).await.unwrap_or(Answer::Failed).into() })
    }

    fn kept<'a>(
        &'a self,
        function: &'a str,
        place: &'a str,
        kept: Result<(), GrantStoreError>,
    ) -> BoxFuture<'a, ()> {
        let text = match kept {
            Ok(()) => format!("wrote {function:?} to permissions.allow of {place}"),
            Err(reason) => format!("warning: {function} is allowed in this run only: {reason}"),
        };
        Box::pin(async move {
            // The terminal may have ended.
            if let Ok(mut conversation) = Conversation::begin().await {
                let text = label(&text, usize::MAX) + "\n";
                let _ = conversation.show(&text).await;
            }
        })
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
    conversation.begin_row().await?;
    conversation.show(&highlighted(&text, question)).await?;
    let read = |typed: &str| {
        let mut offered = offered.clone();
        let named = offered.find(|(key, word, _)| typed == *key || typed == *word);
        named.map(|(.., answer)| *answer)
    };
    let whole = |columns| {
        let text = question_text(question, Shown::Whole, columns);
        highlighted(&capped(&text, columns), question)
    };
    let answer = conversation
        .choose_or_show(&prompt, &keys, read, whole)
        .await?;
    let Some(answer) = answer else {
        // The terminal has ended.
        return Ok(Answer::Failed);
    };
    // The answer counts even if the terminal fails now.
    let _ = conversation
        .shrink(|columns| summary(question, answer, columns))
        .await;
    Ok(answer)
}
