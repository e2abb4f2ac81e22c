//! The text of a script cannot make TypeScript read a file.

use callgate_check::Script;

use crate::support::{self, runtime, shown};

/// Checks a script without a generated first line, so that comments at its start have an effect.
#[track_caller]
fn check(text: &str, expected: &str) {
    let said = runtime().block_on(async {
        let script = Script {
            text: text.to_owned(),
            line_offset: 0,
            ..support::script("", "")
        };
        shown(&support::checker().check(script).await.expect("an answer"))
    });
    assert_eq!(said, expected, "{text}");
}

#[test]
fn no_file_is_read_for_a_script() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("secret.ts");
    std::fs::write(&file, "declare const secret: { key: 'hunter2' };").expect("a file");
    std::fs::write(folder.path().join("data.json"), r#"{ "key": "hunter2" }"#).expect("a file");
    let path = file.display().to_string();
    let json = folder.path().join("data.json").display().to_string();
    for kind in ["path", "types"] {
        check(
            &format!("/// <reference {kind}=\"{path}\" />\nexport {{}};\nsecret.key = 1;"),
            "3:1 cannot find name `secret`: neither a tool nor the sandbox has this name\n",
        );
    }
    for (text, file, column) in [
        (
            format!("export const a: number = await import(\"{path}\");"),
            &path,
            39,
        ),
        (format!("export let a: import(\"{path}\").A;"), &path, 22),
        (format!("import a from \"{path}\"; a;"), &path, 15),
        (
            format!("import a from \"{json}\" with {{ type: \"json\" }}; const b: 1 = a.key;"),
            &json,
            15,
        ),
    ] {
        let said = format!(
            "1:{column} cannot find module `{file}` or its corresponding type declarations\n"
        );
        check(&text, &said);
    }
}

#[test]
fn diagnostics_do_not_name_checker_files() {
    // Related places are in files of the checker.
    check(
        "export {}; const Map = 1; declare global { var Promise: 1; }",
        "1:48 subsequent variable declarations must have the same type; variable `Promise` must be of type `PromiseConstructor`, but here has type `1`\n",
    );
}
