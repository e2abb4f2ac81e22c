//! `callgate check`: the tools that a script would call, and the rules for these calls.

use callgate_tests::{Workbench, demo_ticketing};
use serde_json::json;

use crate::cli::check_output;

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
    let [allowed, unknown] = [
        "ticketing_listIssues (line 1): allowed by rule \"ticketing_list*\" in permissions.allow\n",
        "line 3: no tool is named \"ticketing_closeIssue\"; did you mean \"ticketing_createIssue\"?\n",
    ];
    let asked = "ticketing_createIssue (line 2): needs approval: no rule matches\n\
                 to run it unattended: --allow ticketing_createIssue\n";
    let phrases = [allowed, asked, unknown];
    check_output(&bench, "check script.ts --check=off", 3, &phrases);
    let granted =
        "ticketing_createIssue (line 2): allowed by rule \"ticketing_create*\" in --allow\n";
    let command = "check script.ts --check=off --allow ticketing_create*";
    check_output(&bench, command, 1, &[allowed, granted, unknown]);
}
