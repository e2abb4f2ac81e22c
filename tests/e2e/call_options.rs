//! What a script says of one call: a signal that cancels it, and a time.

use callgate_tests::{Workbench, binary, odd};
use serde_json::{Value, json};

fn report(server: Value, script: &str) -> Value {
    let bench = Workbench::new(json!({ "odd": server }));
    bench.report(script, &["--check=off"])
}

#[test]
fn an_abort_cancels_the_call_at_its_server() {
    let report = report(
        odd("hang-on-call"),
        "const c = new AbortController();
         const call = odd_hang({}, { signal: c.signal }).catch((reason) => reason);
         // What answers this has read the call before it.
         await odd_cancelled({});
         c.abort('enough');
         const reason = await call;
         while (await odd_cancelled({}) < 1);
         return [reason, await odd_cancelled({})];",
    );
    assert_eq!(report["value"]["json"], json!(["enough", 1]), "{report:#}");
    let calls = report["calls"].as_array().expect("the calls");
    let hung = calls.iter().find(|call| call["function"] == "odd_hang");
    let hung = hung.expect("the call is in the ledger");
    assert!(hung.to_string().contains("\"cancelled\""), "{hung:#}");
}

#[test]
fn an_aborted_signal_makes_no_call() {
    let report = report(
        odd("hang-on-call"),
        "return await odd_hang({}, { signal: AbortSignal.abort('no') }).catch((reason) => reason);",
    );
    assert_eq!(report["value"]["json"], json!("no"), "{report:#}");
    assert_eq!(report["calls"], json!([]), "{report:#}");
}

#[test]
fn a_timeout_shortens_the_servers_limit_and_does_not_lift_it() {
    let mut server = odd("hang-on-call");
    server["callTimeout"] = json!("300ms");
    let report = report(
        server,
        "const said = [];
         for (const timeoutMs of [40, 3_600_000]) {
           await odd_hang({}, { timeoutMs }).catch((error) => said.push(error.name, error.message));
         }
         return said;",
    );
    assert_eq!(
        report["value"]["json"],
        json!([
            "McpTimeoutError",
            "odd_hang gave no answer within 40 ms",
            "McpTimeoutError",
            "odd_hang gave no answer within 300 ms"
        ]),
        "{report:#}"
    );
}

/// Whatever it may take without a sign of work, and whatever a script gives it.
#[test]
fn a_server_may_have_a_limit_for_all_of_a_call() {
    let mut server = odd("hang-on-call");
    server["callTimeout"] = json!("20s");
    server["maxCallTime"] = json!("300ms");
    let report = report(
        server,
        "const said = [];
         for (const options of [{}, { timeoutMs: 20_000 }]) {
           await odd_hang({}, options).catch((error) => said.push(error.name, error.message));
         }
         return said;",
    );
    assert_eq!(
        report["value"]["json"],
        json!([
            "McpTimeoutError",
            "odd_hang gave no answer within 300 ms",
            "McpTimeoutError",
            "odd_hang gave no answer within 300 ms"
        ]),
        "{report:#}"
    );
}

#[test]
fn a_timeout_covers_the_wait_for_a_server() {
    let script = "[ -e never ] && { cat > /dev/null; exit; }; exec \"$0\" \"$@\"";
    let bench = Workbench::new(json!({ "odd": {
        "command": "sh",
        "args": ["-c", script, binary("callgate-odd-server"), "hang-on-call"],
        "cwd": ".",
        "connect": "lazy",
    } }));
    // From now on its tools are known, and it does not get ready.
    assert_eq!(bench.callgate(&["tools"]).code, 0);
    bench.write("never", "");
    let report = bench.report(
        "const late = await odd_hang({}, { timeoutMs: 300 }).catch((error) => error);
         return [late.name, late.message, late.server, late.retryable];",
        &["--check=off"],
    );
    assert_eq!(
        report["value"]["json"],
        json!([
            "McpTimeoutError",
            "odd_hang gave no answer within 300 ms",
            "odd",
            true
        ]),
        "{report:#}"
    );
    assert_eq!(report["calls"], json!([]), "{report:#}");
}

#[test]
fn options_are_type_checked() {
    let bench = Workbench::new(json!({ "odd": odd("hang-on-call") }));
    let wrong = [
        "await odd_hang({}, { timeoutMs: '5' });",
        "await odd_hang({}, { timeout: 5 });",
        "await odd_hang({}, { signal: new AbortController() });",
        "await mcp.callTool('odd_hang', {}, 5);",
    ];
    let report = bench.report(&wrong.join("\n"), &["--check=require"]);
    let errors = report["check"]["errors"].as_array().expect("the errors");
    let lines: Vec<&Value> = errors
        .iter()
        .map(|error| &error["position"]["line"])
        .collect();
    assert_eq!(lines, [1, 2, 3, 4], "{report:#}");
    let right = "const signal = AbortSignal.abort();
                 await odd_hang({}, { signal, timeoutMs: 5 }).catch(() => {});
                 await mcp.callTool('odd_hang', {}, { signal }).catch(() => {});";
    let report = bench.report(right, &["--check=require"]);
    assert_eq!(report["status"], "completed", "{report:#}");
}
