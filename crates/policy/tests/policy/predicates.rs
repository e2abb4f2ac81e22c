//! Each test of arguments, over values that fit, that do not, and that cannot
//! be judged.

use serde_json::{Value, json};

use crate::support::{matched, table};

/// A test and a value in each line.
#[track_caller]
fn check(cases: &str) {
    table(cases, |case| {
        let mut condition = json!({ "at": "/x" });
        for (key, value) in case[0].as_object().expect("an object") {
            condition[key] = value.clone();
        }
        matched(&json!([condition]), &json!({ "x": case[1] })).to_owned()
    });
}

#[test]
fn equals_and_one_of() {
    check(
        r#"
        [{ "equals": "a" }, "a"] → both
        [{ "equals": "a" }, "b"] → neither
        [{ "equals": "5" }, 5] → deny
        [{ "equals": 5 }, 5.0] → both
        [{ "equals": 5 }, "5"] → deny
        [{ "equals": true }, "true"] → deny
        [{ "equals": true }, false] → neither
        [{ "equals": null }, null] → both
        [{ "equals": { "a": 1, "b": 2 } }, { "b": 2, "a": 1 }] → both
        [{ "equals": ["a"] }, ["a", "b"]] → neither
        [{ "in": ["a", "b"] }, "b"] → both
        [{ "in": ["a", "b"] }, "c"] → neither
        [{ "in": ["a", "b"] }, ["a"]] → deny
        [{ "in": [1, 2] }, 2.0] → both"#,
    );
}

/// Servers may trim their arguments and so go up a folder; a URL parser takes tabs out, and then
/// sees an escape.
#[test]
fn prefix() {
    check(
        r#"
        [{ "prefix": "/data/" }, "/data/x"] → both
        [{ "prefix": "/data/" }, "/data"] → neither
        [{ "prefix": "/data/" }, "/DATA/x"] → neither
        [{ "prefix": "/data/" }, ["/data/x"]] → deny
        [{ "prefix": "/data/" }, "/data/../etc/passwd"] → deny
        [{ "prefix": "/etc/" }, "/data/../etc/passwd"] → deny
        [{ "prefix": "/data/" }, "/data/.\u200b./x"] → deny
        [{ "prefix": "https://a/v1/" }, "https://a/v1/%2\te%2\ne/admin"] → deny
        [{ "glob": "https://a/v1/**" }, "https://a/v1/..;/admin"] → deny"#,
    );
}

/// `**/` is any number of folders, also none.
#[test]
fn glob() {
    check(
        r#"
        [{ "glob": "/data/*.csv" }, "/data/x.csv"] → both
        [{ "glob": "/data/*.csv" }, "/data/a/x.csv"] → neither
        [{ "glob": "/data/**.csv" }, "/data/a/b/x.csv"] → both
        [{ "glob": "/data/**/x.csv" }, "/data/a/b/x.csv"] → both
        [{ "glob": "/data/**/x.csv" }, "/data/x.csv"] → both
        [{ "glob": "/data/**/x.csv" }, "/data/yx.csv"] → neither
        [{ "glob": "/data**/x.csv" }, "/datax.csv"] → neither
        [{ "glob": "**/.env" }, ".env"] → both
        [{ "glob": "**/.env" }, "a/.env"] → both
        [{ "glob": "**/.env" }, "/.env"] → both
        [{ "glob": "**/.env" }, "/a/b/.env"] → both
        [{ "glob": "**/.env" }, "x.env"] → neither
        [{ "glob": "*.csv" }, "x.csv\n"] → neither
        [{ "glob": "**" }, "a\nb/c"] → both
        [{ "glob": "?" }, "é"] → both
        [{ "glob": "?" }, "/"] → neither
        [{ "glob": "a.c+(" }, "a.c+("] → both
        [{ "glob": "a.c" }, "abc"] → neither
        [{ "glob": "/data/**" }, "/data/../x"] → deny
        [{ "glob": "*" }, 5] → deny"#,
    );
}

#[test]
fn regex_and_presence() {
    check(
        r#"
        [{ "regex": "[a-z]+" }, "abc"] → both
        [{ "regex": "[a-z]+" }, "abc1"] → neither
        [{ "regex": "a|ab" }, "ab"] → both
        [{ "regex": ".*secret.*" }, "a\nsecret\nb"] → both
        [{ "regex": "abc$" }, "abc\n"] → neither
        [{ "regex": "(?i)abc" }, "ABC"] → both
        [{ "regex": "[0-9]+" }, 5] → deny
        [{ "exists": true }, null] → both
        [{ "exists": false }, null] → neither
        [{ "prefix": "a", "regex": "[a-z]+" }, "abc"] → both
        [{ "prefix": "a", "regex": "[a-z]+" }, "abc1"] → neither"#,
    );
}

/// The last three are above, below and above a limit that becomes the same number as a float.
#[test]
fn ranges() {
    check(
        r#"
        [{ "min": 1, "max": 5 }, 1] → both
        [{ "min": 1, "max": 5 }, 5.0] → both
        [{ "min": 1, "max": 5 }, 5.000001] → neither
        [{ "min": 1, "max": 5 }, 0] → neither
        [{ "max": 5 }, "4"] → deny
        [{ "max": 5 }, null] → deny
        [{ "min": 18446744073709551615 }, 18446744073709551615] → both
        [{ "min": 18446744073709551615 }, 18446744073709551614] → neither
        [{ "min": -1.5 }, -9223372036854775808] → neither
        [{ "max": 9007199254740995 }, 9007199254740996.0] → deny
        [{ "max": 9007199254740995 }, 9007199254740994.0] → both
        [{ "max": 9007199254740995 }, 9007199254740998.0] → neither"#,
    );
}

/// Conditions and arguments. A rule can say that leaving a member out is harmless.
#[test]
fn missing_argument_matches_deny_but_not_allow() {
    let check = |case: Value| matched(&case[0], &case[1]).to_owned();
    table(
        r#"
        [[{ "at": "/force", "equals": true }], { "force": true }] → both
        [[{ "at": "/force", "equals": true }], { "force": false }] → neither
        [[{ "at": "/force", "equals": true }], {}] → deny
        [[{ "at": "/force", "equals": true }], null] → deny
        [[{ "at": "/force", "exists": true, "equals": true }], { "force": true }] → both
        [[{ "at": "/force", "exists": true, "equals": true }], { "force": "true" }] → deny
        [[{ "at": "/force", "exists": true, "equals": true }], {}] → neither
        [[{ "at": "/a", "exists": false }], {}] → both
        [[{ "at": "/a/0/b", "equals": 1 }], { "a": [{ "b": 1 }] }] → both
        [[{ "at": "", "equals": { "a": 1 } }], { "a": 1 }] → both
        [[{ "at": "", "equals": { "a": 1 } }], { "a": 1, "b": 2 }] → deny
        [[{ "at": "/a", "equals": 1 }, { "at": "/b", "equals": 2 }], { "a": 1, "b": 3 }] → neither
        [[{ "at": "/a", "equals": 1 }, { "at": "/b", "equals": 2 }], { "a": 1 }] → deny
        [[{ "at": "/__proto__", "equals": 1 }], { "__proto__": 1 }] → both
        [[{ "at": "/a~1b", "equals": 1 }], { "a/b": 1 }] → both
        [[{ "at": "/", "equals": 1 }], { "": 1 }] → both"#,
        check,
    );
}
