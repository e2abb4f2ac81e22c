//! The type check before a run: what is found, what it stops, and what becomes
//! of a run where it cannot be made.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use callgate_tests::{Ran, Workbench, demo_ticketing, odd};
use expect_test::{Expect, expect};
use serde_json::json;

fn ticketing() -> Workbench {
    Workbench::new(json!({ "ticketing": demo_ticketing() }))
}

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
fn type_errors_stop_the_run_before_its_first_call() {
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
fn an_unknown_name_leads_to_the_function_that_was_meant() {
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
fn a_result_without_a_schema_leads_to_the_functions_that_read_it() {
    let bench = Workbench::new(json!({ "odd": odd("flaky") }));
    check_errors(
        &bench,
        "(await odd_fails({})).title;\nconst said = await odd_fails({});\n\
         said.split('a');",
        expect![[r#"
            error: object is of type `unknown`: odd_fails declares no result; read it with mcp.text(result) or mcp.json(result)
            error: `said` is of type `unknown`
            error: 2 type errors; nothing was run
        "#]],
    );
}

#[test]
fn javascript_runs_unless_it_uses_a_tool_wrongly() {
    let bench = ticketing();
    let script = "function add(a, b) { return a + b; }\n\
                  const counts = {}; counts['x'] = 1; counts.y = add(1);\n\
                  let s = ''; s = 1; const o = { a: 1 }; o.b = s;\n";
    for name in ["script.js", "script.mjs"] {
        bench.write(name, script);
        let ran = bench.callgate(&["run", name]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        bench.write(
            name,
            &format!("{script}await ticketing_createIssue({{ titel: 'a' }});"),
        );
        let ran = bench.callgate(&["run", name]);
        assert!(
            ran.stderr.contains("error: object literal"),
            "{}",
            ran.stderr
        );
    }
    for mark in ["js", "jsx"] {
        let ran = bench.run(&format!("```{mark}\n{script}```"), &[]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    assert_eq!(bench.run(script, &[]).code, 1);
}

#[test]
fn code_in_json_runs_and_its_errors_have_its_places() {
    let bench = ticketing();
    let run = |code: &str| bench.run(&json!({ "code": code }).to_string(), &[]);
    let ran = run("const { issues } = await ticketing_listIssues();\nreturn issues.length >= 0;");
    assert_eq!((ran.code, ran.stdout.trim()), (0, "true"), "{}", ran.stderr);
    let ran = run("const a = 1;\nthrow new Error('b');");
    assert!(ran.stderr.contains("stdin.ts:2:7"), "{}", ran.stderr);
    let ran = run("const a = 1;\nissues();");
    assert!(ran.stderr.contains("stdin.ts:2:1"), "{}", ran.stderr);
}

/// All that a script leads to in each mode of the check, and what a check of its file does.
#[track_caller]
fn check_modes(bench: &Workbench, script: &str, modes: &[&str], expected: Expect) {
    bench.write("script.ts", script);
    let commands = ["run", "check"].into_iter();
    let commands = commands.flat_map(|command| modes.iter().map(move |mode| (command, mode)));
    let said = commands.map(|(command, mode)| {
        let ran = bench.callgate(&[command, "script.ts", "--check", mode]);
        format!(
            "{} {command} {mode}: {}{}",
            ran.code, ran.stdout, ran.stderr
        )
    });
    let said = said.collect::<String>();
    expected.assert_eq(&said.replace(&bench.path().display().to_string(), "$FOLDER"));
}

#[test]
fn each_mode() {
    let script = "const n: number = 'a';\nconsole.log('ran', n);";
    let modes = ["on", "warn", "require", "off", "maybe"];
    check_modes(
        &ticketing(),
        script,
        &modes,
        expect![[r#"
        1 run on: error: type `string` is not assignable to type `number`
          --> script.ts:1:7
          1 | const n: number = 'a';
            |       ^
        error: 1 type error; nothing was run
        calls: none
        0 run warn: ran a
        warning: type `string` is not assignable to type `number`
          --> script.ts:1:7
          1 | const n: number = 'a';
            |       ^
        1 run require: error: type `string` is not assignable to type `number`
          --> script.ts:1:7
          1 | const n: number = 'a';
            |       ^
        error: 1 type error; nothing was run
        calls: none
        0 run off: ran a
        2 run maybe: error: invalid value 'maybe' for '--check <MODE>': "maybe" is not a mode of the type check; write "off", "warn", "on" or "require"

        For more information, try '--help'.
        1 check on: error: type `string` is not assignable to type `number`
          --> script.ts:1:7
          1 | const n: number = 'a';
            |       ^
        error: 1 type error; nothing was run
        calls: none
        0 check warn: names no tool
        warning: type `string` is not assignable to type `number`
          --> script.ts:1:7
          1 | const n: number = 'a';
            |       ^
        1 check require: error: type `string` is not assignable to type `number`
          --> script.ts:1:7
          1 | const n: number = 'a';
            |       ^
        error: 1 type error; nothing was run
        calls: none
        0 check off: names no tool
        2 check maybe: error: invalid value 'maybe' for '--check <MODE>': "maybe" is not a mode of the type check; write "off", "warn", "on" or "require"

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn without_typescript_a_run_goes_on_and_says_so() {
    let bench = with_typescript(Path::new("nowhere"));
    check_modes(
        &bench,
        "return 1",
        &["on", "require", "off"],
        expect![[r#"
            0 run on: 1
            warning: the script was not type-checked: $FOLDER/nowhere is not native TypeScript: there is no such file; change "check", "typescript"
            1 run require: error: the script must be type-checked and was not; nothing was run: $FOLDER/nowhere is not native TypeScript: there is no such file; change "check", "typescript"
            calls: none
            0 run off: 1
            0 check on: names no tool
            warning: the script was not type-checked: $FOLDER/nowhere is not native TypeScript: there is no such file; change "check", "typescript"
            1 check require: error: the script must be type-checked and was not; nothing was run: $FOLDER/nowhere is not native TypeScript: there is no such file; change "check", "typescript"
            calls: none
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
fn a_script_that_typescript_gives_up_does_not_run() {
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
    assert_eq!(report["status"], "failed", "{report:#}");
    assert_eq!(report["error"]["kind"], "unchecked", "{report:#}");
    assert_eq!(report["check"]["status"], "unchecked", "{report:#}");
    check(
        &bench,
        &bench.run(&script, &["--timeout=600ms", "--check=warn"]),
        expect![[r#"
            exit code 0
            3
            --- stderr
            warning: the script was not type-checked: the type check of this script was given up: it took longer than 600ms
        "#]],
    );
}

#[test]
fn a_checker_that_cannot_be_confined_costs_a_note() {
    let bench = Workbench::empty();
    // A script needs a shell, which may not be executed.
    let package = pretender(bench.path(), "#!/bin/sh\nexit 1\n");
    bench.write(
        "callgate.json",
        &json!({ "check": { "typescript": package } }).to_string(),
    );
    check(
        &bench,
        &bench.run("return 'ran'", &[]),
        expect![[r#"
            exit code 0
            ran
            --- stderr
            warning: the script was not type-checked: TypeScript cannot be started: $FOLDER/pretender/lib/tsc: Permission denied (os error 13)
        "#]],
    );
}

/// A bench whose configuration names this TypeScript.
fn with_typescript(path: &Path) -> Workbench {
    Workbench::with_config(json!({ "check": { "typescript": path } }))
}

/// A package that looks like TypeScript's and holds another program.
fn pretender(folder: &Path, program: &str) -> PathBuf {
    let lib = folder.join("pretender/lib");
    std::fs::create_dir_all(&lib).expect("a folder");
    let file = lib.join("tsc");
    std::fs::write(&file, program).expect("a program");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    std::fs::write(lib.join("lib.esnext.d.ts"), "").expect("a library");
    std::fs::write(
        folder.join("pretender/package.json"),
        r#"{ "version": "7.9.9" }"#,
    )
    .expect("a manifest");
    folder.join("pretender")
}
