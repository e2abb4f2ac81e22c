//! The question of a parked run of `callgate serve` is withdrawn before its client
//! comes again with the answer.

use rmcp::model::InputRequiredResult;
use serde_json::{Value, json};

use crate::serve_asks::asking;
use crate::serve_client::{NEWEST, User, connect, value};

/// A yes to either question of a run.
fn yes() -> Value {
    let yes = json!({ "action": "accept", "content": { "answer": "once" } });
    json!({ "question-1": yes, "question-2": yes })
}

/// The keys of the questions to the client, and the request state.
fn asked(required: InputRequiredResult) -> (Vec<String>, String) {
    let requests = required.input_requests.expect("requests");
    let state = required.request_state.expect("a state");
    (requests.into_keys().collect(), state)
}

#[tokio::test]
async fn late_answer_does_not_answer_the_next_question() {
    let bench = asking();
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    let script = "const controller = new AbortController();
        setTimeout(() => controller.abort('given up'), 1_000);
        const first = await ticketing_createIssue({ title: '1' }, { signal: controller.signal })
          .then(() => 'made', (reason) => reason);
        const second = await ticketing_createIssue({ title: '2' })
          .then(() => 'made', (error) => error.name);
        return [first, second];";
    let (keys, first) = asked(session.park(script).await);
    assert_eq!(keys, ["question-1"]);
    // A client that answers nothing is asked again, as long as the question is open.
    let second = loop {
        let (keys, state) = asked(session.park_again(script, &first, json!({})).await);
        if keys == ["question-2"] {
            break state;
        }
        assert_eq!(keys, ["question-1"]);
    };
    let late = json!({ "question-1": { "action": "accept", "content": { "answer": "once" } } });
    let (keys, _) = asked(session.park_again(script, &first, late).await);
    assert_eq!(keys, ["question-2"]);

    let no = json!({ "question-2": { "action": "accept", "content": { "answer": "deny" } } });
    for answer in [no, yes()] {
        let report = session
            .come(script, &second, answer)
            .await
            .expect("a report");
        assert_eq!(value(&report), r#"["given up","McpDeniedError"]"#);
    }
}
