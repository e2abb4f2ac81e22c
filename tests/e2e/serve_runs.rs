//! Runs that outlast a call of `callgate serve`: left, waited for, cancelled,
//! limited.

use callgate_tests::{Workbench, odd};
use rmcp::model::{CallToolRequest, CallToolResponse, ClientRequest};
use rmcp::service::PeerRequestOptions;
use serde_json::json;
use tokio::sync::mpsc;

use crate::serve_client::{
    ERAS, NEWEST, Session, User, call, connect, hanging_and_asked, one_ends, request, shown, value,
};

impl Session {
    /// Begins a run without waiting for it, and returns its id.
    async fn leave(&self, code: &str) -> String {
        let arguments = json!({ "code": code, "limits": { "waitMs": 0 } });
        let (is_error, said) = self.result("run_script", arguments).await;
        assert!(!is_error, "{said}");
        let id = said.split('"').nth(1).expect("an id");
        assert!(id.starts_with("r-") && id.len() == 18, "{said}");
        id.to_owned()
    }
}

/// A rule that is added while a server runs has no effect before its restart.
#[tokio::test]
async fn changed_configuration_is_named_in_reports() {
    let bench = Workbench::demo();
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    let file = bench.path().join("callgate.json");
    let first = std::fs::read_to_string(&file).expect("a file");
    let run = async || {
        session
            .result("run_script", json!({ "code": "return 3" }))
            .await
            .1
    };
    assert_eq!(run().await, "3\n");
    let mut denying: serde_json::Value = serde_json::from_str(&first).expect("JSON");
    denying["permissions"]["deny"] = json!(["ticketing_*"]);
    for changed in [denying.to_string(), format!("{first} ")] {
        bench.write("callgate.json", &changed);
        let said = run().await;
        assert!(
            said.contains("the configuration has changed since"),
            "{said}"
        );
    }
    bench.write("callgate.json", &first);
    assert_eq!(run().await, "3\n");
}

#[tokio::test]
async fn unfinished_run_can_be_fetched_with_wait() {
    for version in ERAS {
        let bench = hanging_and_asked();
        let session = connect(&bench, User::new(&version, &["once"]), &[]).await;
        // The script asks while no call waits for the run, so the run cannot end before `wait`.
        let script = "console.log('begun');
            const issue = await ticketing_createIssue({ title: 'A', body: 'B' });
            return issue.issueId !== '';";
        let run = session.leave(script).await;
        // The report can be fetched more than once.
        for _ in 0..2 {
            let wait = json!({ "run": run, "waitMs": 60_000 });
            let report = session.result("wait", wait).await;
            assert_eq!(report, (false, "begun\ntrue\n".to_owned()), "{version}");
        }
        assert_eq!(session.asked().len(), 1);
    }
}

/// A part of the output of a run that goes on cannot be read: that is said at once.
#[tokio::test]
async fn part_of_running_run_is_answered_at_once() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "odd": odd("hang-on-call") },
        "permissions": { "allow": ["*"] },
    }));
    for version in ERAS {
        let session = connect(&bench, User::new(&version, &[]), &[]).await;
        let run = session
            .leave("console.log('x'.repeat(99)); await odd_hang({})")
            .await;
        for part in [
            json!({ "offset": 0 }),
            json!({ "bytes": 7, "waitMs": 50_000 }),
        ] {
            let mut wait = part;
            wait["run"] = run.clone().into();
            let began = std::time::Instant::now();
            let (is_error, said) = session.result("wait", wait).await;
            assert!(began.elapsed().as_secs() < 40, "{version}: {said}");
            assert!(
                !is_error && said.contains(" in parts once it has ended"),
                "{said}"
            );
            assert_eq!(said.matches(&run).count(), 1, "{said}");
        }
        let (_, said) = session.result("cancel_run", json!({ "run": run })).await;
        assert!(said.contains("cancelled"), "{said}");
    }
}

#[tokio::test]
async fn wait_and_ledger_share_the_run_id() {
    let bench = Workbench::demo();
    for version in ERAS {
        let session = connect(
            &bench,
            User::new(&version, &[]),
            &["--ledger", "calls.jsonl"],
        )
        .await;
        let run = session.leave("return await ticketing_listIssues()").await;
        let wait = json!({ "run": run, "waitMs": 60_000 });
        let (is_error, said) = session.result("wait", wait).await;
        assert!(!is_error, "{said}");
        let mut lines = bench.ledger_lines();
        lines.retain(|line| line["run"] == run);
        let events: Vec<_> = lines.iter().map(|line| &line["event"]).collect();
        assert_eq!(events, ["runStarted", "before", "after", "runEnded"]);
        assert_eq!(lines[0]["client"], "test 1", "{version}");
    }
}

#[tokio::test]
async fn question_of_unfinished_run_reaches_waiting_calls() {
    let bench = hanging_and_asked();
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    let run = session
        .leave(
            "return await ticketing_createIssue({ title: 'A', body: 'B' })
               .then(() => 'made', (error) => error.name);",
        )
        .await;
    let arguments = || json!({ "run": run, "waitMs": 60_000 });
    let mut states = Vec::new();
    for _ in 0..2 {
        match session.tool("wait", arguments()).await {
            CallToolResponse::InputRequired(required) => {
                states.push(required.request_state.expect("a state"));
            }
            other => panic!("{other:?}"),
        }
    }
    let come = |run: &str, state: &str| {
        let mut request = call("wait", json!({ "run": run, "waitMs": 60_000 }));
        request.request_state = Some(state.to_owned());
        let once = json!({ "action": "accept", "content": { "answer": "once" } });
        let responses = serde_json::from_value(json!({ "question-1": once }));
        request.input_responses = Some(responses.expect("responses"));
        session.client.call_tool_once(request)
    };
    let refused = come("r-other", &states[0]).await.expect_err("another run");
    let refused = refused.to_string();
    assert!(refused.contains("does not belong to"), "{refused}");
    match come(&run, &states[1]).await.expect("an answer") {
        CallToolResponse::Complete(result) => assert_eq!(value(&shown(&result).1), "made"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn cancelled_call_cancels_its_run() {
    for version in ERAS {
        let bench = hanging_and_asked();
        let mut user = User::new(&version, &[]);
        let (told, mut heard) = mpsc::unbounded_channel();
        user.told = told;
        let session = connect(&bench, user, &[]).await;
        let request = CallToolRequest::new(request("await odd_hang({})"));
        let request = ClientRequest::CallToolRequest(request);
        let options = PeerRequestOptions::no_options();
        let sent = session.client.send_cancellable_request(request, options);
        let sent = sent.await.expect("sent");
        let said = heard.recv().await.expect("news");
        assert_eq!(said, "1 1 call, odd_hang; 1 in progress", "{version}");
        let workers = session.workers();
        sent.cancel(Some("enough".to_owned())).await.expect("sent");
        one_ends(&workers).await;
    }
}

/// A model has no command line and no configuration.
#[tokio::test]
async fn hints_are_for_a_model() {
    let bench = Workbench::with_config(json!({
        "mcpServers": {},
        "limits": { "memory": "32MiB" },
        "check": { "typescript": "./nowhere" },
    }));
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    for (code, limits, expected) in [
        (
            "for (;;);",
            json!({ "timeoutMs": 50 }),
            "split it into several",
        ),
        (
            "await new Promise((done) => setTimeout(done, 60_000))",
            json!({ "runTimeoutMs": 300 }),
            "split it into several",
        ),
        (
            "const all = []; for (;;) all.push(new Array(100_000).fill(all.length))",
            json!({}),
            "keep less at once",
        ),
    ] {
        let given = json!({ "code": code, "limits": limits });
        let (_, said) = session.result("run_script", given).await;
        assert!(said.contains(expected), "{said}");
        for word in ["--", "limits.", "nowhere", "\"check\""] {
            assert!(!said.contains(word), "{word}: {said}");
        }
    }
}

#[tokio::test]
async fn run_limits_and_server_selection_are_enforced() {
    let bench = Workbench::demo();
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    let endless = json!({ "code": "for (;;);", "limits": { "timeoutMs": 50 } });
    let (is_error, said) = session.result("run_script", endless).await;
    assert!(is_error && said.contains("50 ms"), "{said}");

    let only = |code: &str| json!({ "code": code, "servers": ["logging"] });
    let dynamic = "try { await mcp.callTool('ticketing_createIssue', { title: 'A', body: 'B' }) }
        catch (error: any) { return [error instanceof McpDeniedError, error.message, error.server] }";
    let (is_error, said) = session.result("run_script", only(dynamic)).await;
    assert!(!is_error, "{said}");
    let why = "ticketing_createIssue is of server \"ticketing\", and this run may use the tools of \
               \"logging\" alone";
    let advice = "start a new run that includes that server";
    let message = format!("ticketing_createIssue was not called: denied: {why}; {advice}");
    let caught = json!([true, message, "ticketing"]);
    let told = format!("denied: ticketing_createIssue (line 1): {why}; {advice}");
    assert_eq!(said, format!("{caught}\n{told}\n"));
    // A named tool of another server is reported before the run, even with wrong arguments.
    let stated = only("await ticketing_createIssue({ titel: 1 })");
    let (_, said) = session.result("run_script", stated).await;
    assert!(said.starts_with(&format!("error: {why}\n")), "{said}");
    assert!(said.contains("1 type error; nothing was run"), "{said}");
    let fine = only("return (await logging_getLogs({ query: 'x' })).entries?.length ?? 'some'");
    let (_, said) = session.result("run_script", fine).await;
    assert!(!said.contains("may use the tools"), "{said}");
    let listed = only("return Object.keys(globalThis).map((name) => name.split('_')[0])");
    let (_, said) = session.result("run_script", listed).await;
    assert!(
        said.contains("\"logging\"") && !said.contains("ticketing"),
        "{said}"
    );
    assert!(!said.contains("console"), "{said}");
}

#[tokio::test]
async fn runs_wait_for_the_memory_of_the_server() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "odd": odd("hang-on-call") },
        "permissions": { "allow": ["*"] },
        // Room for one run with a heap and buffers of 128 MiB each.
        "serve": { "memory": "500MiB" },
    }));
    let session = connect(&bench, User::new(&NEWEST, &[]), &[]).await;
    let holds = session.leave("await odd_hang({})").await;
    let waits = session.leave("return 'done'").await;
    let wait = |run: &str, more: u64| json!({ "run": run, "waitMs": more });
    let (_, said) = session.result("wait", wait(&waits, 200)).await;
    assert!(said.contains("still running as run"), "{said}");
    let (_, said) = session.result("cancel_run", json!({ "run": holds })).await;
    assert!(said.contains("the run was cancelled"), "{said}");
    let (_, said) = session.result("wait", wait(&waits, 60_000)).await;
    assert_eq!(value(&said), "done");
}
