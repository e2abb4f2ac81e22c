use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

fn check(given: Value, expected: Expect) {
    let given = given.as_object();
    let mut arguments = Arguments::of("find", given);
    let query = arguments.text("query", "what to look for");
    let detail = arguments.choice("detail", &[("names", 1), ("full", 2)]);
    let limit = arguments.count("limit", 50, 10);
    let server = arguments.optional_text("server", "its name");
    let names = arguments.texts("names", 2, "the tools");
    let args = arguments.object("args", "the tool's");
    let said = match arguments.check() {
        Ok(()) => format!("{query:?} {detail:?} {limit} {server:?} {names:?} {args:?}"),
        Err(problems) => problems.to_string(),
    };
    expected.assert_eq(&said);
}

#[test]
fn arguments_that_fit() {
    check(
        json!({ "query": "a", "names": ["x"] }),
        expect![[r#""a" Some(1) 10 None ["x"] None"#]],
    );
    check(
        json!({ "query": "a", "detail": "full", "limit": 50, "server": "s", "names": ["x", "y"], "args": { "b": 1 } }),
        expect![[r#""a" Some(2) 50 Some("s") ["x", "y"] Some({"b": Number(1)})"#]],
    );
    check(
        json!({ "query": "a", "detail": null, "server": null, "names": ["x"], "limit": 10.0 }),
        expect![[r#""a" Some(1) 10 None ["x"] None"#]],
    );
}

#[test]
fn all_problems_at_once() {
    check(
        json!({}),
        expect![[r#"
        find was not called:
        - "query" is missing: what to look for, a string
        - "names" is missing: an array of 1 to 2 strings: the tools"#]],
    );
    check(
        json!({
            "qeury": "a", "zzz": 1, "query": 7, "detail": "all", "limit": 51,
            "server": ["s"], "names": ["a", 1], "args": "x".repeat(100),
        }),
        expect![[r#"
            find was not called:
            - "query" must be a string: what to look for, and this is 7
            - "detail" must be one of "names", "full", and this is "all"
            - "limit" must be a whole number from 1 to 50, and this is 51
            - "server" must be a string: its name, and this is an array
            - "names" must be an array of 1 to 2 strings: the tools, and this has other things in it
            - "args" must be an object: the tool's, and this is "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"
            - there is no argument "qeury"; did you mean "query"?
            - there is no argument "zzz"; there are query, detail, limit, server, names, args"#]],
    );
    check(
        json!({ "query": " ", "limit": 1.5, "names": [] }),
        expect![[r#"
            find was not called:
            - "limit" must be a whole number from 1 to 50, and this is 1.5
            - "names" must be an array of 1 to 2 strings: the tools, and this has 0"#]],
    );
}

fn check_members(given: Value, expected: Expect) {
    let mut arguments = Arguments::or("nothing was done", given.as_object());
    let flag = arguments.flag("flag");
    let list = arguments.list("list", 2).map(<[Value]>::len);
    let members = arguments.members("limits", "limits", |limits| {
        let most = limits.number("most", 0, u64::MAX, "bytes");
        (limits.number("time", 1, 50, "milliseconds"), most)
    });
    let said = match arguments.check() {
        Ok(()) => format!("{flag:?} {list:?} {members:?}"),
        Err(problems) => problems.to_string(),
    };
    expected.assert_eq(&said);
}

#[test]
fn members_are_read_like_arguments() {
    check_members(json!({}), expect!["None None None"]);
    check_members(
        json!({ "flag": false, "list": [1, 2], "limits": { "time": 50.0, "most": null } }),
        expect!["Some(false) Some(2) Some((Some(50), None))"],
    );
    check_members(
        json!({
            "flag": "yes", "list": [1, 2, 3], "limit": {},
            "limits": { "time": 51, "most": -1, "tme": 1, "other": 1 },
        }),
        expect![[r#"
            nothing was done:
            - "flag" must be true or false, and this is "yes"
            - "list" must be an array of at most 2, and this has 3
            - "limits.most" must be a whole number of bytes, at least 0, and this is -1
            - "limits.time" must be a whole number of milliseconds from 1 to 50, and this is 51
            - there is no member of "limits" "tme"; did you mean "time"?
            - there is no member of "limits" "other"; there are most, time
            - there is no argument "limit"; did you mean "limits"?"#]],
    );
    check_members(
        json!({ "limits": [], "list": {} }),
        expect![[r#"
            nothing was done:
            - "list" must be an array of at most 2, and this is an object
            - "limits" must be an object: limits, and this is an array"#]],
    );
}

#[test]
fn what_is_said_is_bounded() {
    let many: JsonObject = (0..12).map(|n| (format!("ü{n}"), Value::Null)).collect();
    let long: JsonObject = std::iter::once(("ü".repeat(1000), Value::Null)).collect();
    for (given, lines, length) in [(&many, 12, 400), (&long, 2, 200)] {
        let wrong = Arguments::of("find", Some(given)).check();
        let said = wrong.expect_err("they are unknown").to_string();
        assert_eq!(said.lines().count(), lines, "{said}");
        assert!(said.len() < length + 400, "{said}");
    }
    let said = Arguments::of("find", Some(&many)).check();
    let said = said.expect_err("they are unknown").to_string();
    assert!(said.ends_with("\n- and 2 more like these"), "{said}");
}
