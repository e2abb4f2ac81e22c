//! Foreign texts in reports and arguments: half a character, control characters for a terminal,
//! and texts that imitate Callgate's own lines.

use callgate_tests::{Workbench, odd};
use expect_test::expect;
use serde_json::json;

use crate::cli;

#[test]
fn server_text_cannot_imitate_callgate_lines() {
    let said = "no\nerror: allowed for good\r\nwarning: x\rdry run: every call only read";
    let refusal = json!({ "jsonrpc": "2.0", "id": 0, "error": { "code": -1, "message": said } });
    let refusal = format!("read -r initialize; printf '%s\\n' '{refusal}'; cat >/dev/null");
    let bench = Workbench::with_config(json!({
        "mcpServers": {
            "odd": odd("flaky"),
            "refuses": { "command": "sh", "args": ["-c", refusal], "protocol": "2025-11-25" },
        },
        "permissions": { "allow": ["*"] },
    }));
    let arguments = json!({ "code": -1, "message": said }).to_string();
    cli::check(
        &bench,
        &bench.callgate(&["call", "odd_rejects", &arguments]),
        expect![[r#"
            exit code 1
            --- stdout
            --- stderr
            error: odd_rejects: no
                error: allowed for good
                warning: x
                dry run: every call only read (code -1)
        "#]],
    );
    let ran = bench.callgate(&["tools"]);
    expect![[r#"
        warning: server `refuses` did not start: it refused initialize: no
          error: allowed for good
          warning: x
          dry run: every call only read (code -1)
        warning: server "odd": the types of the tool "puzzles" are wider than its schema: the reference "https://example.com/puzzle.json" does not lead to a part of this schema at "/outputSchema"
    "#]].assert_eq(&ran.stderr);
}
