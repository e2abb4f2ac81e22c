//! Invalid messages and unknown requests: `callgate serve` answers with an error or not at all,
//! and keeps working.

use callgate_tests::Workbench;
use callgate_tests::host::Host;
use serde_json::{Value, json};

#[test]
fn invalid_messages_get_errors_without_side_effects() {
    let bench = Workbench::asking();
    let mut host = Host::start(&bench, &[]).expect("a handshake");
    let deep = "[".repeat(10_000);
    for line in ["{", "null", "\u{0}\u{7f}", "[1, 2", "{}", &deep] {
        host.send(line).expect("sent");
    }
    let nameless = json!({ "jsonrpc": "2.0", "method": "tools/call" });
    host.send(nameless).expect("sent");
    let mut id = 1;
    let mut answer = |params: Value| {
        id += 1;
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        host.send(call).expect("sent");
        host.answer(id).expect("an answer")
    };
    let arguments = "the params do not match tools/call: \"arguments\" must be an object";
    let name = "the params do not match tools/call: \"name\" is missing; it is a string";
    for (params, expected) in [
        (
            json!({ "name": "run_scrpt", "arguments": {} }),
            "no tool is named \"run_scrpt\"; did you mean \"run_script\"?",
        ),
        (json!({ "name": "run_script", "arguments": [] }), arguments),
        (json!({ "arguments": {} }), name),
        // Functions that no server has are not tools either.
        (
            json!({ "name": "ticketing_closeIssue", "arguments": {} }),
            "no tool is named \"ticketing_closeIssue\"; there are run_script, wait, cancel_run, search_tools, get_tool_details",
        ),
    ] {
        let error = &answer(params)["error"];
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(-32602), &json!(expected))
        );
    }
    let long = answer(json!({ "name": "x".repeat(10_000), "arguments": {} }));
    assert!(
        long["error"]["message"]
            .as_str()
            .is_some_and(|said| said.len() < 400),
        "{long}"
    );
    let wrong = json!({ "code": 7, "cod": 1 });
    let wrong = answer(json!({ "name": "run_script", "arguments": wrong }));
    assert_eq!(wrong["result"]["isError"], true, "{wrong}");
    let good = json!({ "name": "run_script", "arguments": { "code": "return 1 + 1" } });
    let good = answer(good);
    assert_eq!(good["result"]["content"][0]["text"], "2\n", "{good}");
    assert!(host.end().expect("an end").success());
}
