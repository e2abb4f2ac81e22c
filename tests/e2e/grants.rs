//! Grants by a person: the text of the question, the rule in the configuration, and grants before
//! a run.

use callgate_tests::{Workbench, binary, demo_ticketing, odd};
use expect_test::expect;
use rexpect::session::PtySession;
use serde_json::json;

use crate::pty::at_terminal;

/// The end of the question at a call.
const PROMPT: &str = "[n] no: ";

fn ticketing() -> serde_json::Value {
    json!({ "mcpServers": { "ticketing": demo_ticketing() } })
}

/// The terminal's output up to `end`, without live lines and escape sequences.
fn until(session: &mut PtySession, end: &str) -> String {
    let text = session.exp_string(end).expect(end);
    // The reader gives a character for each byte.
    let bytes: Vec<u8> = text.chars().filter_map(|c| u8::try_from(c).ok()).collect();
    plain(&String::from_utf8(bytes).expect("UTF-8"))
}

fn plain(text: &str) -> String {
    let text = text.rsplit("\u{1b}[2K").next().unwrap_or_default();
    let text = text.trim_start_matches("\u{1b}[1A");
    text.replace('\r', "").trim().to_owned()
}

fn config(bench: &Workbench) -> String {
    let text = std::fs::read_to_string(bench.path().join("callgate.json")).expect("a file");
    redacted(&text)
}

/// Replaces the parts that differ from machine to machine.
fn redacted(text: &str) -> String {
    let mut text = text.replace(
        &binary("callgate").with_file_name("").display().to_string(),
        "BIN/",
    );
    while let Some(at) = text.find("sha256:") {
        let end = text.len().min(at + "sha256:".len() + 64);
        text.replace_range(at..end, "HASH");
    }
    text
}

#[test]
fn always_answer_is_saved_and_allows_later_runs() {
    let bench = Workbench::empty();
    let server = demo_ticketing();
    let text = format!(
        "// ours\n{{\n  \"mcpServers\": {{ \"ticketing\": {server} }}, // one\n  \"permissions\": {{\n    \
         \"ask\": [\"ticketing_create*\"], // mind\n  }},\n}}\n"
    );
    bench.write("callgate.json", &text);
    bench.write(
        "script.ts",
        "return (await ticketing_createIssue({ title: 'x' })).title",
    );
    let mut session = at_terminal(&bench, &["run", "script.ts"]);
    until(&mut session, PROMPT);
    session.send_line("a").expect("answer");
    let rest = session.exp_eof().expect("the end");
    assert!(plain(&rest).ends_with('x'), "{rest}");
    let wrote = "wrote \"ticketing_createIssue\" to permissions.allow of callgate.json\r\n";
    assert!(rest.contains(wrote), "{rest}");
    expect![[r#"
        // ours
        {
          "mcpServers": { "ticketing": SERVER }, // one
          "permissions": {
            "ask": ["ticketing_create*"], // mind
            "allow": [
              { "tool": "ticketing_createIssue", "definition": "HASH" }
            ],
          },
        }
    "#]]
    .assert_eq(&config(&bench).replace(&redacted(&server.to_string()), "SERVER"));
    // Without a terminal, a call that needs approval would be denied.
    let ran = bench.callgate(&["run", "script.ts", "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    expect![[r#"allowed by rule "ticketing_createIssue" (one definition) in permissions.allow"#]]
        .assert_eq(
            ran.json()["calls"][0]["decision"]
                .as_str()
                .expect("a decision"),
        );
}

/// A later process still knows the allowed definition, and its question shows the difference.
#[test]
fn question_shows_changes_since_the_always_answer() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "odd": odd("changes") },
        "permissions": { "allow": ["odd_add", "odd_change"] },
    }));
    let script = |change: &str| {
        format!(
            "await odd_add({{ name: 'fresh' }}); {change}
             return await mcp.callTool('odd_fresh', {{}}).catch((error) => error.name)"
        )
    };
    bench.write("as-it-is.ts", &script(""));
    // A call of an unknown name waits for the pending list of tools.
    let changed = "await odd_change({ name: 'fresh' });
                   await mcp.callTool('odd_none', {}).catch(() => {});";
    let changed = script(changed);
    bench.write("changed.ts", &changed);

    let mut session = at_terminal(&bench, &["run", "as-it-is.ts"]);
    let question = until(&mut session, PROMPT);
    assert!(!question.contains("its definition"), "{question}");
    session.send_line("a").expect("answer");
    let rest = session.exp_eof().expect("the end");
    assert!(plain(&rest).ends_with("fresh was called"), "{rest}");
    let ran = bench.callgate(&["run", "as-it-is.ts"]);
    assert_eq!(ran.stdout, "fresh was called\n", "{ran:#?}");

    let mut session = at_terminal(&bench, &["run", "changed.ts"]);
    let question = until(&mut session, PROMPT);
    expect![[r#"
        ┌ The script wants to call odd_fresh:
        │ tool "fresh" of server "odd", which needs approval: rule 
        │ "odd_fresh" (one definition) in permissions.allow is 
        │ void: the server changed the tool
        ├ its server says:
        │ Changed 1 times
        ├ line 3 of the script:
        │ return await mcp.callTool('odd_fresh', {}).catch((error) 
        │ => error.name)
        ├ arguments:
        │ {}
        ├ so far in this run:
        │ odd_add (1 called), odd_change (1 called)
        ├ its definition has changed since it was allowed:
        │ - description: "Changed 0 times"
        │ + description: "Changed 1 times"
        ├ [a] adds to permissions.allow of callgate.json:
        │ "odd_fresh", until its server changes the tool
        └ allow? [y] this call  [r] all calls of this tool in this run  [a] always, in callgate.json  [x] no, to this tool in this run  [e] this call with other arguments  [w] show whole"#]].assert_eq(&question);
    session.send_line("n").expect("answer");
    let rest = session.exp_eof().expect("the end");
    assert!(rest.contains("McpDeniedError"), "{rest}");
}

#[test]
fn check_grant_is_saved_in_the_configuration() {
    let bench = Workbench::with_config(ticketing());
    bench.write(
        "script.ts",
        "await ticketing_listIssues();\nawait ticketing_createIssue({ title: 'x' });\n",
    );
    let mut session = at_terminal(&bench, &["check", "script.ts", "--grant", "--check=off"]);
    let question = until(&mut session, "[n] none: ");
    expect![[r#"
        ticketing_listIssues (line 1): needs approval: no rule matches, and the server that calls this tool read-only is not marked trusted
        ticketing_createIssue (line 2): needs approval: no rule matches
        to run it unattended: --allow ticketing_listIssues --allow ticketing_createIssue

        ┌ The script names these tools, which need approval:
        ├ 1 ticketing_listIssues of server "ticketing" (line 1):
        │ its server says List issues; Get every issue filed so 
        │ far, oldest first.
        │ needs approval: no rule matches, and the server that 
        │ calls this tool read-only is not marked trusted
        ├ 2 ticketing_createIssue of server "ticketing" (line 2):
        │ its server says Create issue; File an issue and get its 
        │ id.
        │ needs approval: no rule matches
        └ allow them always, in callgate.json? [all] of them  [1 2] those, by number"#]].assert_eq(&question);
    for odd in ["", "3", "0", "1 x", "a", "y"] {
        session.send_line(odd).expect("answer");
        let again = until(&mut session, "[n] none: ");
        assert!(
            again.contains("├ type all, numbers from 1 to 2 or n, then Enter\n└ allow them"),
            "{again}"
        );
    }
    session.send_line("2").expect("answer");
    let rest = session.exp_eof().expect("the end");
    assert!(
        rest.contains("wrote 1 rule to permissions.allow of callgate.json"),
        "{rest}"
    );
    let ran = bench.callgate(&["check", "script.ts", "--check=off"]);
    let stdout = redacted(&ran.stdout);
    expect![[r#"
        ticketing_listIssues (line 1): needs approval: no rule matches, and the server that calls this tool read-only is not marked trusted
        ticketing_createIssue (line 2): allowed by rule "ticketing_createIssue" (one definition) in permissions.allow
        to run it unattended: --allow ticketing_listIssues
    "#]].assert_eq(&stdout);
}

#[test]
fn a_run_can_be_granted_before_it_begins() {
    let bench = Workbench::with_config(ticketing());
    bench.write(
        "script.ts",
        "await ticketing_createIssue({ title: 'x' }); return (await ticketing_listIssues()).issues.length",
    );
    let mut session = at_terminal(&bench, &["run", "script.ts", "--grant", "--json"]);
    until(&mut session, "[n] none: ");
    session.send_line("all").expect("answer");
    let rest = plain(&session.exp_eof().expect("the end"));
    assert!(!rest.contains("allow?"), "{rest}");
    let by_grant = rest.matches("allowed by the grant for this run").count();
    assert_eq!(by_grant, 2, "{rest}");
    assert_eq!(config(&bench), redacted(&ticketing().to_string()));
}

#[test]
fn single_tool_is_granted_by_yes() {
    let bench = Workbench::with_config(ticketing());
    bench.write(
        "script.ts",
        "return (await ticketing_createIssue({ title: 'lone' })).title",
    );
    for (answer, said) in [("yes", "lone"), ("1", "lone"), ("n", "allow?")] {
        let mut session = at_terminal(&bench, &["run", "script.ts", "--grant"]);
        let question = until(&mut session, PROMPT);
        assert!(
            question.ends_with("└ allow it in this run? [y] yes"),
            "{question}"
        );
        session.send_line(answer).expect("answer");
        session.exp_string(said).expect(said);
    }
}

/// The person reads a warning, and the call is made.
#[test]
fn always_answer_warns_about_protected_file() {
    use std::os::unix::fs::PermissionsExt as _;
    for (name, call) in [
        ("createIssue", "ticketing_createIssue({ title: 'kept' })"),
        ("listIssues", "ticketing_listIssues()"),
    ] {
        let bench = Workbench::with_config(ticketing());
        bench.write("script.ts", &format!("await {call}; return 'kept on'"));
        let file = bench.path().join("callgate.json");
        let mode = std::fs::Permissions::from_mode(0o444);
        std::fs::set_permissions(file, mode).expect("to protect the file");
        let mut session = at_terminal(&bench, &["run", "script.ts", "--check=off"]);
        until(&mut session, PROMPT);
        session.send_line("a").expect("answer");
        let rest = session.exp_eof().expect("the end");
        let warning = format!("warning: ticketing_{name} is allowed in this run only: ");
        assert!(rest.contains(&warning), "{rest}");
        assert!(
            rest.contains("kept on") && !rest.contains("ERROR"),
            "{rest}"
        );
    }
}
