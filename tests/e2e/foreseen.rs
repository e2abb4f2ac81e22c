//! What the command line lists of tools, and what it foresees of a script.

use callgate_tests::{Workbench, fixture};
use expect_test::expect;
use serde_json::json;

use crate::cli::{check, ticketing};

#[test]
fn tools_for_a_provider() {
    let bench = ticketing();
    let flags = ["export", "--format", "gemini", "--defer", "*_createIssue"];
    check(
        &bench,
        &bench.callgate(&flags),
        expect![[r#"
            exit code 0
            --- stdout
            [
              {
                "functionDeclarations": [
                  {
                    "name": "ticketing_createIssue",
                    "description": "File an issue and get its id.",
                    "parametersJsonSchema": {
                      "type": "object",
                      "properties": {
                        "title": {
                          "type": "string",
                          "minLength": 1,
                          "description": "One line"
                        },
                        "body": {
                          "type": "string",
                          "description": "Any text; empty without it"
                        },
                        "priority": {
                          "type": "string",
                          "enum": [
                            "low",
                            "medium",
                            "high"
                          ],
                          "default": "medium"
                        }
                      },
                      "required": [
                        "title"
                      ],
                      "additionalProperties": false
                    }
                  }
                ]
              }
            ]
            --- stderr
            callgate: gemini has no search of its own, so every tool is loaded at once
        "#]],
    );
    let mut said = String::new();
    for patterns in [
        &["*_createIssue", "nothing_*"][..],
        &["ticketing_createIsue"],
        &["--defer", "--load", "ticketing_creteIssue"],
    ] {
        let ran = bench.callgate(&[&["export", "--format", "openai"], patterns].concat());
        said += &format!("{} {}{}", ran.code, ran.stdout, ran.stderr);
    }
    expect![[r#"
        2 callgate: no tool matches "nothing_*"; `callgate tools` lists those there are
        2 callgate: no tool matches "ticketing_createIsue"; did you mean "ticketing_createIssue"? `callgate tools` lists those there are
        2 callgate: no tool matches "ticketing_creteIssue"; did you mean "ticketing_createIssue"? `callgate tools` lists those there are
    "#]]
    .assert_eq(&said);
    let ran = bench.callgate(&["export", "--format", "palm"]);
    check(
        &bench,
        &ran,
        expect![[r#"
        exit code 2
        --- stdout
        --- stderr
        error: invalid value 'palm' for '--format <FORMAT>': no format is named "palm"; there are anthropic, openai and gemini

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn what_a_script_would_call() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": { "allow": ["ticketing_list*"] },
    }));
    bench.write(
        "script.ts",
        "const { issues } = await ticketing_listIssues();\n\
         if (!issues.length) await ticketing_createIssue({ title: 'first' });\n\
         await ticketing_closeIssue({});\n",
    );
    check(
        &bench,
        &bench.callgate(&["check", "script.ts", "--check=off"]),
        expect![[r#"
            exit code 3
            --- stdout
            ticketing_listIssues (line 1): allowed by rule "ticketing_list*" in permissions.allow
            ticketing_createIssue (line 2): needs approval: no rule matches
            to run it unattended: --allow ticketing_createIssue
            line 3: no tool is named "ticketing_closeIssue"; did you mean "ticketing_createIssue"?
            --- stderr
        "#]],
    );
    let allowed = [
        "check",
        "script.ts",
        "--check=off",
        "--allow",
        "ticketing_create*",
    ];
    check(
        &bench,
        &bench.callgate(&allowed),
        expect![[r#"
            exit code 1
            --- stdout
            ticketing_listIssues (line 1): allowed by rule "ticketing_list*" in permissions.allow
            ticketing_createIssue (line 2): allowed by rule "ticketing_create*" in --allow
            line 3: no tool is named "ticketing_closeIssue"; did you mean "ticketing_createIssue"?
            --- stderr
        "#]],
    );
}
