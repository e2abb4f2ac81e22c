//! Servers that are connected when they are called, their cached tool lists, and
//! skills.

use callgate_tests::{Workbench, binary};
use expect_test::expect;
use serde_json::{Value, json};

/// A configuration's entry for an odd server that notes each of its starts in a
/// file `NAME.starts`, and starts only while there is no file `NAME.ill`.
fn counted(name: &str, mode: &str, more: Value) -> Value {
    let script =
        format!("[ -e {name}.ill ] && exit 3; echo started >> {name}.starts; exec \"$0\" \"$@\"");
    let mut entry = json!({
        "command": "sh",
        "args": ["-c", script, binary("callgate-odd-server"), mode],
        "cwd": ".",
    });
    let members = more.as_object().expect("an object").clone();
    entry.as_object_mut().expect("an object").extend(members);
    entry
}

fn starts(bench: &Workbench, name: &str) -> usize {
    let starts = std::fs::read_to_string(bench.path().join(format!("{name}.starts")));
    starts.unwrap_or_default().lines().count()
}

#[test]
fn lazy_server_is_listed_and_checked_without_start() {
    let bench = Workbench::new(json!({ "odd": counted("odd", "many", json!({
        "connect": "lazy", "description": "Forty of a kind."
    })) }));
    // At the first start, the cache has no tools of the server.
    let first = bench.callgate(&["tools"]);
    assert_eq!((first.code, starts(&bench, "odd")), (0, 1), "{first:#?}");
    let again = bench.callgate(&["-v", "tools"]);
    assert_eq!(again.stdout, first.stdout);
    let logged = again
        .stderr
        .lines()
        .filter_map(|line| line.split_once(" INFO "));
    let logged: Vec<&str> = logged.map(|(_, event)| event).collect();
    let known = "callgate::read_list: the tools of a server are known from an earlier time \
        server=\"odd\" revision=\"2025-11-25\" tools=40";
    assert_eq!(logged, [known], "{again:#?}");
    let types = bench.callgate(&["types", "odd_search_records_1"]);
    assert!(
        types.stdout.contains("function odd_search_records_1"),
        "{types:#?}"
    );
    bench.write(
        "script.ts",
        "await odd_search_records_1({ query: 'x', project: 'p' })",
    );
    assert_eq!(bench.callgate(&["check", "script.ts"]).code, 0);
    let none = bench.run("return 1", &[]);
    assert_eq!((none.code, starts(&bench, "odd")), (0, 1), "{none:#?}");
    // A run that calls a tool of the server starts the server.
    let called = bench.run(
        "await Promise.all([1, 2, 3].map(() => odd_search_records_1({ query: 'x', project: 'p' }))); return 'ok'",
        &[],
    );
    assert_eq!(called.stdout, "ok\n", "{called:#?}");
    assert_eq!(starts(&bench, "odd"), 2);
}

#[test]
fn unavailable_server_is_listed_but_not_called() {
    let bench = Workbench::new(json!({ "odd": counted("odd", "many", json!({})) }));
    let up = bench.callgate(&["tools"]);
    bench.write("odd.ill", "");
    let down = bench.callgate(&["tools", "--refresh"]);
    assert_eq!((down.code, &down.stdout), (0, &up.stdout), "{down:#?}");
    assert!(down.stderr.contains("exit code 3"), "{down:#?}");
    assert!(
        down.stderr
            .contains("its tools are listed as they were less than a minute ago"),
        "{down:#?}"
    );
    let called = bench.run(
        "await odd_search_records_1({ query: 'x', project: 'p' })",
        &[],
    );
    assert_eq!(called.code, 5, "{called:#?}");
    // `check` fails too, and `call` does not wait for the server.
    bench.write(
        "script.ts",
        "await odd_search_records_1({ query: 'x', project: 'p' })",
    );
    let checked = bench.callgate(&["check", "script.ts", "--refresh"]);
    assert_eq!(checked.code, 5, "{checked:#?}");
    assert!(
        checked
            .stdout
            .contains("line 1: odd_search_records_1 is not available: server `odd` did not start"),
        "{checked:#?}"
    );
    let called = bench.callgate(&["call", "odd_search_records_1"]);
    assert_eq!(called.code, 5, "{called:#?}");
    assert!(called.stderr.contains("exit code 3"), "{called:#?}");
    // The declared types come from the cache.
    let types = bench.callgate(&["types", "odd_search_records_1"]);
    assert_eq!(types.code, 0, "{types:#?}");
    // Without the cache, the server has no tools.
    std::fs::remove_dir_all(bench.cache().join("callgate")).expect("the cache");
    let lost = bench.callgate(&["tools"]);
    assert!(!lost.stdout.contains("odd_search_records_1"), "{lost:#?}");
}

#[test]
fn a_skill_connects_its_servers_and_no_others() {
    let bench = Workbench::new(json!({
        "one": counted("one", "many", json!({})),
        "two": counted("two", "many", json!({})),
        "three": counted("three", "many", json!({ "connect": "manual" })),
    }));
    std::fs::create_dir(bench.path().join("skill")).expect("a folder");
    let skill = |servers: &str| {
        let text =
            format!("---\nname: mail\ndescription: Sort.\nservers: {servers}\n---\n# Mail\n");
        bench.write("skill/SKILL.md", &text);
    };
    skill("[two, three]");
    let ran = bench.callgate(&["tools", "--skill", "skill"]);
    assert!(!ran.stdout.contains("one_search_records_1"), "{ran:#?}");
    assert!(
        ran.stdout.contains("two_search_records_1")
            && ran.stdout.contains("three_search_records_1")
    );
    let started = ["one", "two", "three"].map(|name| starts(&bench, name));
    assert_eq!(started, [0, 1, 1]);
    bench.write(
        "script.ts",
        "await one_search_records_1({ query: 'x', project: 'p' })",
    );
    for mode in ["off", "require"] {
        let refused = bench.callgate(&["check", "script.ts", "--check", mode, "--skill", "skill"]);
        let why = "one_search_records_1 is not available: server \"one\" is disabled";
        assert!(
            refused.stdout.contains(why) || refused.stderr.contains(why),
            "{mode}: {refused:#?}"
        );
    }
    skill("[twoo]");
    let unknown = bench.callgate(&["tools", "--skill", "skill"]);
    assert_eq!(unknown.code, 2);
    expect![[r#"
        error: skill "mail" names the server "twoo", and none has this name; did you mean "two"?
    "#]]
    .assert_eq(&unknown.stderr);
    let nowhere = bench.callgate(&["tools", "--skill", "none"]);
    assert_eq!(nowhere.code, 2);
    expect![[r#"
        error: skill none/SKILL.md: No such file or directory (os error 2)
    "#]]
    .assert_eq(&nowhere.stderr);
}
