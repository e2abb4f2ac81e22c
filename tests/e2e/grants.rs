//! What a person grants: what the question shows, what is written into the
//! configuration, and what is granted before a run.

use std::path::Path;

use callgate_tests::{Workbench, binary, fixture, odd};
use expect_test::{Expect, expect};
use rexpect::process::{Signal, WaitStatus};
use rexpect::session::PtySession;
use serde_json::json;

use crate::endpoint::{Do, Endpoint};
use crate::pty::at_terminal;

/// The end of the question at a call.
const PROMPT: &str = "[n] no: ";

fn ticketing() -> serde_json::Value {
    json!({ "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) } })
}

/// What comes up to `end`, without live lines and escape sequences.
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

/// What was broken into rows, put together again.
fn in_one_row(text: &str) -> String {
    text.replace("\n│ ", "")
}

fn config(bench: &Workbench) -> String {
    let text = std::fs::read_to_string(bench.path().join("callgate.json")).expect("a file");
    redacted(&text)
}

/// Without what differs from machine to machine.
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
fn a_question_shows_what_there_is_to_know() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": { "allow": ["ticketing_list*"] },
    }));
    bench.write(
        "script.ts",
        "await ticketing_listIssues();\nconst title = 'x'.repeat(20);\n  \
         await ticketing_createIssue({ title }); // \u{1b}[31mred\n",
    );
    let mut session = at_terminal(&bench, &["run", "script.ts"]);
    let question = until(&mut session, PROMPT);
    expect![[r#"
        ┌ The script wants to call ticketing_createIssue:
        │ tool "createIssue" of server "ticketing", which needs 
        │ approval: no rule matches
        ├ its server says:
        │ Create issue
        │ File an issue and get its id.
        ├ line 3 of the script:
        │ await ticketing_createIssue({ title }); // \u001b[31mred
        ├ arguments:
        │ {"title":"xxxxxxxxxxxxxxxxxxxx"}
        ├ so far in this run:
        │ ticketing_listIssues (1 called)
        └ allow? [y] this call  [r] all calls of this tool in this run  [a] always, in callgate.json  [w] show whole"#]].assert_eq(&question);
    session.send_line("n").expect("answer");
    session.exp_eof().expect("the end");
}

#[test]
fn long_arguments_are_shown_whole_on_demand() {
    let bench = Workbench::with_config(ticketing());
    bench.write(
        "script.ts",
        "await ticketing_createIssue({ title: 'x'.repeat(500) + 'middle' + 'x'.repeat(500) })",
    );
    let mut session = at_terminal(&bench, &["run", "script.ts"]);
    let question = until(&mut session, PROMPT);
    assert!(
        in_one_row(&question).contains("the middle is cut: 1018 bytes in all"),
        "{question}"
    );
    assert!(!in_one_row(&question).contains("xmiddlex"), "{question}");
    session.send_line("w").expect("answer");
    let whole = until(&mut session, PROMPT);
    assert!(in_one_row(&whole).contains("xmiddlex"), "{whole}");
    session.send_line("n").expect("answer");
    session.exp_eof().expect("the end");
}

#[test]
fn always_is_written_into_the_configuration_and_holds_in_the_next_run() {
    let bench = Workbench::empty();
    let server = fixture("callgate-demo-ticketing", &[]);
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
    // Nobody is there to be asked.
    let ran = bench.callgate(&["run", "script.ts", "--json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    expect![[r#"allowed by rule "ticketing_createIssue" (one definition) in permissions.allow"#]]
        .assert_eq(
            ran.json()["calls"][0]["decision"]
                .as_str()
                .expect("a decision"),
        );
}

#[test]
fn a_grant_is_void_when_the_tool_has_changed() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": { "allow": [{
            "tool": "ticketing_createIssue",
            "definition": format!("sha256:{}", "0".repeat(64)),
        }] },
    }));
    bench.write("script.ts", "await ticketing_createIssue({ title: 'x' })");
    let ran = bench.callgate(&["run", "script.ts"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert!(
        ran.stderr
            .contains("the server has changed what the tool is"),
        "{ran:#?}"
    );
    let mut session = at_terminal(&bench, &["run", "script.ts"]);
    let question = until(&mut session, PROMPT);
    assert!(
        question.contains("its definition has changed since it was allowed"),
        "{question}"
    );
    session.send_line("n").expect("answer");
    session.exp_eof().expect("the end");
}

/// What the tool was is still known to another process, which asks about what it became.
#[test]
fn a_question_shows_what_has_changed_since_always() {
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
    // A name that is none waits for the list that is on its way.
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
        │ void, the server has changed what the tool is
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
        │ - "description": "Changed 0 times",
        │ + "description": "Changed 1 times",
        └ allow? [y] this call  [r] all calls of this tool in this run  [a] always, in callgate.json  [w] show whole"#]].assert_eq(&question);
    session.send_line("n").expect("answer");
    let rest = session.exp_eof().expect("the end");
    assert!(rest.contains("McpDeniedError"), "{rest}");
}

#[test]
fn always_that_cannot_be_written_counts_and_is_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Workbench::with_config(ticketing());
    bench.write(
        "script.ts",
        "return (await ticketing_createIssue({ title: 'x' })).title",
    );
    let file = bench.path().join("callgate.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).expect("mode");
    let mut session = at_terminal(&bench, &["run", "script.ts"]);
    until(&mut session, PROMPT);
    session.send_line("a").expect("answer");
    let rest = session.exp_eof().expect("the end");
    assert!(
        rest.contains("ticketing_createIssue is allowed for this session only: callgate.json: it may not be written to"),
        "{rest}"
    );
    assert!(plain(&rest).ends_with('x'), "{rest}");
}

/// Nobody answers a question in vain, and no server is started for it.
#[test]
fn what_cannot_be_written_is_not_asked_about() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Workbench::with_config(ticketing());
    bench.write("script.ts", "await ticketing_listIssues()");
    let file = bench.path().join("callgate.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).expect("mode");
    let mut session = at_terminal(&bench, &["check", "script.ts", "--grant"]);
    let said = plain(&session.exp_eof().expect("the end"));
    expect!["callgate: --grant cannot write what you allow: callgate.json: it may not be written to; to allow it in one run alone, `callgate run --grant`"].assert_eq(&said);
    let ended = session.process().wait().expect("an end");
    assert!(matches!(ended, WaitStatus::Exited(_, 2)), "{ended:?}");
}

#[test]
fn check_grants_for_good() {
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

        ┌ The script names these tools, which would be asked about:
        ├ 1 ticketing_listIssues of server "ticketing" (line 1):
        │ its server says List issues; Get every issue filed so 
        │ far, oldest first.
        │ needs approval: no rule matches, and the server that 
        │ calls this tool read-only is not marked trusted
        ├ 2 ticketing_createIssue of server "ticketing" (line 2):
        │ its server says Create issue; File an issue and get its 
        │ id.
        │ needs approval: no rule matches
        └ allow them for good, in callgate.json? [a] all of them  [1 2] those, by number"#]].assert_eq(&question);
    for odd in ["", "3", "0", "1 x"] {
        session.send_line(odd).expect("answer");
        let again = until(&mut session, "[n] none: ");
        assert!(
            again.contains("├ type a, numbers from 1 to 2 or n, then Enter\n└ allow them"),
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

/// Whoever renews leave sees what it is for now, as whoever is asked during a run.
#[test]
fn leave_is_not_renewed_without_what_has_changed() {
    for (command, place) in [
        ("check", "for good, in callgate.json"),
        ("run", "in this run"),
    ] {
        let mut config = ticketing();
        config["permissions"] = json!({ "allow": [{
            "tool": "ticketing_createIssue",
            "definition": format!("sha256:{}", "0".repeat(64)),
        }] });
        let bench = Workbench::with_config(config);
        bench.write("script.ts", "await ticketing_createIssue({ title: 'x' })");
        let arguments = [command, "script.ts", "--grant", "--check=off"];
        let mut session = at_terminal(&bench, &arguments);
        let question = until(&mut session, "[n] none: ");
        let said =
            "├ its definition has changed since it was allowed; what it was then is not known";
        assert!(question.contains(said), "{question}");
        let prompt = format!(
            "└ allow them {place}? [a] all of them  [1 2] those, by number  [w] show whole"
        );
        assert!(question.contains(&prompt), "{question}");
        session.send_line("w").expect("answer");
        let whole = until(&mut session, "[n] none: ");
        assert!(whole.contains(said), "{whole}");
        session.send_line("n").expect("answer");
        if command == "run" {
            until(&mut session, PROMPT);
            session.send_line("n").expect("answer");
        }
        session.exp_eof().expect("the end");
    }
}

/// A grant is for the extraction as it is, and comes before rules that ask.
#[test]
fn always_holds_for_an_extraction() {
    let model = Endpoint::doing([Do::Say("1"), Do::Say("2")]);
    let bench = Workbench::with_config(json!({
        "models": { "small": { "api": "openai", "url": model.url, "model": "small" } },
        "permissions": { "ask": ["model_extract"] },
    }));
    bench.write("script.ts", "return await mcp.extract('one', 'number')");
    let run = ["run", "script.ts", "--check=off"];
    let mut session = at_terminal(&bench, &run);
    until(&mut session, PROMPT);
    session.send_line("a").expect("answer");
    let rest = session.exp_eof().expect("the end");
    assert!(plain(&rest).ends_with('1'), "{rest}");
    let written = config(&bench);
    let rule = r#"{ "tool": "model_extract", "definition": "HASH" }"#;
    let compact = |text: &str| text.replace([' ', '\n'], "");
    assert!(compact(&written).contains(&compact(rule)), "{written}");
    // Nobody is there to be asked.
    let ran = bench.callgate(&run);
    assert_eq!((ran.code, ran.stdout.trim()), (0, "2"), "{ran:#?}");
    assert_eq!(ran.stderr, "");
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
    session.send_line("a").expect("answer");
    let rest = plain(&session.exp_eof().expect("the end"));
    assert!(!rest.contains("allow?"), "{rest}");
    let by_grant = rest.matches("allowed by the grant for this run").count();
    assert_eq!(by_grant, 2, "{rest}");
    assert_eq!(config(&bench), redacted(&ticketing().to_string()));
}

#[test]
fn granting_can_be_given_up() {
    let check = "callgate: the granting was cancelled; nothing is allowed for good\n";
    for (command, report) in [("check", check), ("run", "error: the run was cancelled\n")] {
        for signal in [None, Some(Signal::SIGTERM)] {
            let bench = Workbench::with_config(ticketing());
            bench.write("script.ts", "await ticketing_listIssues()");
            let arguments = [command, "script.ts", "--grant", "--check=off"];
            let mut session = at_terminal(&bench, &arguments);
            until(&mut session, "[n] none: ");
            match signal {
                None => session.send_control('c').expect("Ctrl-C"),
                Some(signal) => session.process_mut().signal(signal).expect("a signal"),
            }
            let rest = session.exp_eof().expect("the end").replace('\r', "");
            assert!(rest.contains(report), "{rest}");
            assert!(!rest.contains("  1 ticketing"), "{rest}");
            let ended = session.process().wait().expect("an end");
            assert!(matches!(ended, WaitStatus::Exited(_, 130)), "{ended:?}");
            assert_eq!(config(&bench), redacted(&ticketing().to_string()));
        }
    }
}

#[test]
fn granting_needs_a_terminal() {
    let bench = Workbench::with_config(ticketing());
    bench.write("script.ts", "await ticketing_listIssues()");
    let check = "write the tools into permissions.allow of the configuration";
    for (command, instead) in [("run", "name the tools with --allow"), ("check", check)] {
        let ran = bench.callgate(&[command, "script.ts", "--grant"]);
        let said = "callgate: --grant asks at a terminal, and there is none; run it in one, or";
        assert_eq!((ran.code, ran.stderr), (2, format!("{said} {instead}\n")));
    }
}

/// The server answers once ten calls wait together: with nine it would do so
/// never, and an eleventh would wait for ever.
#[test]
fn a_hundred_calls_at_once_take_ten_uses() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "counter": odd("counter") },
        "permissions": { "allow": [{ "tool": "counter_wait", "maxCalls": 10 }] },
    }));
    let report = bench.report(
        "const calls = Array.from({ length: 100 }, () => counter_wait({ calls: 10 }));
         const ends = await Promise.allSettled(calls);
         const reasons = ends.filter((end) => end.status === 'rejected').map((end) => end.reason);
         return [reasons.length, reasons.every((reason) => reason instanceof McpDeniedError)]",
        &[],
    );
    assert_eq!(report["value"]["json"], json!([90, true]), "{report:#}");
    let calls = report["calls"].as_array().expect("calls");
    let sent = calls.iter().filter(|call| call["tookMs"].is_u64());
    assert_eq!(sent.count(), 10, "{report:#}");
    check_denials(
        &report,
        expect![[r#"
        [
          {
            "function": "counter_wait",
            "line": 1,
            "because": "needs approval: rule \"counter_wait\" (10 calls) in permissions.allow is used up, and there is nobody to ask",
            "count": 90
          }
        ]"#]],
    );
}

#[track_caller]
fn check_denials(report: &serde_json::Value, expected: Expect) {
    expected.assert_eq(&format!("{:#}", report["denials"]));
}

#[test]
fn a_denial_tells_the_script_which_rule_it_was() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": {
            "ask": [{ "tool": "ticketing_*", "arguments": [{ "at": "/title", "prefix": "a" }] }],
            "deny": ["ticketing_list*"],
        },
    }));
    let script = "const told = [];
const denied = async (call) => { try { await call(); } catch (e) {
  told.push([e.name, e.because, e.rule, e.writtenIn, e.advice]);
} };
await denied(() => ticketing_listIssues());
await denied(() => ticketing_createIssue({ title: 'a' }));
await denied(() => ticketing_createIssue({ title: 'b' }));
return told;";
    let report = bench.report(script, &["--check", "off"]);
    expect![[r#"
        [
          [
            "McpDeniedError",
            "denied by rule \"ticketing_list*\" in permissions.deny",
            "ticketing_list*",
            "permissions.deny",
            null
          ],
          [
            "McpDeniedError",
            "needs approval by rule \"ticketing_*\" (/title begins with \"a\") in permissions.ask, and there is nobody to ask",
            {
              "tool": "ticketing_*",
              "arguments": [
                {
                  "at": "/title",
                  "prefix": "a"
                }
              ]
            },
            "permissions.ask",
            "whoever runs Callgate can allow it with --allow ticketing_createIssue"
          ],
          [
            "McpDeniedError",
            "needs approval: no rule matches, and there is nobody to ask",
            null,
            null,
            "whoever runs Callgate can allow it with --allow ticketing_createIssue, or under permissions.allow"
          ]
        ]"#]].assert_eq(&format!("{:#}", report["value"]["json"]));
    check_denials(
        &report,
        expect![[r#"
        [
          {
            "function": "ticketing_listIssues",
            "line": 5,
            "because": "denied by rule \"ticketing_list*\" in permissions.deny",
            "count": 1
          },
          {
            "function": "ticketing_createIssue",
            "line": 6,
            "because": "needs approval by rule \"ticketing_*\" (/title begins with \"a\") in permissions.ask, and there is nobody to ask",
            "count": 1
          },
          {
            "function": "ticketing_createIssue",
            "line": 7,
            "because": "needs approval: no rule matches, and there is nobody to ask",
            "count": 1
          }
        ]"#]],
    );
    let ran = bench.run(script, &["--check", "off"]);
    expect![[r#"
        denied: ticketing_listIssues (line 5): denied by rule "ticketing_list*" in permissions.deny
        denied: ticketing_createIssue (line 6): needs approval by rule "ticketing_*" (/title begins with "a") in permissions.ask, and there is nobody to ask
        denied: ticketing_createIssue (line 7): needs approval: no rule matches, and there is nobody to ask
    "#]].assert_eq(&ran.stderr);
}

#[test]
fn no_half_written_file_is_left_behind() {
    let bench = Workbench::with_config(ticketing());
    bench.write("script.ts", "await ticketing_listIssues()");
    let before = files(bench.path());
    let mut session = at_terminal(&bench, &["check", "script.ts", "--grant", "--check=off"]);
    until(&mut session, "[n] none: ");
    session.send_line("all").expect("answer");
    session.exp_eof().expect("the end");
    assert_eq!(files(bench.path()), before);
}

fn files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).expect("the folder");
    let names = names.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}

/// `--ask` asks also about what was answered with "always" before.
#[test]
fn an_answer_in_the_configuration_is_asked_about_where_the_command_says_so() {
    let bench = Workbench::empty();
    let config = |allow: serde_json::Value| {
        let config = json!({
            "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
            "permissions": { "allow": allow },
        });
        bench.write("callgate.json", &config.to_string());
    };
    config(json!([]));
    bench.write("script.ts", "await ticketing_createIssue({ title: 'x' })");
    let checked = bench.callgate(&["check", "script.ts", "--check=off", "--json"]);
    let definition = &checked.json()["tools"][0]["definition"];
    config(json!([{ "tool": "ticketing_createIssue", "definition": definition }]));
    let because = |flags: &[&str]| {
        let command = ["check", "script.ts", "--check=off", "--json"];
        let checked = bench.callgate(&[&command, flags].concat());
        let because = checked.json()["tools"][0]["because"]
            .as_str()
            .map(str::to_owned);
        because.expect("a reason")
    };
    expect![[r#"allowed by rule "ticketing_createIssue" (one definition) in permissions.allow"#]]
        .assert_eq(&because(&[]));
    expect![[r#"needs approval by rule "*" in --ask"#]].assert_eq(&because(&["--ask", "*"]));
    expect![[r#"allowed by rule "ticketing_*" in --allow"#]].assert_eq(&because(&[
        "--ask",
        "*",
        "--allow",
        "ticketing_*",
    ]));
}
