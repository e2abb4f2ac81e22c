//! Labels and rules over flows.

use expect_test::expect;

use super::check;

#[test]
fn labels_and_rules() {
    check(
        r#"{
  "mcpServers": { "crm-eu": { "disabled": true, "labels": ["private", "eu"] } },
  "toolLabels": { "fs_read_*": ["private"] },
  "flows": [
    { "from": "crm-eu", "to": "label:outside", "action": "deny" },
    { "from": "label:private", "to": "*", "minBytes": 100, "action": "ask" },
  ],
}"#,
        expect![[r#"
            disabled: ["crm-eu"]
            FlowRules {
                rules: [
                    FlowRule {
                        from: Name(
                            ServerPattern {
                                text: "crm-eu",
                            },
                        ),
                        to: Label(
                            "outside",
                        ),
                        min_bytes: None,
                        action: Deny,
                    },
                    FlowRule {
                        from: Label(
                            "private",
                        ),
                        to: Name(
                            ServerPattern {
                                text: "*",
                            },
                        ),
                        min_bytes: Some(
                            100,
                        ),
                        action: Ask,
                    },
                ],
                servers: [
                    (
                        "crm-eu",
                        "private",
                    ),
                    (
                        "crm-eu",
                        "eu",
                    ),
                ],
                tools: [
                    (
                        Pattern {
                            text: "fs_read_*",
                        },
                        "private",
                    ),
                ],
            }
        "#]],
    );
}

#[test]
fn mistakes() {
    check(
        r#"{
  "mcpServers": { "crm": { "command": "crm", "labels": ["a b", "", 1] } },
  "toolLabels": { "fs-*": ["private"], "fs_*": "private" },
  "flows": [
    "crm",
    { "from": "crm" },
    { "from": "", "to": "label:", "action": "block" },
    { "form": "crm", "to": "*", "action": "deny", "minBytes": -1 },
  ],
}"#,
        expect![[r#"
            callgate.json:2:57: "a b" is no label; use letters, digits, "-", "_" and "."
            callgate.json:2:64: "" is no label; use letters, digits, "-", "_" and "."
            callgate.json:2:68: "labels" in server "crm" must be an array of strings, and this is a number
            callgate.json:3:19: pattern "fs-*" can never match: generated names have "_" in place of "-"; did you mean "fs_*"?
            callgate.json:3:48: "fs_*" in "toolLabels" must be an array of strings, and this is a string
            callgate.json:5:5: a rule in "flows" must be an object, such as { "from": "crm", "to": "*", "action": "deny" }
            callgate.json:6:5: a rule in "flows" has no "to"; write a server, a tool or "label:NAME"
            callgate.json:6:5: a rule in "flows" has no "action"; write "allow", "ask" or "deny"
            callgate.json:7:15: "from" in a rule in "flows" names nothing; write "*" for everything
            callgate.json:7:25: "to" in a rule in "flows" names nothing; write "*" for everything
            callgate.json:7:45: "action" in a rule in "flows": "block" is no action; write "allow", "ask" or "deny"
            callgate.json:8:7: unknown key "form" in a rule in "flows"; did you mean "from"?
            callgate.json:8:63: "minBytes" in a rule in "flows" must be a whole number above zero
        "#]],
    );
    check(
        r#"{ "toolLabels": [], "flows": {} }"#,
        expect![[r#"
        callgate.json:1:17: "toolLabels" in the file must be an object, and this is an array
        callgate.json:1:30: "flows" in the file must be an array of rules, and this is an object
    "#]],
    );
}
