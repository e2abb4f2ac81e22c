use expect_test::expect;
use rmcp::model::{ClientJsonRpcMessage, NumberOrString};

use super::*;
use crate::failure::Audience;
use crate::json_rpc::{Members, text};
use crate::slot::Slot;

fn new_tap() -> Arc<Tap> {
    Tap::new("s".into(), Redact::default(), Arc::default())
}

/// Sends a request with this id and returns its slot.
fn send(tap: &Arc<Tap>, id: i64, method: &str) -> Arc<Slot> {
    let slot = Arc::<Slot>::default();
    let mut request = CustomRequest::new(method, None);
    request.extensions.insert(Arc::clone(&slot));
    let request = rmcp::model::ClientRequest::CustomRequest(request);
    let message = ClientJsonRpcMessage::request(request, NumberOrString::Number(id));
    tap.register(&message);
    tap.sent(&NumberOrString::Number(id));
    slot
}

/// The answers to the requests 5 and 6 when the server writes this, and the number of messages for
/// rmcp.
fn answer(text: &[u8]) -> String {
    let tap = new_tap();
    let (slot, other) = (send(&tap, 5, "tools/call"), send(&tap, 6, "tools/call"));
    let settled = tap.incoming(text, None).len();
    let shown = |slot: &Slot| match slot.take() {
        Some(Ok(result)) => result.get().to_owned(),
        Some(Err(failure)) => failure.to_string(),
        None => "-".to_owned(),
    };
    format!("{}; {}; {settled}", shown(&slot), shown(&other))
}

#[test]
fn answer_with_known_id_ends_its_request() {
    let long = "[12345678901234567890123,0.1000000000000000055511151231257827]";
    for result in [
        "7",
        "{}",
        r#"{"content":7}"#,
        r#"{"n":1e400,"t":"a\ud800b"}"#,
        long,
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":5,"result":{result}}}"#);
        assert_eq!(answer(text.as_bytes()), format!("{result}; -; 1"));
    }
    let unreadable = "the answer is malformed: it is not a JSON-RPC message";
    for (text, expected) in [
        // Unusual, but unambiguous ids and lines.
        (r#"{"id":"5","result":{}}"#, "{}; -; 1"),
        (r#"{"id":5.0,"result":{}}"#, "{}; -; 1"),
        (r#"{"id":"5.00","result":{}}"#, "{}; -; 1"),
        ("\u{feff}{\"id\":5,\"result\":{}}  \r", "{}; -; 1"),
        (r#"{"method":"x"}{"id":5,"result":{}}"#, "{}; -; 1"),
        (
            r#"[{"method":"x"},{"id":6,"result":1},{"id":5,"result":2}]"#,
            "2; 1; 2",
        ),
        // Errors.
        (r#"{"id":5,"error":"boom"}"#, "boom (code -32603); -; 1"),
        (
            r#"{"id":5,"error":{"code":3000000000,"message":"m"}}"#,
            "m (code -32603); -; 1",
        ),
        (
            r#"{"id":5,"error":{"code":-1}}"#,
            "the server gave an error without a message (code -1); -; 1",
        ),
        (
            r#"{"id":5,"result":{},"error":{"code":-1,"message":"m"}}"#,
            "m (code -1); -; 1",
        ),
        (r#"{"id":5,"result":{},"error":null}"#, "{}; -; 1"),
        (
            r#"{"id":5}"#,
            "the answer is malformed: its result is missing, or null; -; 1",
        ),
        (
            r#"{"id":5,"result":{"a":}}"#,
            &format!("{unreadable}; -; 1"),
        ),
        // Not answers to these requests.
        (r#"{"id":99,"result":{}}"#, "-; -; 0"),
        ("DEBUG got 5", "-; -; 0"),
        ("[1, 2]", "-; -; 0"),
    ] {
        assert_eq!(answer(text.as_bytes()), expected, "{text}");
    }
    let invalid = b"{\"id\":5,\"result\":\"a\xffb\"}";
    assert_eq!(answer(invalid), "\"a\u{fffd}b\"; -; 1");
}

#[test]
fn progress_matches_any_spelling_of_its_token() {
    for (params, is_heard) in [
        (r#"{"progressToken":7,"progress":1}"#, true),
        (r#"{"progressToken":"7","progress":1}"#, true),
        (
            r#"{"progressToken":7.0,"progress":"0.5","total":"x"}"#,
            true,
        ),
        (r#"{"progressToken":"8","progress":1}"#, false),
        (r#"{"progressToken":7}"#, false),
    ] {
        let tap = new_tap();
        send(&tap, 5, "tools/call");
        tap.set_progress_token(NumberOrString::Number(7));
        let text = format!(r#"{{"method":"notifications/progress","params":{params}}}"#);
        tap.incoming(text.as_bytes(), None);
        assert_eq!(tap.unused().is_empty(), is_heard, "{params}");
    }
}

#[test]
fn echoed_request_is_detected() {
    let tap = new_tap();
    let slot = send(&tap, 5, INITIALIZE);
    tap.incoming(br#"{"id":5,"method":"initialize"}"#, None);
    let failure = slot.take().expect("an answer").expect_err("a failure");
    assert!(failure.to(Audience::Operator).contains("configured"));
    // A model cannot change the configuration.
    assert!(!failure.to(Audience::Caller).contains("configured"));
}

/// A server's request is answered with its id as the server wrote it.
#[test]
fn server_request_ids_are_kept() {
    let tap = new_tap();
    for id in ["7", r#""7""#, r#""a""#] {
        let text = format!(r#"{{"id":{id},"method":"ping"}}"#);
        let read = tap.incoming(text.as_bytes(), None);
        let sent = serde_json::to_value(read.first()).expect("JSON");
        assert_eq!(sent["id"].to_string(), id);
    }
}

#[test]
fn answer_over_limit_ends_its_request() {
    let check = |ends: &str, five: bool, six: bool| {
        let tap = new_tap();
        let (slot, other) = (send(&tap, 5, "tools/call"), send(&tap, 6, "tools/call"));
        tap.too_long(ends.as_bytes(), 7);
        assert_eq!(
            (slot.take().is_some(), other.take().is_some()),
            (five, six),
            "{ends}"
        );
    };
    check(r#"{"jsonrpc":"2.0","id":5,"result":{"id":6"#, true, false);
    check(r#"{"result":{"id":6,"x":"…"},"id":5}"#, true, false);
    check(r#"{"id": "6", "result":"#, false, true);
    check(r#"{"result":"…"#, true, true);
    let notification = r#"{"jsonrpc":"2.0","method":"m","params":{"id":5"#;
    check(notification, false, false);
}

#[test]
fn connection_end_ends_its_requests() {
    let tap = new_tap();
    let slot = send(&tap, 5, "tools/call");
    assert_eq!(tap.end("it ended").len(), 1);
    let failure = slot.take().expect("an answer").expect_err("a failure");
    assert_eq!(
        (failure.to_string(), failure.sent),
        ("it ended".to_owned(), true)
    );
    // A later request is not sent.
    let slot = send(&tap, 6, "tools/call");
    let failure = slot.take().expect("an answer").expect_err("a failure");
    assert!(!failure.sent);
}

#[test]
fn arguments_are_sent_verbatim() {
    let mut request = CustomRequest::new("tools/call", Some(json!({ "name": "t" })));
    let members = r#""name":"t","arguments":{"n":1e400}"#;
    request.extensions.insert(Members(members.into()));
    let request = rmcp::model::ClientRequest::CustomRequest(request);
    let message = ClientJsonRpcMessage::request(request, NumberOrString::Number(5));
    let sent = String::from_utf8(text(&message)).expect("UTF-8");
    expect![[r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{},"name":"t","arguments":{"n":1e400}}}"#]]
        .assert_eq(&sent);
}
