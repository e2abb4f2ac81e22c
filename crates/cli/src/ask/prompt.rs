//! The prompt of a question about a call: its keys, and the loop that reads them.

use std::io;

use callgate::Answer;
use callgate::faces::Shown;
use callgate::faces::asking::choice_of;
use callgate::faces::store::QuestionTexts;
use callgate::question::Reply;
use callgate_text::{harmless, label};

use super::edit::edited;
use super::layout::{always_rows, capped, highlighted};
use crate::terminal::Conversation;

/// Characters shown of an effect.
const SHOWN: usize = 300;

/// The keys and words of a prompt, in its order.
const KEYS: [(&str, &str, Key); 9] = [
    ("y", "yes", Key::Answer(Answer::Once)),
    ("r", "run", Key::Answer(Answer::Run)),
    ("t", "session", Key::Answer(Answer::Session)),
    ("a", "always", Key::Answer(Answer::Always)),
    ("x", "never", Key::Answer(Answer::DenyRun)),
    ("e", "edit", Key::Edit),
    ("s", "skip", Key::Skip),
    ("w", "whole", Key::Whole),
    ("n", "no", Key::Answer(Answer::Deny)),
];

#[derive(Clone, Copy)]
enum Key {
    Answer(Answer),
    /// The call is made with other arguments.
    Edit,
    /// The question stays open.
    Skip,
    /// The whole question is shown.
    Whole,
}

impl Key {
    /// The effect in words; `None` if the question does not offer it.
    fn effect(self, question: &QuestionTexts, can_skip: bool) -> Option<&str> {
        match self {
            // A run at its own terminal is the whole session.
            Self::Answer(Answer::Session) if !can_skip => None,
            Self::Answer(answer) => {
                let mut offers = question.offers.iter();
                let offer = offers.find(|offer| Some(offer.choice) == choice_of(answer))?;
                Some(&offer.effect)
            }
            Self::Edit => {
                let arguments = question.arguments.as_ref();
                arguments.map(|_| "this call with other arguments")
            }
            Self::Skip => can_skip.then_some("skip"),
            Self::Whole => Some("show whole"),
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

/// Shows a question about a call of `function`, and asks until there is an answer. `text` gives its
/// rows for a number of columns.
pub async fn ask(
    conversation: &mut Conversation,
    function: &str,
    question: &QuestionTexts,
    can_skip: bool,
    text: impl Fn(Shown, Option<usize>) -> String,
) -> io::Result<Said> {
    let (mut keys, mut choices) = (Vec::new(), Vec::new());
    for (key, _, act) in KEYS {
        if let Some(effect) = act.effect(question, can_skip) {
            keys.push(key);
            choices.push(format!("[{key}] {}", label(effect, SHOWN)));
        }
    }
    let prompt = harmless(&format!("└ allow? {}: ", choices.join("  ")));
    let rows = |shown, columns| {
        let text = capped(&text(shown, columns), columns);
        highlighted(&text, function, question.script)
    };
    let read = |line: &str| {
        let (typed, reason) = line.split_once(' ').unwrap_or((line, ""));
        let (typed, reason) = (typed.to_lowercase(), reason.trim());
        let mut offered = KEYS.into_iter().filter(|(key, ..)| keys.contains(key));
        let (.., act) = offered.find(|(key, word, _)| typed == *key || typed == *word)?;
        let takes_reason = matches!(act, Key::Answer(answer) if !answer.allows());
        (reason.is_empty() || takes_reason).then(|| (act, reason.to_owned()))
    };
    let columns = conversation.columns();
    let short = rows(Shown::Short, columns) + &always_rows(function, question, columns);
    conversation.begin_row().await?;
    conversation.show(&short).await?;
    loop {
        let Some((act, reason)) = conversation.choose_line(&prompt, &keys, read).await? else {
            return Ok(Said::Ended);
        };
        let mut reply = Reply::from(Answer::Once);
        match act {
            Key::Answer(answer) => {
                reply.answer = answer;
                reply.reason = Some(reason).filter(|reason| !reason.is_empty());
            }
            Key::Edit => {
                let arguments = question.arguments.as_deref().unwrap_or_default();
                reply.arguments = edited(conversation, arguments).await?;
                if reply.arguments.is_none() {
                    continue;
                }
            }
            Key::Skip => return Ok(Said::Skip),
            Key::Whole => {
                let whole = rows(Shown::Whole, conversation.columns());
                conversation.show(&whole).await?;
                continue;
            }
        }
        return Ok(Said::Reply(reply));
    }
}
