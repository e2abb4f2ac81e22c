//! `callgate search`: what it prints, and how it ends.

use callgate_tests::{Workbench, fixture};
use expect_test::{Expect, expect};
use serde_json::json;

#[track_caller]
fn check(flags: &[&str], expected: Expect) {
    let bench = Workbench::new(json!({
        "ticketing": fixture("callgate-demo-ticketing", &[]),
        "logging": fixture("callgate-demo-logging", &[]),
    }));
    let ran = bench.callgate(&[&["search"], flags].concat());
    let said = format!(
        "exit code {}\n--- stdout\n{}--- stderr\n{}",
        ran.code, ran.stdout, ran.stderr
    );
    expected.assert_eq(&said);
}

#[test]
fn by_words() {
    check(
        &["open a ticket", "--limit", "2"],
        expect![[r#"
        exit code 0
        --- stdout
        ticketing_createIssue: File an issue and get its id.
        ticketing_listIssues: Get every issue filed so far, oldest first.
        --- stderr
    "#]],
    );
}

#[test]
fn in_one_server() {
    check(
        &["log", "--server", "logging", "--detail", "name"],
        expect![[r#"
            exit code 0
            --- stdout
            logging_getLogs
            --- stderr
        "#]],
    );
}

#[test]
fn nothing_is_found() {
    check(
        &["zzzzz"],
        expect![[r#"
        exit code 1
        --- stdout
        --- stderr
        none of 3 tools fits
    "#]],
    );
}

#[test]
fn a_server_that_is_not_there() {
    check(
        &["log", "--server", "loging"],
        expect![[r#"
        exit code 2
        --- stdout
        --- stderr
        callgate: no server is named "loging"; did you mean "logging"?
    "#]],
    );
}

#[test]
fn a_regular_expression_that_is_none() {
    check(
        &["(", "--by", "regex"],
        expect![[r#"
        exit code 2
        --- stdout
        --- stderr
        callgate: the query is no regular expression: unclosed group
    "#]],
    );
}
