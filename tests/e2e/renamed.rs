//! Tools that have another name because of who is beside them, and who is not.

use callgate_tests::{Workbench, odd};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::cli::check;

/// The tool `search_records_3` of a server `records` beside a server `records_search`, which
/// nobody uses: what was written of `records_search_records_3` is about it all the same.
#[track_caller]
fn check_run(more: Value, arguments: &[&str], expected: Expect) {
    let mut records = odd("many");
    records["trusted"] = true.into();
    let mut config = json!({
        "mcpServers": {
            "records": records,
            "records_search": { "command": "none", "disabled": true },
        },
    });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    let bench = Workbench::with_config(config);
    bench.write(
        "script.ts",
        "const found = await records_$search_records_3({ query: 'x', project: 'p' });
         return found.records.length;",
    );
    let mut ran = bench.callgate(arguments);
    // One for each of its forty tools.
    let told = "warning: a name that is, or may be, another tool's: ";
    let lines = ran.stderr.split_inclusive('\n');
    ran.stderr = lines.filter(|line| !line.starts_with(told)).collect();
    check(&bench, &ran, expected);
}

const RUN: &[&str] = &["run", "script.ts"];
const CHECK: &[&str] = &["check", "script.ts", "--check=off"];

#[test]
fn a_deny_rule_goes_on_denying() {
    let permissions = json!({ "permissions": {
        "allow": ["records_*"], "deny": ["records_search_records_3"],
    } });
    check_run(
        permissions.clone(),
        RUN,
        expect![[r#"
        exit code 3
        --- stdout
        --- stderr
        error: McpDeniedError: records_$search_records_3 was not called: denied by rule "records_search_records_3" in permissions.deny
          --> script.ts:1:21
          1 | const found = await records_$search_records_3({ query: 'x', project: 'p' });
            |                     ^
        calls: 1
          1 records_$search_records_3 denied by rule "records_search_records_3" in permissions.deny
    "#]],
    );
    check_run(
        permissions.clone(),
        CHECK,
        expect![[r#"
        exit code 3
        --- stdout
        records_$search_records_3 (line 1): denied by rule "records_search_records_3" in permissions.deny
        --- stderr
    "#]],
    );
    check_run(
        permissions,
        &["run", "script.ts", "--dry-run"],
        expect![[r#"
            exit code 3
            --- stdout
            --- stderr
            error: McpDeniedError: records_$search_records_3 was not called: denied by rule "records_search_records_3" in permissions.deny
              --> script.ts:1:21
              1 | const found = await records_$search_records_3({ query: 'x', project: 'p' });
                |                     ^
            calls: 1
              1 records_$search_records_3 denied by rule "records_search_records_3" in permissions.deny
            dry run: no call was withheld; 1 was denied
        "#]],
    );
}

#[test]
fn an_allow_rule_lets_no_more_through_than_it_did() {
    let once = json!({ "permissions": {
        "allow": [{ "tool": "records_search_records_3", "maxCalls": 1 }],
    } });
    check_run(
        once.clone(),
        RUN,
        expect![[r#"
        exit code 3
        --- stdout
        --- stderr
        error: McpDeniedError: records_$search_records_3 was not called: needs approval: rule "records_search_records_3" (1 call) in permissions.allow is void, it is for another name of the tool, and there is nobody to ask; whoever runs Callgate can allow it with --allow 'records_$search_records_3', or under permissions.allow
          --> script.ts:1:21
          1 | const found = await records_$search_records_3({ query: 'x', project: 'p' });
            |                     ^
        calls: 1
          1 records_$search_records_3 needs approval: rule "records_search_records_3" (1 call) in permissions.allow is void, it is for another name of the tool, and there is nobody to ask
    "#]],
    );
    check_run(
        once.clone(),
        CHECK,
        expect![[r#"
        exit code 3
        --- stdout
        records_$search_records_3 (line 1): needs approval: rule "records_search_records_3" (1 call) in permissions.allow is void, it is for another name of the tool
        to run it unattended: --allow 'records_$search_records_3'
        --- stderr
    "#]],
    );
    check_run(
        once,
        &["run", "script.ts", "--allow", "records_$search_records_3"],
        expect![[r#"
            exit code 0
            --- stdout
            1
            --- stderr
        "#]],
    );
}
