//! `types --out`: a folder whose scripts `tsc` checks, as an editor does.

use std::process::Command;

use callgate_tests::{Ran, Workbench, typescript_modules};

/// Uses globals of the sandbox, `mcp` and functions of both servers.
const RIGHT: &str = r#"#!/usr/bin/env -S callgate run
export default async function () {
  const { entries } = await logging_getLogs({ level: "warn" });
  const seen = new Set(entries.map((entry) => entry.service));
  try {
    await ticketing_createIssue({ title: [...seen].join(), priority: "low" });
  } catch (error) {
    console.error(error instanceof McpDeniedError ? error.because : error.message);
  }
  const made = new globalThis.URL("https://example.com/?a=1").searchParams.get("a");
  setTimeout(() => console.table(structuredClone([...seen])), 5);
  return { made, id: crypto.randomUUID(), kept: mcp.json("1") };
}
"#;

/// Gives a tool a wrong type, and names a global of browsers.
const WRONG: &str = r#"export default async function () {
  const { issues } = await ticketing_listIssues();
  await ticketing_createIssue({ title: issues.length });
  return document.title;
}
"#;

/// The errors in [`WRONG`]: files, places and codes.
const ERRORS: [&str; 2] = [
    "wrong.ts(3,33): error TS2322",
    "wrong.ts(4,10): error TS2584",
];

/// Runs `types --out` with the lists of servers that have answered.
fn write_types(bench: &Workbench, folder: &str) -> Ran {
    bench.callgate(&["types", "--refresh", "--out", folder])
}

/// The errors of `tsc` over the project of this folder, without their texts.
fn errors_of_tsc(bench: &Workbench, folder: &str) -> Vec<String> {
    let packages = typescript_modules().join("@typescript");
    let package = packages.read_dir().expect("the packages").flatten().next();
    let program = package.expect("the platform's package").path();
    let output = Command::new(program.join("lib/tsc"))
        .args(["--noEmit", "--pretty", "false", "-p", "."])
        .current_dir(bench.path().join(folder))
        .output();
    let ran = Ran::from(output.expect("start tsc"));
    let errors = ran.stdout.lines().filter(|line| !line.starts_with(' '));
    let places = errors.map(|line| line.splitn(3, ": ").take(2).collect::<Vec<_>>().join(": "));
    places.collect()
}

#[test]
fn tsc_checks_scripts_of_the_written_folder() {
    let bench = Workbench::demo();
    let ran = write_types(&bench, "scripts");
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(
        ran.stdout,
        "wrote scripts/callgate.d.ts (3 functions) and scripts/tsconfig.json\n\
         next: write scripts in scripts; for those of the current folder, write this \
         ./tsconfig.json:\n  {\"extends\":\"./scripts/tsconfig.json\",\"include\":[\"**/*.ts\"]}\n"
    );
    bench.write("scripts/right.ts", RIGHT);
    assert_eq!(errors_of_tsc(&bench, "scripts"), [""; 0]);
    bench.write("scripts/wrong.ts", WRONG);
    assert_eq!(errors_of_tsc(&bench, "scripts"), ERRORS);
    let ran = bench.callgate(&["run", "scripts/right.ts"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
}

#[test]
fn printed_project_checks_scripts_outside_the_folder() {
    let bench = Workbench::demo();
    let ran = write_types(&bench, ".callgate");
    let project = ran.stdout.lines().last().expect("a project");
    bench.write("tsconfig.json", project);
    bench.write("right.ts", RIGHT);
    bench.write("wrong.ts", WRONG);
    assert_eq!(errors_of_tsc(&bench, ""), ERRORS);
}

#[test]
fn second_run_replaces_written_files() {
    let bench = Workbench::demo();
    let ran = write_types(&bench, ".");
    assert!(ran.stdout.ends_with("check them\n"), "{ran:#?}");
    let file = bench.path().join("callgate.d.ts");
    let read = || std::fs::read_to_string(&file).expect("declarations");
    let written = read();
    let mark = written.lines().next().expect("a line");
    bench.write("callgate.d.ts", &format!("{mark}\ntype Older = 1;\n"));
    assert_eq!(write_types(&bench, ".").code, 0);
    assert_eq!(read(), written);
}

#[test]
fn file_of_another_author_stops_the_command() {
    for name in ["callgate.d.ts", "tsconfig.json"] {
        let bench = Workbench::demo();
        bench.write(name, "// Mine.\n{}\n");
        let ran = write_types(&bench, ".");
        assert_eq!(ran.code, 2, "{ran:#?}");
        let expected = format!("./{name} was not written by `callgate types --out`");
        assert!(ran.stderr.contains(&expected), "{ran:#?}");
        let files = ["callgate.d.ts", "tsconfig.json"].map(|name| bench.path().join(name));
        assert_eq!(files.iter().filter(|file| file.exists()).count(), 1);
    }
}
