//! The type check before a run: its errors, the runs that it stops, and runs where no check can
//! be made.

use callgate_tests::{Ran, Workbench};
use expect_test::{Expect, expect};
use serde_json::json;

use crate::cli::ticketing;

/// The exit code and all that was printed, with the temporary folder's name out
/// of it.
#[track_caller]
fn check(bench: &Workbench, ran: &Ran, expected: Expect) {
    let said = format!(
        "exit code {}\n{}--- stderr\n{}",
        ran.code, ran.stdout, ran.stderr
    );
    expected.assert_eq(&said.replace(&bench.path().display().to_string(), "$FOLDER"));
}

#[test]
fn type_errors_stop_run_before_first_call() {
    let bench = ticketing();
    let script = "const { issues } = await ticketing_listIssues();\n\
                  await ticketing_createIssue({ titel: 'first', body: 'b' });\n\
                  console.log(issues.lenght);";
    check(
        &bench,
        &bench.run(script, &[]),
        expect![[r#"
        exit code 1
        --- stderr
        error: object literal may only specify known properties, but `titel` does not exist in type `{ title: string; body?: string | undefined; priority?: "high" | "low" | "medium" | undefined; }`; did you mean to write `title`?
          --> stdin.ts:2:31
          2 | await ticketing_createIssue({ titel: 'first', body: 'b' });
            |                               ^
        error: property `lenght` does not exist on type `Issue[]`; did you mean `length`?
          --> stdin.ts:3:20
          3 | console.log(issues.lenght);
            |                    ^
        error: 2 type errors; nothing was run
        calls: none
    "#]],
    );
}

/// The errors of a script that is not run, without their places.
#[track_caller]
fn check_errors(bench: &Workbench, script: &str, expected: Expect) {
    let ran = bench.run(script, &[]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let errors = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("error: "));
    expected.assert_eq(&errors.map(|line| format!("{line}\n")).collect::<String>());
}

#[test]
fn unknown_name_error_suggests_the_intended_function() {
    let bench = ticketing();
    check_errors(
        &bench,
        "tools.ticketing_createIssue({ title: 'a' });\n\
         ticketing.create_issue({ title: 'a' });\n\
         mcp['ticketing'].createIssue({ title: 'a' });\n\
         servers.ticketing.issues();\n\
         mcp__ticketing__createIssue({ title: 'a' });\n\
         createIssue({ title: 'a' });\n\
         await client.callTool({ name: 'create_issue', arguments: {} });\n\
         functions['ticketing_createIssue']({});\n\
         functions.weather();\n\
         fetch('https://example.com');",
        expect![[r#"
            error: cannot find name `tools.ticketing_createIssue`; did you mean `ticketing_createIssue`?
            error: cannot find name `ticketing.create_issue`; did you mean `ticketing_createIssue`?
            error: cannot find name `mcp.ticketing.createIssue`; did you mean `ticketing_createIssue`?
            error: cannot find name `servers.ticketing.issues`: ticketing is a server; its functions are globals: `ticketing_listIssues`, `ticketing_createIssue`
            error: cannot find name `mcp__ticketing__createIssue`; did you mean `ticketing_createIssue`?
            error: cannot find name `createIssue`; did you mean `ticketing_createIssue`?
            error: cannot find name `client.callTool`; did you mean `ticketing_createIssue`?
            error: cannot find name `functions.ticketing_createIssue`; did you mean `ticketing_createIssue`?
            error: cannot find name `functions.weather`: tools are global functions, such as `ticketing_createIssue(input)`
            error: cannot find name `fetch`: there is no network; call a tool that fetches
            error: 10 type errors; nothing was run
        "#]],
    );
}

#[test]
fn helpers_of_other_programs_lead_to_those_of_callgate() {
    let bench = ticketing();
    check_errors(
        &bench,
        "codemode.create_issue({ title: 'a' });\n\
         text('done');\n\
         store('a', 1);\n\
         search('issues');\n\
         exit();\n\
         mcp.call('create_issue', {});\n\
         mcp.invoke(globalThis);\n\
         mcp.listTools();\n\
         Temporal.Now;\n\
         len([]);",
        expect![[r#"
            error: cannot find name `codemode.create_issue`; did you mean `ticketing_createIssue`?
            error: cannot find name `text`: print with console.log; mcp.text(result) is the text of a result
            error: cannot find name `store`: nothing is kept between scripts; call a tool that stores
            error: cannot find name `search`: find tools with await mcp.searchTools("what they do")
            error: cannot find name `exit`: end the script with return or throw
            error: cannot find name `mcp.call`; did you mean `ticketing_createIssue`? Or call a tool by its name with await mcp.callTool(name, input)
            error: cannot find name `mcp.invoke`: call a tool by its name with await mcp.callTool(name, input)
            error: cannot find name `mcp.listTools`: find tools with await mcp.searchTools("what they do")
            error: cannot find name `Temporal.Now`: use Date, and Intl.DateTimeFormat for time zones
            error: cannot find name `len`: write .length
            error: 10 type errors; nothing was run
        "#]],
    );
}

#[test]
fn unlike_names_and_modules_get_advice() {
    check_errors(
        &ticketing(),
        "ticketing_weather({});\nticketing_list({});\nBuffer.from(require('path').sep);",
        expect![[r#"
            error: cannot find name `ticketing_weather`; server "ticketing" has `ticketing_createIssue`, `ticketing_listIssues`
            error: cannot find name `ticketing_list`; did you mean `ticketing_listIssues`?
            error: cannot find name `Buffer.from`: there is no Buffer; use Uint8Array with TextEncoder and TextDecoder, or atob and btoa
            error: cannot find name `require`: there are no modules; call tools as global functions
            error: 4 type errors; nothing was run
        "#]],
    );
}

#[test]
fn javascript_runs_unless_it_uses_a_tool_wrongly() {
    let bench = ticketing();
    let script = "const counts = {}; counts['x'] = 1;\nlet s = ''; s = 1;";
    let wrong = format!("{script}\nawait ticketing_createIssue({{ titel: 'a' }});");
    for (name, script, code) in [
        ("a.mjs", script, 0),
        ("a.js", &wrong, 1),
        ("a.ts", script, 1),
    ] {
        bench.write(name, script);
        let ran = bench.callgate(&["run", name]);
        assert_eq!(ran.code, code, "{name}: {}", ran.stderr);
    }
    assert_eq!(bench.run(&format!("```jsx\n{script}\n```"), &[]).code, 0);
}

#[test]
fn code_in_json_runs_with_correct_error_positions() {
    let bench = ticketing();
    let run = |code: &str| bench.run(&json!({ "code": code }).to_string(), &[]);
    let ran = run("const { issues } = await ticketing_listIssues();\nreturn issues.length >= 0;");
    assert_eq!((ran.code, ran.stdout.trim()), (0, "true"), "{}", ran.stderr);
    let ran = run("const a = 1;\nthrow new Error('b');");
    assert!(ran.stderr.contains("stdin.ts:2:7"), "{}", ran.stderr);
    let ran = run("const a = 1;\nissues();");
    assert!(ran.stderr.contains("stdin.ts:2:1"), "{}", ran.stderr);
}

/// Exit code, output and first line of the errors of a script in each mode of the check, and of a
/// check of its file.
#[track_caller]
fn check_modes(bench: &Workbench, script: &str, expected: Expect) {
    bench.write("script.ts", script);
    let mut said = String::new();
    for command in ["run", "check"] {
        for mode in ["on", "require", "warn", "off"] {
            let ran = bench.callgate(&[command, "script.ts", "--check", mode]);
            let error = ran.stderr.lines().next().unwrap_or_default();
            let shown = ran.stdout.replace('\n', " ") + error;
            said += &format!("{} {command} {mode}: {}\n", ran.code, shown.trim_end());
        }
    }
    expected.assert_eq(&said.replace(&bench.path().display().to_string(), "$FOLDER"));
}

#[test]
fn check_mode_decides_if_type_errors_stop() {
    check_modes(
        &ticketing(),
        "const n: number = 'a';\nreturn n",
        expect![[r#"
            1 run on: error: type `string` is not assignable to type `number`
            1 run require: error: type `string` is not assignable to type `number`
            0 run warn: a warning: type `string` is not assignable to type `number`
            0 run off: a
            1 check on: error: type `string` is not assignable to type `number`
            1 check require: error: type `string` is not assignable to type `number`
            0 check warn: names no tool warning: type `string` is not assignable to type `number`
            0 check off: names no tool
        "#]],
    );
    let unknown = ticketing().run("", &["--check", "maybe"]);
    let said = "\"maybe\" is not a mode of the type check; write \"off\", \"warn\", \"on\"";
    assert!(
        unknown.code == 2 && unknown.stderr.contains(said),
        "{unknown:?}"
    );
}

#[test]
fn missing_typescript_warns_unless_check_is_required() {
    let bench = Workbench::with_config(json!({ "check": { "typescript": "nowhere" } }));
    check_modes(
        &bench,
        "return 1",
        expect![[r#"
            0 run on: 1 warning: the script was not type-checked: $FOLDER/nowhere is not native TypeScript: there is no such file; change "check", "typescript"
            1 run require: error: the script must be type-checked and was not; nothing was run: $FOLDER/nowhere is not native TypeScript: there is no such file; change "check", "typescript"
            0 run warn: 1 warning: the script was not type-checked: $FOLDER/nowhere is not native TypeScript: there is no such file; change "check", "typescript"
            0 run off: 1
            0 check on: names no tool warning: the script was not type-checked: $FOLDER/nowhere is not native TypeScript: there is no such file; change "check", "typescript"
            1 check require: error: the script must be type-checked and was not; nothing was run: $FOLDER/nowhere is not native TypeScript: there is no such file; change "check", "typescript"
            0 check warn: names no tool warning: the script was not type-checked: $FOLDER/nowhere is not native TypeScript: there is no such file; change "check", "typescript"
            0 check off: names no tool
        "#]],
    );
    let report = bench.report("return 1", &[]);
    assert_eq!(report["check"]["status"], "unchecked", "{report:#}");
    let report = bench.report("return 1", &["--check=require"]);
    assert_eq!(report["error"]["kind"], "unchecked", "{report:#}");
}

/// A script that keeps TypeScript busy for longer than any test may take.
fn slow_to_check() -> String {
    let types: String = (0..40)
        .map(|n| {
            let (next, other) = ((n + 1) % 40, (n + 7) % 40);
            format!("interface A{n}<T> {{ x: A{next}<T[]>; y: A{other}<[T, T]> }}\n")
        })
        .collect();
    let values = "const a = null as any as A0<number>, b = null as any as A0<string>, \
                  c = null as any as A1<number>;\n";
    format!("{types}{values}return [a, b, c].length;")
}

#[test]
fn type_check_timeout_stops_the_run() {
    let bench = Workbench::with_config(json!({}));
    let script = slow_to_check();
    check(
        &bench,
        &bench.run(&script, &["--timeout=600ms"]),
        expect![[r#"
            exit code 1
            --- stderr
            error: the type check of this script was given up: it took longer than 600ms; nothing was run
            hint: simplify the script's types: fewer generics and recursive types, smaller unions, less nesting
            calls: none
        "#]],
    );
    let report = bench.report(&script, &["--timeout=600ms", "--check=require"]);
    assert_eq!(report["error"]["kind"], "unchecked", "{report:#}");
    assert_eq!(report["check"]["status"], "unchecked", "{report:#}");
    let ran = bench.run(&script, &["--timeout=600ms", "--check=warn"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "3\n"), "{ran:?}");
}
