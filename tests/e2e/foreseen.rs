//! What the command line lists of tools, and what it foresees of a script.

use callgate_tests::{Workbench, fixture};
use expect_test::expect;
use serde_json::json;

use crate::cli::check;

#[test]
fn what_a_script_would_call() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": { "allow": ["ticketing_list*"] },
    }));
    bench.write(
        "script.ts",
        "const { issues } = await ticketing_listIssues();\n\
         if (!issues.length) await ticketing_createIssue({ title: 'first' });\n\
         await ticketing_closeIssue({});\n",
    );
    check(
        &bench,
        &bench.callgate(&["check", "script.ts", "--check=off"]),
        expect![[r#"
            exit code 3
            --- stdout
            ticketing_listIssues (line 1): allowed by rule "ticketing_list*" in permissions.allow
            ticketing_createIssue (line 2): needs approval: no rule matches
            to run it unattended: --allow ticketing_createIssue
            line 3: no tool is named "ticketing_closeIssue"; did you mean "ticketing_createIssue"?
            --- stderr
        "#]],
    );
    let allowed = [
        "check",
        "script.ts",
        "--check=off",
        "--allow",
        "ticketing_create*",
    ];
    check(
        &bench,
        &bench.callgate(&allowed),
        expect![[r#"
            exit code 1
            --- stdout
            ticketing_listIssues (line 1): allowed by rule "ticketing_list*" in permissions.allow
            ticketing_createIssue (line 2): allowed by rule "ticketing_create*" in --allow
            line 3: no tool is named "ticketing_closeIssue"; did you mean "ticketing_createIssue"?
            --- stderr
        "#]],
    );
}
