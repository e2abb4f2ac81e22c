//! The first hour of a person at narrow and wide terminals: `init` from the files of other clients,
//! `doctor`, a question with each answer, and output into other programs.

use std::process::Command;

use rexpect::session::PtySession;

use crate::init::Person;
use crate::pty::{as_read, shell_at_terminal};

const COLUMNS: [usize; 2] = [40, 100];

/// A script with two calls that need approval, and the names of their errors.
const TWO_CALLS: &str = "const said: string[] = [];
for (const title of ['tea', 'milk']) {
  await cur_createIssue({ title }).then(() => said.push('made'), (error) => said.push(error.name));
}
console.log(said.join(' '));";

/// Runs a line of a shell in the person's folder, at a terminal of this width; `$0` is `callgate`.
fn at_width(person: &Person, columns: usize, line: &str) -> PtySession {
    let exports = person
        .environment()
        .map(|(name, value)| format!("export {name}='{value}'; "));
    let exports = exports.concat();
    shell_at_terminal(
        &person.bench,
        &format!("stty echo cols {columns} rows 50; {exports}export NO_COLOR=; {line}"),
    )
}

fn answer(session: &mut PtySession, prompt: &str, answer: &str) {
    session.exp_string(&as_read(prompt)).expect(prompt);
    session.send_line(answer).expect("an answer");
}

/// The person after `init`, which takes a server of Cursor and one of Claude Code.
fn initialized(columns: usize) -> Person {
    let person = Person::new();
    person.has(
        "~/.cursor/mcp.json",
        r#"{ "mcpServers": { "cur": { "command": "TICKETING", "env": { "CG_TOKEN": "SECRET" } } } }"#,
    );
    person.has(
        "~/.claude.json",
        r#"{ "numStartups": 4, "mcpServers": { "logs": { "type": "stdio", "command": "LOGGING",
             "args": [], "env": {} } } }"#,
    );
    let mut session = at_width(&person, columns, "exec \"$0\" init");
    answer(&mut session, "[n] none: ", "all");
    answer(&mut session, "it is no secret: ", "f");
    answer(&mut session, "without asking: ", "ask");
    answer(&mut session, "[all]: ", "");
    let rest = session.exp_eof().expect("the end");
    assert!(rest.contains("wrote callgate.json"), "{rest}");
    assert!(rest.contains("next: callgate tools"), "{rest}");
    let servers = &person.config()["mcpServers"];
    assert!(servers["cur"].is_object() && servers["logs"].is_object());
    person
}

#[test]
fn init_leads_to_working_commands() {
    for columns in COLUMNS {
        let person = initialized(columns);
        let mut session = at_width(&person, columns, "\"$0\" doctor; echo \"code $?\"");
        let said = session.exp_eof().expect("the end");
        assert!(
            said.contains("code 0") && !said.contains("MISSING"),
            "{said}"
        );
        let mut session = at_width(&person, columns, "\"$0\" tools; echo \"code $?\"");
        let said = session.exp_eof().expect("the end");
        assert!(
            said.contains("cur_createIssue") && said.contains("code 0"),
            "{said}"
        );
    }
}

#[test]
fn each_answer_to_a_question_has_its_effect() {
    for columns in COLUMNS {
        let person = initialized(columns);
        person.has("two.ts", TWO_CALLS);
        // With "always", later runs ask no more.
        for (answers, printed) in [
            (&["y", "n"][..], "made McpDeniedError"),
            (&["n", "y"], "McpDeniedError made"),
            (&["x"], "McpDeniedError McpDeniedError"),
            (&["w", "r"], "made made"),
            (&["what?", "a"], "made made"),
            (&[], "made made"),
        ] {
            let mut session = at_width(&person, columns, "exec \"$0\" run two.ts");
            for given in answers {
                answer(&mut session, "[n] no: ", given);
            }
            let rest = session.exp_eof().expect("the end");
            assert!(rest.contains(printed), "{columns} {answers:?}: {rest}");
        }
    }
}

#[test]
fn output_goes_whole_into_other_programs() {
    let person = initialized(COLUMNS[0]);
    let rows = "for (let i = 0; i < 20_000; i++) console.log(`row ${i}`);";
    person.has("rows.ts", &format!("{rows} console.error('note');"));
    let has_jq = Command::new("jq").arg("--version").output().is_ok();
    person.has(
        "value.ts",
        "return { rows: Array.from({ length: 20_000 }, (_, i) => i) };",
    );
    for (line, said) in [
        (
            "\"$0\" run rows.ts 2>/dev/null | head -2 | tr '\\n' ' '",
            "row 0 row 1",
        ),
        (
            "\"$0\" run rows.ts > out.txt 2> err.txt; wc -l < out.txt; cat err.txt",
            "20000\r\nnote",
        ),
        ("\"$0\" run value.ts | jq '.rows | length'", "20000"),
        ("\"$0\" run --json value.ts | jq -r .status", "completed"),
    ] {
        if line.contains("jq") && !has_jq {
            continue;
        }
        let mut session = at_width(&person, COLUMNS[0], line);
        let shown = session.exp_eof().expect("the end");
        assert!(shown.contains(said), "{line}: {shown}");
    }
}
