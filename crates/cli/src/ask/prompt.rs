//! The prompt of a question about a call: its keys, and the loop that reads them.

use std::io;

use callgate::Answer;
use callgate::faces::Shown;
use callgate::question::Reply;
use callgate_text::harmless;

use super::edit::edited;
use super::layout::{capped, highlighted};
use crate::terminal::Conversation;

/// The keys and words of a prompt, in its order.
const KEYS: [(&str, &str, Choice); 8] = [
    ("y", "yes", Choice::Answer(Answer::Once)),
    ("r", "run", Choice::Answer(Answer::Run)),
    ("a", "always", Choice::Answer(Answer::Always)),
    ("x", "never", Choice::Answer(Answer::DenyRun)),
    ("e", "edit", Choice::Edit),
    ("s", "skip", Choice::Skip),
    ("w", "whole", Choice::Whole),
    ("n", "no", Choice::Answer(Answer::Deny)),
];

#[derive(Clone, Copy)]
enum Choice {
    Answer(Answer),
    /// The call is made with other arguments.
    Edit,
    /// The question stays open.
    Skip,
    /// The whole question is shown.
    Whole,
}

/// A question about a call, for a person at the terminal.
pub struct CallQuestion<'a> {
    pub function: &'a str,
    /// True if a script makes the call.
    pub script: bool,
    /// The answers that differ in their effect, each with the effect in words.
    pub offers: Vec<(Answer, String)>,
    /// The arguments, unless they are too long to edit.
    pub arguments: Option<&'a str>,
    pub can_skip: bool,
}

impl CallQuestion<'_> {
    /// The effect of a choice in words; `None` if it is not offered.
    fn effect(&self, choice: Choice) -> Option<&str> {
        match choice {
            Choice::Answer(answer) => {
                let mut offers = self.offers.iter();
                let (_, effect) = offers.find(|(offered, _)| *offered == answer)?;
                Some(effect)
            }
            Choice::Edit => self.arguments.map(|_| "this call with other arguments"),
            Choice::Skip => self.can_skip.then_some("skip"),
            Choice::Whole => Some("show whole"),
        }
    }
}

/// The words of a person about a question.
pub enum Said {
    Reply(Reply),
    Skip,
    /// The terminal has ended, or the person has ended the input (Ctrl-D).
    Ended,
}

/// Shows a question, and asks until there is an answer. `text` gives its rows for a number of
/// columns.
pub async fn ask(
    conversation: &mut Conversation,
    question: &CallQuestion<'_>,
    text: impl Fn(Shown, Option<usize>) -> String,
) -> io::Result<Said> {
    let (mut keys, mut choices) = (Vec::new(), Vec::new());
    for (key, _, choice) in KEYS {
        if let Some(effect) = question.effect(choice) {
            keys.push(key);
            choices.push(format!("[{key}] {effect}"));
        }
    }
    let prompt = harmless(&format!("└ allow? {}: ", choices.join("  ")));
    let rows = |shown, columns| {
        let text = capped(&text(shown, columns), columns);
        highlighted(&text, question.function, question.script)
    };
    let read = |line: &str| {
        let (typed, reason) = line.split_once(' ').unwrap_or((line, ""));
        let (typed, reason) = (typed.to_lowercase(), reason.trim());
        let mut offered = KEYS.into_iter().filter(|(key, ..)| keys.contains(key));
        let (.., choice) = offered.find(|(key, word, _)| typed == *key || typed == *word)?;
        let takes_reason = matches!(choice, Choice::Answer(answer) if !answer.allows());
        (reason.is_empty() || takes_reason).then(|| (choice, reason.to_owned()))
    };
    let short = rows(Shown::Short, conversation.columns());
    conversation.begin_row().await?;
    conversation.show(&short).await?;
    loop {
        let Some((choice, reason)) = conversation.choose_line(&prompt, &keys, read).await? else {
            return Ok(Said::Ended);
        };
        let mut reply = Reply::from(Answer::Once);
        match choice {
            Choice::Answer(answer) => {
                reply.answer = answer;
                reply.reason = Some(reason).filter(|reason| !reason.is_empty());
            }
            Choice::Edit => {
                let arguments = question.arguments.unwrap_or_default();
                reply.arguments = edited(conversation, arguments).await?;
                if reply.arguments.is_none() {
                    continue;
                }
            }
            Choice::Skip => return Ok(Said::Skip),
            Choice::Whole => {
                let whole = rows(Shown::Whole, conversation.columns());
                conversation.show(&whole).await?;
                continue;
            }
        }
        return Ok(Said::Reply(reply));
    }
}
