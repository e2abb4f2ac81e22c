//! The options of one call in a script: an abort signal and a timeout.

use callgate_tests::{Workbench, odd};
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
fn timeout_option_only_shortens_the_server_timeout() {
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
