//! Each test of arguments, over values that fit, that do not, and that cannot
//! be judged.

use serde_json::{Value, json};

use crate::support::matched;

#[track_caller]
fn check(test: Value, value: Value, expected: &str) {
    let mut condition = json!({ "at": "/x" });
    for (key, value) in test.as_object().expect("an object") {
        condition[key] = value.clone();
    }
    let found = matched(&json!([condition]), &json!({ "x": value }));
    assert_eq!(found, expected, "{test} over {value}");
}

#[test]
fn equals() {
    check(json!({ "equals": "a" }), json!("a"), "both");
    check(json!({ "equals": "a" }), json!("b"), "neither");
    check(json!({ "equals": "5" }), json!(5), "deny");
    check(json!({ "equals": 5 }), json!(5.0), "both");
    check(json!({ "equals": 5 }), json!("5"), "deny");
    check(json!({ "equals": true }), json!("true"), "deny");
    check(json!({ "equals": true }), json!(false), "neither");
    check(json!({ "equals": null }), json!(null), "both");
    check(
        json!({ "equals": { "a": 1, "b": 2 } }),
        json!({ "b": 2, "a": 1 }),
        "both",
    );
    check(json!({ "equals": ["a"] }), json!(["a", "b"]), "neither");
}

#[test]
fn one_of() {
    check(json!({ "in": ["a", "b"] }), json!("b"), "both");
    check(json!({ "in": ["a", "b"] }), json!("c"), "neither");
    check(json!({ "in": ["a", "b"] }), json!(["a"]), "deny");
    check(json!({ "in": [1, 2] }), json!(2.0), "both");
}

#[test]
fn prefix() {
    check(json!({ "prefix": "/data/" }), json!("/data/x"), "both");
    check(json!({ "prefix": "/data/" }), json!("/data"), "neither");
    check(json!({ "prefix": "/data/" }), json!("/DATA/x"), "neither");
    check(json!({ "prefix": "/data/" }), json!(["/data/x"]), "deny");
    check(
        json!({ "prefix": "/data/" }),
        json!("/data/../etc/passwd"),
        "deny",
    );
    check(
        json!({ "prefix": "/etc/" }),
        json!("/data/../etc/passwd"),
        "deny",
    );
    check(
        json!({ "prefix": "https://a/v1/" }),
        json!("https://a/v1/%2e%2e/admin"),
        "deny",
    );
    // A server that trims its arguments goes up a folder.
    for hidden in ["/data/..\u{a0}", "/data/..%C2%A0", "/data/.\u{200b}./x"] {
        check(json!({ "prefix": "/data/" }), json!(hidden), "deny");
    }
    // A URL parser takes the tab out, and then sees the escape.
    for hidden in ["https://a/v1/%2\te%2\ne/admin", "https://a/v1/..;/admin"] {
        check(json!({ "prefix": "https://a/v1/" }), json!(hidden), "deny");
        check(json!({ "glob": "https://a/v1/**" }), json!(hidden), "deny");
    }
}

#[test]
fn glob() {
    check(
        json!({ "glob": "/data/*.csv" }),
        json!("/data/x.csv"),
        "both",
    );
    check(
        json!({ "glob": "/data/*.csv" }),
        json!("/data/a/x.csv"),
        "neither",
    );
    check(
        json!({ "glob": "/data/**.csv" }),
        json!("/data/a/b/x.csv"),
        "both",
    );
    check(
        json!({ "glob": "/data/**/x.csv" }),
        json!("/data/a/b/x.csv"),
        "both",
    );
    // Any number of folders, also none.
    for path in [".env", "a/.env", "/.env", "/a/b/.env"] {
        check(json!({ "glob": "**/.env" }), json!(path), "both");
    }
    check(json!({ "glob": "**/.env" }), json!("x.env"), "neither");
    check(
        json!({ "glob": "/data/**/x.csv" }),
        json!("/data/x.csv"),
        "both",
    );
    check(
        json!({ "glob": "/data/**/x.csv" }),
        json!("/data/yx.csv"),
        "neither",
    );
    check(
        json!({ "glob": "/data**/x.csv" }),
        json!("/datax.csv"),
        "neither",
    );
    check(json!({ "glob": "*.csv" }), json!("x.csv\n"), "neither");
    check(json!({ "glob": "**" }), json!("a\nb/c"), "both");
    check(json!({ "glob": "?" }), json!("é"), "both");
    check(json!({ "glob": "?" }), json!("/"), "neither");
    check(json!({ "glob": "a.c+(" }), json!("a.c+("), "both");
    check(json!({ "glob": "a.c" }), json!("abc"), "neither");
    check(json!({ "glob": "/data/**" }), json!("/data/../x"), "deny");
    check(json!({ "glob": "*" }), json!(5), "deny");
}

#[test]
fn regex() {
    check(json!({ "regex": "[a-z]+" }), json!("abc"), "both");
    check(json!({ "regex": "[a-z]+" }), json!("abc1"), "neither");
    check(json!({ "regex": "a|ab" }), json!("ab"), "both");
    check(
        json!({ "regex": ".*secret.*" }),
        json!("a\nsecret\nb"),
        "both",
    );
    check(json!({ "regex": "abc$" }), json!("abc\n"), "neither");
    check(json!({ "regex": "(?i)abc" }), json!("ABC"), "both");
    check(json!({ "regex": "[0-9]+" }), json!(5), "deny");
}

#[test]
fn ranges() {
    check(json!({ "min": 1, "max": 5 }), json!(1), "both");
    check(json!({ "min": 1, "max": 5 }), json!(5.0), "both");
    check(json!({ "min": 1, "max": 5 }), json!(5.000001), "neither");
    check(json!({ "min": 1, "max": 5 }), json!(0), "neither");
    check(json!({ "max": 5 }), json!("4"), "deny");
    check(json!({ "max": 5 }), json!(null), "deny");
    check(json!({ "min": u64::MAX }), json!(u64::MAX), "both");
    check(json!({ "min": u64::MAX }), json!(u64::MAX - 1), "neither");
    check(json!({ "min": -1.5 }), json!(i64::MIN), "neither");
    // Above the limit, which becomes the same number as a float.
    let most = 9_007_199_254_740_995_i64;
    let above = json!(9_007_199_254_740_996.0);
    check(json!({ "max": most }), above, "deny");
    let below = json!(9_007_199_254_740_994.0);
    check(json!({ "max": most }), below, "both");
    let next = json!(9_007_199_254_740_998.0);
    check(json!({ "max": most }), next, "neither");
}

#[test]
fn presence() {
    check(json!({ "exists": true }), json!(null), "both");
    check(json!({ "exists": false }), json!(null), "neither");
    // All must hold: what certainly fails settles it.
    check(
        json!({ "prefix": "a", "regex": "[a-z]+" }),
        json!("abc"),
        "both",
    );
    check(
        json!({ "prefix": "a", "regex": "[a-z]+" }),
        json!("abc1"),
        "neither",
    );
}

#[test]
fn what_is_missing_satisfies_no_allow_rule_and_escapes_no_deny_rule() {
    let check = |condition: Value, arguments: Value, expected: &str| {
        assert_eq!(
            matched(&condition, &arguments),
            expected,
            "{condition} over {arguments}"
        );
    };
    let force = json!([{ "at": "/force", "equals": true }]);
    check(force.clone(), json!({ "force": true }), "both");
    check(force.clone(), json!({ "force": false }), "neither");
    check(force.clone(), json!({}), "deny");
    check(force, json!(null), "deny");
    // A rule can say that leaving it out is harmless.
    let forced = json!([{ "at": "/force", "exists": true, "equals": true }]);
    check(forced.clone(), json!({ "force": true }), "both");
    check(forced.clone(), json!({ "force": "true" }), "deny");
    check(forced, json!({}), "neither");
    check(json!([{ "at": "/a", "exists": false }]), json!({}), "both");
    check(
        json!([{ "at": "/a/0/b", "equals": 1 }]),
        json!({ "a": [{ "b": 1 }] }),
        "both",
    );
    check(
        json!([{ "at": "", "equals": { "a": 1 } }]),
        json!({ "a": 1 }),
        "both",
    );
    check(
        json!([{ "at": "", "equals": { "a": 1 } }]),
        json!({ "a": 1, "b": 2 }),
        "deny",
    );
    check(
        json!([{ "at": "/a", "equals": 1 }, { "at": "/b", "equals": 2 }]),
        json!({ "a": 1, "b": 3 }),
        "neither",
    );
    check(
        json!([{ "at": "/a", "equals": 1 }, { "at": "/b", "equals": 2 }]),
        json!({ "a": 1 }),
        "deny",
    );
}

#[test]
fn any_member_may_be_looked_at() {
    let check = |at: &str| {
        let arguments = json!({ "__proto__": 1, "constructor": 1, "a/b": 1, "": 1 });
        assert_eq!(
            matched(&json!([{ "at": at, "equals": 1 }]), &arguments),
            "both",
            "{at}"
        );
    };
    check("/__proto__");
    check("/constructor");
    check("/a~1b");
    check("/");
}
