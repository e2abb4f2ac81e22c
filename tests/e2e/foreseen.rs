//! `callgate check`: the tools that a script would call, and the rules for these calls.

use callgate_tests::{Workbench, demo_ticketing};
use expect_test::expect;
use serde_json::json;

use crate::cli::told;

#[test]
fn check_lists_called_tools_with_their_rules() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": demo_ticketing() },
        "permissions": { "allow": ["ticketing_list*"] },
    }));
    bench.write(
        "script.ts",
        "const { issues } = await ticketing_listIssues();\n\
         if (!issues.length) await ticketing_createIssue({ title: 'first' });\n\
         await ticketing_closeIssue({});\n",
    );
    let commands = [
        "check script.ts --check=off",
        "check script.ts --check=off --allow ticketing_create*",
    ];
    expect![[r#"
        3 check script.ts --check=off: ticketing_listIssues (line 1): allowed by rule "ticketing_list*" in permissions.allow
        ticketing_createIssue (line 2): needs approval: no rule matches
        to run it unattended: --allow ticketing_createIssue
        line 3: no tool is named "ticketing_closeIssue"; did you mean "ticketing_createIssue"?
        1 check script.ts --check=off --allow ticketing_create*: ticketing_listIssues (line 1): allowed by rule "ticketing_list*" in permissions.allow
        ticketing_createIssue (line 2): allowed by rule "ticketing_create*" in --allow
        line 3: no tool is named "ticketing_closeIssue"; did you mean "ticketing_createIssue"?
    "#]].assert_eq(&told(&bench, &commands));
}
