//! A person at a terminal is asked; Ctrl-C ends a run with its report.

use callgate_tests::{Workbench, demo_ticketing, odd};
use rexpect::process::{Signal, WaitStatus};
use rexpect::session::PtySession;
use serde_json::json;

use crate::pty::{as_read, at_terminal, shell_at_terminal, sized_terminal};
use crate::serve_client::hanging_and_asked;

const TWO_ISSUES: &str = "const said: string[] = []; for (const title of ['one', 'two']) {
  try { said.push(`${(await ticketing_createIssue({ title })).title} made`); }
  catch (error) { said.push(`${title} ${error.name}`); }
}
return said.join('\\n');";

fn asked(script: &str) -> (Workbench, PtySession) {
    let bench = Workbench::asking();
    bench.write("script.ts", script);
    let session = at_terminal(&bench, &["run", "script.ts"]);
    (bench, session)
}

#[test]
fn refusal_for_the_run_is_asked_once() {
    let (_bench, mut session) = asked(TWO_ISSUES);
    session.exp_string("[n] no: ").expect("the question");
    session.send_line("x").expect("answer");
    let rest = session.exp_eof().expect("the end");
    // The live lines are drawn over with escape sequences and end before the
    // output begins.
    let output = rest.rsplit("\u{1b}[2K").next().unwrap_or_default();
    let lines: Vec<&str> = output.lines().filter(|line| !line.is_empty()).collect();
    let expected = [
        "one McpDeniedError",
        "two McpDeniedError",
        "denied 2 times: ticketing_createIssue (line 2): for this run when asked; you answered no",
    ];
    assert_eq!(lines, expected, "{rest}");
}

/// The editor has the terminal, although the output of the run goes to a file.
#[test]
fn run_sends_arguments_changed_in_editor() {
    let bench = Workbench::asking();
    bench.write(
        "script.ts",
        "return (await ticketing_createIssue({ title: 'kayak' })).title",
    );
    bench.write("edit", "test -t 1 && sed -i s/kayak/raft/ \"$1\"");
    let line = "export VISUAL= EDITOR='sh edit'; \"$0\" run script.ts > made; cat made";
    let mut session = shell_at_terminal(&bench, line);
    session.exp_string("[n] no: ").expect("a question");
    session.send_line("e").expect("a key");
    let prompt = "send the call with them? [y] yes  [n] no: ";
    session.exp_string(prompt).expect("the change");
    session.send_line("y").expect("answer");
    let rest = session.exp_eof().expect("the end");
    assert!(rest.contains("raft\r\n"), "{rest}");
}

/// The second question begins on the row after the first answer.
#[test]
fn answered_question_shrinks_to_one_line() {
    for columns in [60, 100] {
        let bench = Workbench::asking();
        bench.write("script.ts", TWO_ISSUES);
        let mut session = sized_terminal(&bench, columns, 40);
        session.exp_string(&as_read("┌ ")).expect("a question");
        for (typed, mark, line) in [
            (
                "y",
                "\u{1b}[32m✓",
                "ticketing_createIssue {\"title\":\"one\"} \u{1b}[32mallowed once\u{1b}[0m\r\n",
            ),
            (
                "no",
                "\u{1b}[31m✗",
                "ticketing_createIssue {\"title\":\"two\"} \u{1b}[31mdenied\u{1b}[0m\r\n",
            ),
        ] {
            let question = session.exp_string("[n] no: ").expect("the prompt");
            session.send_line(typed).expect("answer");
            let erased = session
                .exp_string("\r\u{1b}[J")
                .expect("the question to end");
            let up = format!("\u{1b}[{}A", question.matches('\n').count() + 1);
            assert!(erased.ends_with(&up), "{question}{erased}");
            let line = as_read(&format!("{mark}\u{1b}[0m {line}"));
            let before = session.exp_string(&line).expect("the line");
            assert_eq!(before, "");
            if typed == "y" {
                session.exp_string(&as_read("┌ ")).expect("a question");
            }
        }
        session.exp_eof().expect("the end");
    }
}

/// Nothing is erased that may have left the screen, and nothing on a terminal without codes.
#[test]
fn question_stays_where_it_cannot_be_erased() {
    for line in [
        "stty echo cols 80 rows 6; export TERM=xterm",
        "stty echo cols 80 rows 40; export TERM=dumb",
    ] {
        let bench = Workbench::asking();
        bench.write(
            "script.ts",
            "console.log((await ticketing_createIssue({ title: 'stays' })).title)",
        );
        let line = format!("{line} NO_COLOR=; exec \"$0\" run script.ts");
        let mut session = shell_at_terminal(&bench, &line);
        session.exp_string("[n] no: ").expect("a question");
        session.send_line("y").expect("answer");
        let rest = session.exp_eof().expect("the end");
        assert!(rest.contains("stays\r\n"), "{rest}");
        assert!(!rest.contains("\u{1b}[J"), "{rest}");
    }
}

#[test]
fn function_and_arguments_stand_out_with_styles() {
    for (name, call) in [
        ("createIssue", "ticketing_createIssue({ title: 'seen' })"),
        ("listIssues", "ticketing_listIssues({})"),
    ] {
        let bench = Workbench::asking();
        bench.write("script.ts", &format!("await {call}"));
        let mut session = sized_terminal(&bench, 100, 40);
        let question = session.exp_string("[n] no: ").expect("a question");
        let bold = format!("call \u{1b}[1mticketing_{name}\u{1b}[0m:\r\n");
        assert!(question.contains(&bold), "{question}");
        let arguments = as_read("├ arguments:\r\n│ \u{1b}[1m{");
        assert!(question.contains(&arguments), "{question}");
        session.send_line("n").expect("answer");
        session.exp_eof().expect("the end");
        // The usual terminal of these tests has no styles.
        let mut session = at_terminal(&bench, &["run", "script.ts"]);
        let question = session.exp_string("[n] no: ").expect("a question");
        assert!(!question.contains("\u{1b}[1m"), "{question}");
        session.send_line("n").expect("answer");
        session.exp_eof().expect("the end");
    }
}

#[test]
fn prompt_breaks_between_choices_alone() {
    for columns in [40, 100] {
        let bench = Workbench::asking();
        bench.write("script.ts", "await ticketing_createIssue({ title: 'x' });");
        let mut session = sized_terminal(&bench, columns, 40);
        let begin = "└ allow? ";
        session.exp_string(&as_read(begin)).expect("a question");
        let prompt = session.exp_string("[n] no: ").expect("the whole prompt");
        let rows: Vec<&str> = prompt.lines().collect();
        assert!(rows.len() > 1, "{prompt}");
        for row in &rows {
            let is_begun =
                row.trim().is_empty() || row.starts_with("[y]") || row.starts_with("  [");
            assert!(is_begun && row.len() <= columns, "{prompt}");
        }
        session.send_line("n").expect("answer");
        session.exp_eof().expect("the end");
    }
}

#[test]
fn huge_argument_is_cut_in_the_whole_question() {
    for title in ["'z'.repeat(90_000)", "Array(9_000).fill('a b c').join(' ')"] {
        let bench = Workbench::asking();
        let call = format!("await ticketing_createIssue({{ title: {title} }});");
        bench.write("script.ts", &call);
        let mut session = at_terminal(&bench, &["run", "script.ts"]);
        session.exp_string("[n] no: ").expect("a question");
        session.send_line("w").expect("answer");
        let whole = session
            .exp_string("more lines; --dry-run")
            .expect("the cut");
        assert!(whole.matches('\n').count() < 230, "{whole}");
        session.exp_string("[n] no: ").expect("the prompt");
        session.send_line("n").expect("answer");
        session.exp_eof().expect("the end");
    }
}

/// Text of a script that is padded to the width of the terminal must not continue at the left
/// edge, where it would look like a line of ours.
#[test]
fn the_question_is_laid_out_for_the_terminal() {
    for columns in [24, 80] {
        let bench = Workbench::asking();
        bench.write(
            "script.ts",
            &format!(
                "const pad = (text: string) => text.padEnd({columns});
                 const forged = 'x' + pad('').repeat(2) + pad('so far in this run:') + '  data: none';
                 await ticketing_createIssue({{ title: '\\u009b2J日本語'.repeat(9) + forged }});"
            ),
        );
        let line = format!("stty cols {columns} && exec \"$0\" run script.ts");
        let mut session = shell_at_terminal(&bench, &line);
        session.exp_string(&as_read("┌ ")).expect("a question");
        session
            .exp_string(&as_read("├ arguments:"))
            .expect("the arguments");
        let arguments = session.exp_string(&as_read("├ [a]")).expect("the rule");
        let bytes: Vec<u8> = arguments
            .chars()
            .map(|c| u8::try_from(u32::from(c)).expect("a byte"))
            .collect();
        let arguments = String::from_utf8(bytes).expect("UTF-8");
        assert!(!arguments.contains('\u{9b}'), "{arguments}");
        let rows: Vec<&str> = arguments.lines().filter(|row| !row.is_empty()).collect();
        assert!(rows.len() > 2, "{arguments}");
        for row in rows {
            let wide = row.chars().filter(|c| "日本語".contains(*c)).count();
            let width = row.chars().count() + wide;
            assert!(row.starts_with("│ ") && width < columns, "{arguments}");
        }
        session.send_line("n").expect("answer");
        session.exp_eof().expect("the end");
    }
}

#[test]
fn ctrl_c_ends_the_run_with_a_report() {
    let bench = Workbench::new(json!({ "odd": odd("hang-on-call") }));
    bench.write("script.ts", "console.log('started'); await odd_hang({})");
    let mut session = at_terminal(&bench, &["run", "script.ts"]);
    session
        .exp_string("started\r\n")
        .expect("the output so far");
    session
        .exp_string("odd_hang")
        .expect("a live line for the call");
    session.send_control('c').expect("Ctrl-C");
    let rest = session.exp_eof().expect("the end");
    let said = rest.replace('\r', "");
    for expected in ["error: the run was cancelled\n", "calls: 1\n"] {
        assert!(said.contains(expected), "{expected:?} is not in {said}");
    }
}

/// Input for a question that is withdrawn does not answer the next question.
#[test]
fn answer_to_withdrawn_question_is_discarded() {
    let (_bench, mut session) = asked(
        "const controller = new AbortController();
         await ticketing_createIssue({ title: 'first' });
         const harmless = ticketing_createIssue({ title: 'harmless' }, { signal: controller.signal })
           .catch((error) => error.name);
         const other = ticketing_createIssue({ title: 'other' }).catch((error) => error.name);
         setTimeout(() => controller.abort(), 1_000);
         return [await harmless, await other]",
    );
    session.exp_string("first").expect("the first question");
    session.exp_string("[n] no: ").expect("its prompt");
    session.send_line("y").expect("answer");
    session.exp_string("harmless").expect("the second question");
    session.exp_string("[n] no: ").expect("its prompt");
    session
        .exp_string("question was withdrawn")
        .expect("its end");
    session.send_line("y").expect("a late answer");
    session.exp_string("other").expect("the third question");
    session.exp_string("[n] no: ").expect("its prompt");
    session.send_line("n").expect("answer");
    let rest = session.exp_eof().expect("the end");
    assert!(rest.contains("McpDeniedError"), "{rest}");
}

/// The message says if the cancelled call was sent to its server.
#[test]
fn ctrl_c_message_states_whether_call_was_sent() {
    let bench = Workbench::with_config(json!({
        "mcpServers": {
            "odd": odd("asks"),
            "ticketing": demo_ticketing(),
        },
        "permissions": { "allow": ["odd_*"] },
    }));
    let form = json!({ "message": "Who?", "requestedSchema": {
        "type": "object", "properties": { "name": { "type": "string" } },
    } });
    for (call, prompt, said) in [
        (
            ["call", "ticketing_createIssue", r#"{"title":"x"}"#],
            "[n] no: ",
            "ticketing_createIssue was cancelled before it was sent",
        ),
        (
            ["call", "odd_elicit", &form.to_string()],
            "\"name\": ",
            "odd_elicit was cancelled while it was under way, and may have done something",
        ),
    ] {
        let mut session = at_terminal(&bench, &call);
        session.exp_string(prompt).expect(prompt);
        session.send_control('c').expect("Ctrl-C");
        let rest = session.exp_eof().expect("the end").replace('\r', "");
        assert!(rest.ends_with(&format!("error: {said}\n")), "{rest}");
        let ended = session.process().wait().expect("an end");
        assert!(matches!(ended, WaitStatus::Exited(_, 130)), "{ended:?}");
    }
}

/// The window is closed, and the report goes to a file. One shell has the terminal; a second one
/// records the exit code of the run.
#[test]
fn closed_terminal_ends_run_with_report() {
    for (script, shown) in [
        ("await odd_hang({})", "odd_hang"),
        ("await ticketing_createIssue({ title: 'x' })", "[n] no: "),
    ] {
        let bench = hanging_and_asked();
        bench.write("script.ts", script);
        let line = "mkfifo code
            (trap : HUP; \"$0\" run script.ts --json > report; echo $? > code) &
            wait";
        let mut session = shell_at_terminal(&bench, line);
        session.exp_string(shown).expect(shown);
        // The terminal ends with the process that it belongs to.
        let terminal = session.process_mut();
        terminal.signal(Signal::SIGKILL).expect("to end the shell");
        let file = |name: &str| std::fs::read_to_string(bench.path().join(name)).expect(name);
        assert_eq!(file("code"), "130\n", "{script}");
        let report: serde_json::Value = serde_json::from_str(&file("report")).expect("a report");
        assert_eq!(report["status"], "cancelled", "{report:#}");
        assert_eq!(report["calls"][0]["outcome"], "cancelled", "{report:#}");
    }
}

#[test]
fn nohup_is_respected() {
    let bench = Workbench::asking();
    bench.write(
        "script.ts",
        "return (await ticketing_createIssue({ title: 'x' })).title",
    );
    let mut session = shell_at_terminal(&bench, "trap '' HUP; exec \"$0\" run script.ts");
    session.exp_string("[n] no: ").expect("a question");
    session
        .process_mut()
        .signal(Signal::SIGHUP)
        .expect("a signal");
    session.send_line("y").expect("answer");
    session.exp_eof().expect("the end");
    let ended = session.process().wait().expect("an end");
    assert!(matches!(ended, WaitStatus::Exited(_, 0)), "{ended:?}");
}

#[test]
fn input_before_the_question_is_ignored() {
    let bench = hanging_and_asked();
    bench.write(
        "script.ts",
        "const count = await odd_cancelled({});
         await ticketing_createIssue({ title: `${count}` });",
    );
    let mut session = at_terminal(&bench, &["run", "script.ts"]);
    session.send_line("y").expect("type ahead");
    session.exp_string("[n] no: ").expect("a question");
    session.send_line("n").expect("answer");
    let rest = session.exp_eof().expect("the end");
    assert!(rest.contains("denied when asked"), "{rest}");
}

#[test]
fn piped_output_at_terminal_has_no_escape_sequences() {
    let bench = Workbench::empty();
    for (print, pipe, file) in [("log", "|", ">"), ("error", "2>&1 |", "2>")] {
        let script = format!("console.{print}('a\\u001b]0;title\\u0007b')");
        bench.write("escape.ts", &script);
        let run = "$0 run --check=off escape.ts";
        let line = format!("{run} {pipe} cat; {run} {file}kept");
        let mut session = shell_at_terminal(&bench, &line);
        let shown = session.exp_eof().expect("the end");
        assert!(shown.contains(r"a\u001b]0;title\u0007b"), "{shown}");
        // A file keeps the text as it is.
        let kept = std::fs::read_to_string(bench.path().join("kept")).expect("a file");
        assert_eq!(kept, "a\u{1b}]0;title\u{7}b\n", "{print}");
    }
}
