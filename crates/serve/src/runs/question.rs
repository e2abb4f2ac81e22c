//! A question about a call as a form, and the form's answer.

use std::time::Duration;

use callgate::faces::{Shown, answer_text, call_text, question_text};
use callgate::{Answer, Question};
use rmcp::model::InputRequest;
use serde_json::{Value, json};

/// Answers by their words in the form.
const ANSWERS: [(&str, Answer); 4] = [
    ("once", Answer::Once),
    ("run", Answer::Run),
    ("session", Answer::Session),
    ("deny", Answer::Deny),
];

/// Shortest time in which a person can decline. Some clients without a person decline at once.
const SHORTEST_DECLINE: Duration = Duration::from_millis(100);

/// The answers that this question offers.
fn offered(question: &Question) -> Vec<(&'static str, Answer)> {
    let offered = question.answers();
    let answers = ANSWERS.into_iter();
    answers
        .filter(|(_, answer)| offered.contains(answer))
        .collect()
}

/// The title of an answer in the form.
fn title(question: &Question, answer: Answer) -> String {
    match answer {
        Answer::Deny => "Deny".to_owned(),
        answer => format!("Allow {}", answer_text(question, answer)),
    }
}

/// The function of a question, and the script's line that calls it.
pub(crate) fn about(question: &Question) -> String {
    let line = question.line.as_ref();
    let line = line.map_or(String::new(), |line| format!(" (line {})", line.number));
    format!("{}{line}", question.function)
}

/// The form; `None` if it cannot be made. `has_titles`: the client's revision has `oneOf` for
/// choices with titles.
pub(crate) fn form(question: &Question, has_titles: bool) -> Option<InputRequest> {
    let offered = offered(question);
    let meanings = offered
        .iter()
        .map(|(name, answer)| format!("{name}: {}", answer_text(question, *answer)));
    let message = format!(
        "{}└ May it be called? {}.",
        question_text(question, Shown::Form, None),
        meanings.collect::<Vec<_>>().join("; ")
    );
    // Some clients show only the first lines of a message.
    let mut field = json!({ "type": "string", "description": call_text(question) });
    let titles = offered
        .iter()
        .map(|(name, answer)| (*name, title(question, *answer)));
    if has_titles {
        let choices = titles.map(|(name, title)| json!({ "const": name, "title": title }));
        field["oneOf"] = choices.collect();
    } else {
        let (names, titles): (Vec<_>, Vec<_>) = titles.unzip();
        field["enum"] = json!(names);
        field["enumNames"] = json!(titles);
    }
    let form = json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": message,
            "requestedSchema": {
                "type": "object",
                "properties": { "answer": field },
                "required": ["answer"],
            },
        },
    });
    serde_json::from_value(form).ok()
}

/// The answer in a client's result after this time. Only an exactly completed form approves, and
/// only `decline` or the form's word for it is a refusal by a person.
pub(crate) fn answer(question: &Question, result: &Value, took: Duration) -> Answer {
    read(&offered(question), result, took)
}

fn read(offered: &[(&str, Answer)], result: &Value, took: Duration) -> Answer {
    let content = result.get("content").and_then(Value::as_object);
    let word = match (result.get("action").and_then(Value::as_str), content) {
        (Some("decline"), _) if took < SHORTEST_DECLINE => return Answer::Dismissed,
        (Some("decline"), _) => return Answer::Deny,
        (Some("cancel"), _) => return Answer::Dismissed,
        (Some("accept"), Some(content)) if content.len() == 1 => {
            content.get("answer").and_then(Value::as_str)
        }
        _ => None,
    };
    let answer = offered.iter().find(|(name, _)| word == Some(name));
    answer.map_or(Answer::Unclear, |(_, answer)| *answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_slow(offered: &[(&str, Answer)], result: &Value) -> Answer {
        read(offered, result, SHORTEST_DECLINE)
    }

    #[test]
    fn immediate_decline_is_no_refusal() {
        let declined = json!({ "action": "decline" });
        let read = |took| read(&ANSWERS, &declined, took);
        assert_eq!(read(Duration::from_millis(8)), Answer::Dismissed);
        assert_eq!(read(Duration::from_secs(2)), Answer::Deny);
    }

    #[test]
    fn only_completed_form_counts_as_approval() {
        let accept = |content| json!({ "action": "accept", "content": content });
        for (word, answer) in ANSWERS {
            assert_eq!(
                read_slow(&ANSWERS, &accept(json!({ "answer": word }))),
                answer
            );
        }
        // An answer that is not offered.
        let session = accept(json!({ "answer": "session" }));
        assert_eq!(read_slow(&ANSWERS[..2], &session), Answer::Unclear);
        for content in [
            json!({}),
            json!(null),
            json!("once"),
            json!({ "answer": "always" }),
            json!({ "answer": "Once" }),
            json!({ "answer": "once " }),
            json!({ "answer": ["once"] }),
            json!({ "answer": "once", "more": 1 }),
            json!({ "more": "once" }),
        ] {
            assert_eq!(read_slow(&ANSWERS, &accept(content)), Answer::Unclear);
        }
        for (action, answer) in [
            ("decline", Answer::Deny),
            ("cancel", Answer::Dismissed),
            ("Accept", Answer::Unclear),
        ] {
            let result = json!({ "action": action, "content": { "answer": "once" } });
            assert_eq!(read_slow(&ANSWERS, &result), answer);
        }
        for result in [
            json!({ "content": { "answer": "once" } }),
            json!({ "answer": "once" }),
        ] {
            assert_eq!(read_slow(&ANSWERS, &result), Answer::Unclear);
        }
    }
}
