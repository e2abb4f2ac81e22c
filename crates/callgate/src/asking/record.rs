//! Questions and replies as records of a store.

use std::time::Duration;

use callgate_gate::{Answer, Question, Reply};
use callgate_policy::Because;
use callgate_store::{
    Access, AnswerRecord, Body, Choice, Offer, QuestionRecord, QuestionState, QuestionTexts, Store,
    StoreError,
};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::question_text::{Shown, answer_text, question_text};

/// Arguments over this size are kept in part: their start, end and hash.
const MAX_ARGUMENTS: usize = 1 << 20;

const CHOICES: [(Choice, Answer); 6] = [
    (Choice::Once, Answer::Once),
    (Choice::Run, Answer::Run),
    (Choice::Session, Answer::Session),
    (Choice::Always, Answer::Always),
    (Choice::Deny, Answer::Deny),
    (Choice::DenyRun, Answer::DenyRun),
];

/// The run that asks.
#[derive(Debug, Clone, Default)]
pub struct RunContext {
    /// The run's id.
    pub id: String,
    /// The user; empty in a program without users.
    pub user: String,
    /// The client's name and version, in its own words.
    pub client: Option<String>,
}

/// The record of a question that is open.
pub(super) fn of_question(
    id: &str,
    owner: &str,
    run: &RunContext,
    question: &Question,
    expires: Duration,
) -> QuestionRecord {
    let decision = &question.decision;
    let rule = match (&decision.asked_by, &decision.because) {
        (Some(rule), _) | (_, Because::Rule(rule) | Because::Depends(rule)) => {
            Some(rule.to_string())
        }
        _ => None,
    };
    let asked = Timestamp::now();
    let mut record = QuestionRecord::default();
    record.id = id.to_owned();
    record.run.clone_from(&run.id);
    record.owner = owner.to_owned();
    record.user.clone_from(&run.user);
    record.function.clone_from(&question.function);
    record.server.clone_from(&question.server);
    record.tool.clone_from(&question.tool);
    record.arguments = body(&question.arguments);
    record.rule = rule;
    record.line = question.line.as_ref().map(|line| line.number);
    if !question.flows.is_empty() {
        record.flows = serde_json::to_value(question.flow_records()).ok();
    }
    record.asked = asked;
    record.expires = asked.checked_add(expires).unwrap_or(Timestamp::MAX);
    record.texts = Some(question_texts(question));
    record
}

/// The texts of a question, which are not laid out.
pub fn question_texts(question: &Question) -> QuestionTexts {
    let is_kept = question.arguments.len() <= MAX_ARGUMENTS;
    let whole = if is_kept { Shown::Whole } else { Shown::Short };
    let answers = question.answers().into_iter();
    let offers = answers.filter_map(|answer| {
        let effect = answer_text(question, answer);
        Some(Offer::new(choice_of(answer)?, effect))
    });
    let mut texts = QuestionTexts::default();
    texts.short = question_text(question, Shown::Short, Some(usize::MAX));
    texts.whole = question_text(question, whole, Some(usize::MAX));
    texts.reason = question.reason();
    texts.arguments = is_kept.then(|| question.arguments.clone());
    texts.offers = offers.collect();
    texts.keeps_in.clone_from(&question.keeps_in);
    texts.script = question.script;
    texts
}

fn body(text: &str) -> Body {
    Body {
        sha256: hex::encode(Sha256::digest(text.as_bytes())),
        bytes: text.len() as u64,
        blob: None,
    }
}

/// The choice of an answer; `None` for one that leaves the question open.
pub fn choice_of(answer: Answer) -> Option<Choice> {
    if answer == Answer::Standing {
        return Some(Choice::Once);
    }
    let mut choices = CHOICES.into_iter();
    choices.find_map(|(choice, of)| (of == answer).then_some(choice))
}

/// The record of a reply, if it has a choice. Edited arguments are kept with the run.
///
/// # Errors
///
/// [`StoreError`] if the arguments cannot be kept.
pub fn reply_record(
    store: &dyn Store,
    run: &RunContext,
    reply: &Reply,
) -> Result<Option<AnswerRecord>, StoreError> {
    let Some(choice) = choice_of(reply.answer) else {
        return Ok(None);
    };
    let mut answer = AnswerRecord::default();
    answer.choice = choice;
    if let Some(arguments) = &reply.arguments {
        answer.edited = Some(Body {
            blob: Some(store.put_blob(&run.user, &run.id, arguments.as_bytes())?),
            ..body(arguments)
        });
    }
    answer.reason.clone_from(&reply.reason);
    answer.by = reply.by.clone().unwrap_or_else(|| run.user.clone());
    answer.via = reply.via.clone().unwrap_or_default();
    answer.at = Timestamp::now();
    Ok(Some(answer))
}

/// The reply that a record of a question has, once it is not open.
pub(super) fn reply(store: &dyn Store, record: &QuestionRecord) -> Reply {
    let Some(answer) = &record.answer else {
        return match record.state {
            QuestionState::Expired => Answer::Late.into(),
            _ => Answer::Failed.into(),
        };
    };
    let mut choices = CHOICES.into_iter();
    let chosen = choices.find_map(|(choice, of)| (choice == answer.choice).then_some(of));
    // A choice of a later version.
    let mut reply = Reply::from(chosen.unwrap_or(Answer::Failed));
    if let Some(edited) = &answer.edited {
        let blob = edited.blob.as_deref();
        let bytes = blob.and_then(|hash| store.blob(Access::User(&record.user), hash).ok());
        reply.arguments = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        if reply.arguments.is_none() {
            // The script's own arguments were not approved.
            reply.answer = Answer::Failed;
        }
    }
    reply.reason.clone_from(&answer.reason);
    reply.by = Some(answer.by.clone()).filter(|by| !by.is_empty());
    reply.via = Some(answer.via.clone()).filter(|via| !via.is_empty());
    reply
}
