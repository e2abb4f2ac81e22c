//! What clients of `serve` see, and what is set for tools one by one.

use expect_test::expect;

use super::check;

#[test]
fn modes_and_budgets() {
    check(
        r#"{ "serve": {
  "mode": "native",
  "context": { "window": 128000, "share": 0.05 },
  "toolsTtl": "1m",
  "wait": "20s",
  "answerTime": "1h",
} }"#,
        expect![[r#"
            ServeConfig {
                mode: Some(
                    Native,
                ),
                window: Some(
                    128000,
                ),
                share: Some(
                    0.05,
                ),
                tools_ttl: Some(
                    60s,
                ),
                wait: Some(
                    20s,
                ),
                answer_time: Some(
                    3600s,
                ),
            }
        "#]],
    );
}

#[test]
fn what_serve_does_not_understand() {
    check(
        r#"{ "serve": {
  "mode": "Native",
  "context": { "window": 0, "share": 2, "shares": 1 },
  "toolsTtl": 5,
  "wait": "soon",
  "modes": [],
} }"#,
        expect![[r#"
            callgate.json:2:11: "mode" in "serve": "Native" is no mode; the modes are "code", "discovery" and "native"
            callgate.json:3:26: "window" in "context" must be a whole number above zero
            callgate.json:3:38: "share" in "context": a share is a number above 0 and at most 1, such as 0.02
            callgate.json:3:41: unknown key "shares" in "context"; did you mean "share"?
            callgate.json:4:15: "toolsTtl" in "serve" must be a string such as "30s", and this is a number
            callgate.json:5:11: "wait" in "serve": "soon" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"
            callgate.json:6:3: unknown key "modes" in "serve"; did you mean "mode"?
        "#]],
    );
    check(
        r#"{ "serve": { "context": { "share": "2 %" } } }"#,
        expect![[r#"
            callgate.json:1:36: "share" in "context": a share is a number above 0 and at most 1, such as 0.02
        "#]],
    );
}

#[test]
fn tools_by_pattern() {
    check(
        r#"{ "tools": {
  "*": { "visibility": "on-demand" },
  "git_log": { "keywords": ["history", "blame"], "alwaysOn": true },
} }"#,
        expect![[r#"
            ToolSettings {
                entries: [
                    (
                        Pattern {
                            text: "*",
                        },
                        ToolSetting {
                            visibility: Some(
                                OnDemand,
                            ),
                            keywords: [],
                            always_on: false,
                        },
                    ),
                    (
                        Pattern {
                            text: "git_log",
                        },
                        ToolSetting {
                            visibility: None,
                            keywords: [
                                "history",
                                "blame",
                            ],
                            always_on: true,
                        },
                    ),
                ],
            }
        "#]],
    );
}

#[test]
fn what_tools_does_not_understand() {
    check(
        r#"{ "tools": {
  "git-*": { "visibility": "none" },
  "git_*": { "keywords": ["", "a", 1], "alwaysOn": "yes", "always": true },
  "fs_*": true,
} }"#,
        expect![[r#"
            callgate.json:2:3: pattern "git-*" can never match: generated names have "_" in place of "-"; did you mean "git_*"?
            callgate.json:2:28: "visibility" in "git-*" in "tools": "none" is no visibility; write "native", "on-demand" or "hidden"
            callgate.json:3:27: a keyword of "git_*" in "tools" must have 1 to 100 bytes of text
            callgate.json:3:36: "keywords" in "git_*" in "tools" must be an array of strings, and this is a number
            callgate.json:3:52: "alwaysOn" in "git_*" in "tools" must be true or false, and this is a string
            callgate.json:3:59: unknown key "always" in "git_*" in "tools"; did you mean "alwaysOn"?
            callgate.json:4:11: "fs_*" in "tools" must be an object, and this is a boolean
        "#]],
    );
}
