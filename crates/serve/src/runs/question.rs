//! A question about a call as a form for the client's user, and what the form
//! brought back.

use callgate::{Answer, Question, Shown, answer_text, question_text};
use rmcp::model::InputRequest;
use serde_json::{Value, json};

/// What a person can answer, as the form has it.
const ANSWERS: [(&str, Answer); 4] = [
    ("once", Answer::Once),
    ("run", Answer::Run),
    ("session", Answer::Session),
    ("deny", Answer::Deny),
];

/// Those that this question has.
fn offered(question: &Question) -> Vec<(&'static str, Answer)> {
    let offered = question.answers();
    let names = ANSWERS.into_iter();
    names
        .filter(|(_, answer)| offered.contains(answer))
        .collect()
}

/// The form that asks this; `None` if it cannot be put into one.
pub(crate) fn form(question: &Question) -> Option<InputRequest> {
    let offered = offered(question);
    let meanings = offered
        .iter()
        .map(|(name, answer)| format!("{name}: {}", answer_text(question, *answer)));
    let message = format!(
        "{}└ May it be called? {}.",
        question_text(question, Shown::Form, None),
        meanings.collect::<Vec<_>>().join("; ")
    );
    let names: Vec<&str> = offered.iter().map(|(name, _)| *name).collect();
    let form = json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": message,
            "requestedSchema": {
                "type": "object",
                "properties": { "answer": { "type": "string", "enum": names } },
                "required": ["answer"],
            },
        },
    });
    serde_json::from_value(form).ok()
}

/// What a client's answer to the form means. Anything but the form filled in as
/// it was asked for is a no.
pub(crate) fn answer(question: &Question, result: &Value) -> Answer {
    read(&offered(question), result)
}

fn read(offered: &[(&str, Answer)], result: &Value) -> Answer {
    let content = result.get("content").and_then(Value::as_object);
    let said = match (result.get("action").and_then(Value::as_str), content) {
        (Some("accept"), Some(content)) if content.len() == 1 => {
            content.get("answer").and_then(Value::as_str)
        }
        _ => None,
    };
    offered
        .iter()
        .find(|(name, _)| said == Some(name))
        .map_or(Answer::Deny, |(_, answer)| *answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(result: Value, expected: Answer) {
        assert_eq!(read(&ANSWERS, &result), expected, "{result}");
    }

    #[test]
    fn only_the_form_filled_in_is_a_yes() {
        let accept = |content| json!({ "action": "accept", "content": content });
        check(accept(json!({ "answer": "once" })), Answer::Once);
        check(accept(json!({ "answer": "run" })), Answer::Run);
        check(accept(json!({ "answer": "session" })), Answer::Session);
        check(accept(json!({ "answer": "deny" })), Answer::Deny);
        // Of data alone it can be no answer.
        let session = accept(json!({ "answer": "session" }));
        assert_eq!(read(&ANSWERS[..2], &session), Answer::Deny);
        for content in [
            json!({}),
            json!(null),
            json!("once"),
            json!(["once"]),
            json!({ "answer": "always" }),
            json!({ "answer": "Once" }),
            json!({ "answer": "once " }),
            json!({ "answer": ["once"] }),
            json!({ "answer": true }),
            json!({ "answer": "once", "more": 1 }),
            json!({ "more": "once" }),
        ] {
            check(accept(content), Answer::Deny);
        }
        for action in [
            json!("decline"),
            json!("cancel"),
            json!("Accept"),
            json!(true),
            json!(null),
        ] {
            check(
                json!({ "action": action, "content": { "answer": "once" } }),
                Answer::Deny,
            );
        }
        check(json!({ "content": { "answer": "once" } }), Answer::Deny);
        check(json!({ "answer": "once" }), Answer::Deny);
        check(json!(null), Answer::Deny);
    }
}
