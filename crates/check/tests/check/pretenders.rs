//! Programs in place of TypeScript that hang, die or send invalid messages: each causes only a quick
//! error.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callgate_check::{
    CheckError, Confinement, Executable, Failure, LayerUse, Script, TypeScript, Unavailable, find,
};

use crate::support::{runtime, script};

/// A shell script starts programs and reads files, so it cannot be confined.
const OFF: Confinement = Confinement {
    landlock: LayerUse::Off,
    seccomp: LayerUse::Off,
};

/// A package with the layout of TypeScript's and a shell script as its program.
fn package(folder: &Path, program: &str) -> PathBuf {
    let lib = folder.join("lib");
    std::fs::create_dir_all(&lib).expect("a folder");
    std::fs::write(folder.join("package.json"), r#"{ "version": "7.0.2" }"#).expect("a manifest");
    std::fs::write(lib.join("lib.esnext.d.ts"), "").expect("a library");
    let file = lib.join("tsc");
    std::fs::write(&file, format!("#!/bin/sh\n{program}\n")).expect("a program");
    std::fs::set_permissions(&file, Permissions::from_mode(0o755)).expect("its mode");
    file
}

fn pretender(folder: &Path, program: &str) -> Executable {
    let file = package(folder, program);
    find(Some(&file), None, None).expect("it looks like TypeScript")
}

fn checker(folder: &Path, program: &str) -> TypeScript {
    TypeScript::new(&pretender(folder, program), OFF)
}

/// A program that fails before it gets a script.
#[track_caller]
fn check(program: &str, expected: Failure) {
    let folder = tempfile::tempdir().expect("a folder");
    let checker = checker(folder.path(), program);
    let found = runtime().block_on(checker.check(script("1", "")));
    let expected = Err(CheckError::Unavailable(Unavailable::Broken(expected)));
    assert_eq!(found, expected, "{program}");
}

/// The first lines of a program that only checks an empty script.
fn starts() -> String {
    [
        r#"{"id":1,"result":{"snapshot":1,"projects":[{"id":"p"}]}}"#,
        r#"{"id":2,"result":null}"#,
        r#"{"id":3,"result":[]}"#,
    ]
    .map(says)
    .join("\n")
}

/// A program that behaves like this when it gets a script.
#[track_caller]
fn check_later(program: &str, time: Duration, expected: Failure) {
    let folder = tempfile::tempdir().expect("a folder");
    let checker = checker(folder.path(), &format!("{}\n{program}", starts()));
    let script = Script {
        time,
        ..script("1", "")
    };
    let found = runtime().block_on(checker.check(script));
    assert_eq!(found, Err(CheckError::GaveUp(expected)), "{program}");
    assert!(processes(folder.path()).is_empty(), "{program}");
}

/// `printf` of one message.
fn says(json: &str) -> String {
    let length = json.len();
    format!("printf 'Content-Length: {length}\\r\\n\\r\\n%s' '{json}'")
}

fn unusable(what: &str) -> Failure {
    Failure::Protocol(what.to_owned())
}

#[test]
fn check_without_answer_is_given_up() {
    let time = Duration::from_secs(60);
    let short = Duration::from_millis(200);
    check_later("exec sleep 600", short, Failure::TimedOut(short));
    // Each request has two lines of headers; the program ends at the fourth request.
    let dies = "for line in 1 2 3 4 5 6 7 8; do read x; done; exit 1";
    check_later(dies, time, Failure::Died);
    let refusal = says(r#"{"id":4,"error":{"code":1,"message":"panic"}}"#);
    let refuses = format!("{refusal}; exec sleep 600");
    check_later(&refuses, time, unusable("panic"));
    // It sends messages, but no response.
    let notice = says(r#"{"method":"x"}"#);
    let notices = format!("while {notice}; do :; done");
    check(&notices, unusable("too many requests before a response"));
}

#[test]
fn dead_checker_gives_no_answer() {
    check("exit 1", Failure::Died);
    check("kill -9 $$", Failure::Died);
    check("printf 'Content-Length: 100\\r\\n\\r\\n{'", Failure::Died);
    // It closes its output and keeps running, so that its output is read before its end is noticed.
    let closes = "printf 'Content-Len'; exec sleep 600 >&-";
    check(closes, unusable("a header that does not end"));
}

#[test]
fn malformed_answers_are_unusable() {
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    let deep = says(&format!(r#"{{"id":1,"result":{deep}}}"#));
    let refuses = says(r#"{"id":1,"error":{"code":1,"message":"no\nway"}}"#);
    let empty = says(r#"{"id":1,"result":{"snapshot":1,"projects":[]}}"#);
    let large = "printf 'Content-Length: 999999999999\\r\\n\\r\\n'";
    let endless = "head -c 10000 /dev/zero | tr '\\0' x";
    for (said, expected) in [
        ("echo hello; echo", "a message without a length"),
        (large, "a message of 999999999999 bytes"),
        (endless, "a header that does not end"),
        (&says("[1"), "EOF while parsing a list at line 1 column 2"),
        (
            &says(r#"{"id":7,"result":null}"#),
            "a response without a request",
        ),
        (&empty, "not one project"),
        (&refuses, "no way"),
        (
            &deep,
            "invalid type: sequence, expected u64 at line 1 column 1",
        ),
    ] {
        check(&format!("{said}; exec sleep 600"), unusable(expected));
    }
}

#[test]
fn diagnostics_of_any_content_are_bounded() {
    // The requests for the next snapshot, for the release of the last one, and for syntax errors.
    let opened = says(r#"{"id":4,"result":{"snapshot":2,"projects":[{"id":"p"}]}}"#);
    let released = says(r#"{"id":5,"result":null}"#);
    let none = says(r#"{"id":6,"result":null}"#);
    let long = "x".repeat(5000);
    let found = says(&format!(
        r#"{{"id":7,"result":[{{"pos":18446744073709551615,"category":1,"code":1,"text":"{long}"}}]}}"#
    ));
    let folder = tempfile::tempdir().expect("a folder");
    let starts = starts();
    let program = format!("{starts}\n{opened}\n{released}\n{none}\n{found}\nexec sleep 600");
    let checker = checker(folder.path(), &program);
    let checked = runtime()
        .block_on(checker.check(script("1", "")))
        .expect("an answer");
    let [only] = checked.diagnostics.as_slice() else {
        panic!("{checked:#?}");
    };
    assert_eq!((only.line, only.column), (2, 1));
    assert_eq!(only.message, format!("{}…", "x".repeat(700)));
}

#[test]
fn unstartable_program_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let executable = pretender(folder.path(), "exit 0");
    std::fs::set_permissions(&executable.path, Permissions::from_mode(0o644)).expect("its mode");
    let checker = TypeScript::new(&executable, OFF);
    let found = runtime().block_on(checker.check(script("1", "")));
    let shown = executable.path.display();
    let expected = Unavailable::Start(format!("{shown}: Permission denied (os error 13)"));
    assert_eq!(found, Err(CheckError::Unavailable(expected)));
}

#[test]
fn library_outside_its_folder_is_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let executable = pretender(folder.path(), "exec sleep 600");
    let library = folder.path().join("lib/lib.esnext.d.ts");
    let missing = folder.path().join("lib/lib.es9.d.ts").display().to_string();
    let missing = format!("{missing}: No such file or directory (os error 2)");
    let elsewhere = "../../../etc/passwd";
    for (part, expected) in [
        (elsewhere, format!("it has a part named {elsewhere:?}")),
        ("es9", missing),
    ] {
        std::fs::write(&library, format!("/// <reference lib=\"{part}\" />\n")).expect("a library");
        let checker = TypeScript::new(&executable, OFF);
        let found = runtime().block_on(checker.check(script("1", "")));
        let expected = CheckError::Unavailable(Unavailable::Library(expected));
        assert_eq!(found, Err(expected));
    }
}

#[test]
fn the_program_has_no_environment_and_no_files() {
    let folder = tempfile::tempdir().expect("a folder");
    // The program reports its environment and its files in the message of an error.
    let program = r#"
said=$(export -p | grep -c -v 'PWD\|GO'; pwd; ls /proc/self/fd | tr '\n' ' ')
text="{\"id\":1,\"error\":{\"message\":\"$(echo $said)\"}}"
printf 'Content-Length: %s\r\n\r\n%s' ${#text} "$text"
exec sleep 600"#;
    let checker = checker(folder.path(), program);
    let found = runtime().block_on(checker.check(script("1", "")));
    let said = Unavailable::Broken(unusable("0 / 0 1 2 3"));
    assert_eq!(found, Err(CheckError::Unavailable(said)));
}

/// The processes that run the program of a folder.
fn processes(folder: &Path) -> Vec<i32> {
    let folder = folder.display().to_string();
    let runs_it = |process: &std::fs::DirEntry| {
        let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(&folder)
    };
    let all = std::fs::read_dir("/proc").expect("a list");
    all.flatten()
        .filter(runs_it)
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .collect()
}

/// A program that reports no errors of its first script, then waits.
fn content() -> String {
    let answers = [
        r#"{"id":4,"result":{"snapshot":2,"projects":[{"id":"p"}]}}"#,
        r#"{"id":5,"result":null}"#,
        r#"{"id":6,"result":null}"#,
        r#"{"id":7,"result":[]}"#,
    ];
    let answers = answers.map(says).join("\n");
    format!("{}\n{answers}\nwhile read x; do :; done", starts())
}

#[test]
fn process_dead_between_checks_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let checker = checker(folder.path(), &content());
    runtime().block_on(async {
        let nothing = Ok(callgate_check::Checked::default());
        assert_eq!(checker.check(script("1", "")).await, nothing);
        let [first] = processes(folder.path())[..] else {
            panic!("not one process");
        };
        // SAFETY: kill takes numbers.
        assert_eq!(unsafe { libc::kill(first, libc::SIGKILL) }, 0);
        // A process closes its pipes before it is a zombie, and after its command line is gone.
        let stat = format!("/proc/{first}/stat");
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::task::yield_now().await;
        }
        assert_eq!(checker.check(script("1", "")).await, nothing);
    });
}

#[test]
fn idle_process_ends_and_is_restarted() {
    let folder = tempfile::tempdir().expect("a folder");
    let executable = pretender(folder.path(), &content());
    let checker = TypeScript::with_idle_time(&executable, OFF, Duration::from_millis(1));
    runtime().block_on(async {
        for _ in 0..2 {
            let nothing = Ok(callgate_check::Checked::default());
            assert_eq!(checker.check(script("1", "")).await, nothing);
            while !processes(folder.path()).is_empty() {
                tokio::task::yield_now().await;
            }
        }
    });
}
