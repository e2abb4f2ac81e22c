//! The command line as a newcomer meets it: exit codes and messages.

use std::io::Read as _;
use std::process::Stdio;

use callgate_tests::{Ran, Workbench, fixture, odd};
use expect_test::{Expect, expect};
use serde_json::json;

/// The exit code and everything printed, with the temporary folder's name out
/// of it.
#[track_caller]
fn check(bench: &Workbench, ran: &Ran, expected: Expect) {
    let folder = bench.path().display().to_string();
    let said = format!(
        "exit code {}\n--- stdout\n{}--- stderr\n{}",
        ran.code, ran.stdout, ran.stderr
    );
    expected.assert_eq(&said.replace(&folder, "$FOLDER"));
}

fn ticketing() -> Workbench {
    Workbench::new(json!({ "ticketing": fixture("callgate-demo-ticketing", &[]) }))
}

#[test]
fn no_configuration() {
    let bench = Workbench::empty();
    check(
        &bench,
        &bench.callgate(&["tools"]),
        expect![[r#"
        exit code 2
        --- stdout
        --- stderr
        callgate: there is no callgate.json or .mcp.json in this folder or above; create one, such as
          { "mcpServers": { "time": { "command": "mcp-server-time" } } }
        or name a file with --config
    "#]],
    );
}

#[test]
fn a_script_needs_no_configuration() {
    let bench = Workbench::empty();
    let ran = bench.run("console.log('hello', [1, { a: 2 }]); return 'done'", &[]);
    check(
        &bench,
        &ran,
        expect![[r#"
        exit code 0
        --- stdout
        hello [ 1, { a: 2 } ]
        done
        --- stderr
    "#]],
    );
}

/// A script that fails for want of tools says that there is no configuration.
#[test]
fn a_script_of_tools_without_a_configuration() {
    let bench = Workbench::empty();
    bench.write("script.ts", "await logging_getLogs({})");
    let of = |command| bench.callgate(&[command, "script.ts"]);
    check(
        &bench,
        &of("run"),
        expect![[r#"
        exit code 1
        --- stdout
        --- stderr
        error: cannot find name `logging_getLogs`: no tool is named so, and the sandbox does not have it
          --> script.ts:1:7
          1 | await logging_getLogs({})
            |       ^
        error: 1 type error; nothing was run
        calls: none
        note: there is no callgate.json or .mcp.json in this folder or above; create one, such as
          { "mcpServers": { "time": { "command": "mcp-server-time" } } }
        or name a file with --config
    "#]],
    );
    let (run, checked) = (of("run"), of("check"));
    assert_eq!((run.code, run.stderr), (checked.code, checked.stderr));
}

#[test]
fn what_there_is_none_of() {
    let none = Workbench::new(json!({}));
    check(
        &none,
        &none.callgate(&["tools"]),
        expect![[r#"
        exit code 0
        --- stdout
        --- stderr
        warning: rule "*" in permissions.allow matches no tool
        no server is configured
    "#]],
    );
    check(
        &none,
        &none.callgate(&["auth", "login", "x"]),
        expect![[r#"
            exit code 2
            --- stdout
            --- stderr
            callgate: no server is named "x": the configuration has none
        "#]],
    );
    check(
        &none,
        &none.callgate(&["search", "x", "--limit", "0"]),
        expect![[r#"
            exit code 2
            --- stdout
            --- stderr
            error: invalid value '0' for '--limit <N>': write a whole number above zero

            For more information, try '--help'.
        "#]],
    );
    let manual = json!({ "command": "none at all", "connect": "manual" });
    let manual = Workbench::new(json!({ "m": manual }));
    check(
        &manual,
        &manual.callgate(&["tools"]),
        expect![[r#"
        exit code 0
        --- stdout
        --- stderr
        no server that is in use offers a tool
    "#]],
    );
    check(
        &manual,
        &manual.callgate(&["call", "m_env"]),
        expect![[r#"
        exit code 2
        --- stdout
        --- stderr
        callgate: m_env is not available: server "m" is disabled; name it in a skill (--skill), or give it "connect": "lazy" in the configuration
    "#]],
    );
    let search = manual.callgate(&["search", "x", "--server", "m"]);
    check(
        &manual,
        &search,
        expect![[r#"
        exit code 1
        --- stdout
        --- stderr
        note: server "m" is not in use; enable it to find its tools
        note: to use server "m", name it in a skill (--skill), or give it "connect": "lazy" in the configuration
        none of 0 tools fits
    "#]],
    );
    let off = manual.run("await m_env({})", &["--check", "off"]);
    check(
        &manual,
        &off,
        expect![[r#"
        exit code 1
        --- stdout
        --- stderr
        error: ReferenceError: m_env is not defined
          --> stdin.ts:1:1
          1 | await m_env({})
            | ^
        hint: m_env is not available: server "m" is disabled
        calls: none
        note: to use server "m", name it in a skill (--skill), or give it "connect": "lazy" in the configuration
    "#]],
    );
    let line = Workbench::new(json!({ "line": { "command": "python3 server.py" } }));
    check(
        &line,
        &line.callgate(&["tools"]),
        expect![[r#"
        exit code 0
        --- stdout
        --- stderr
        warning: server `line` did not start: command "python3 server.py" was not found; name the program alone there, and put its arguments under `args`
        no server that is in use offers a tool
    "#]],
    );
}

#[test]
fn a_named_configuration_that_is_not_there() {
    let bench = Workbench::empty();
    check(
        &bench,
        &bench.callgate(&["tools", "--config", "nope.json"]),
        expect![[r#"
            exit code 2
            --- stdout
            --- stderr
            callgate: nope.json: cannot be read: No such file or directory (os error 2)
        "#]],
    );
}

#[test]
fn a_configuration_with_mistakes() {
    let bench = Workbench::empty();
    bench.write(
        "callgate.json",
        "{\n  // a comment\n  \"mcpServers\": {\n    \"git\": { \"commnad\": \"mcp-server-git\" },\n    \"web\": { \"type\": \"sse\", \"url\": \"http://127.0.0.1:1/sse\" },\n    \"db\": { \"command\": \"db\", \"env\": { \"TOKEN\": \"${CALLGATE_UNSET}\" } }\n  }\n}\n",
    );
    check(
        &bench,
        &bench.callgate(&["tools"]),
        expect![[r#"
        exit code 2
        --- stdout
        --- stderr
        callgate: callgate.json:4:14: unknown key "commnad" in server "git"; did you mean "command"?
        callgate.json:5:22: server "web" has "type": "sse", a transport that MCP deprecated in its version 2025-03-26; write "type": "http" and the server's streamable HTTP URL
        callgate.json:6:48: "TOKEN" of "env" in server "db": environment variable "CALLGATE_UNSET" is not set; set it, or write "${CALLGATE_UNSET:-default}"
    "#]],
    );
}

#[test]
fn a_configuration_that_is_not_json() {
    let bench = Workbench::empty();
    bench.write("callgate.json", "{ \"mcpServers\": ");
    check(
        &bench,
        &bench.callgate(&["tools"]),
        expect![[r#"
        exit code 2
        --- stdout
        --- stderr
        callgate: callgate.json:1:17: not valid JSON: expected value after colon in object property
    "#]],
    );
}

#[test]
fn a_missing_script() {
    let bench = Workbench::empty();
    check(
        &bench,
        &bench.callgate(&["run", "nope.ts"]),
        expect![[r#"
        exit code 2
        --- stdout
        --- stderr
        callgate: could not read nope.ts: No such file or directory (os error 2)
    "#]],
    );
}

#[test]
fn an_unknown_command() {
    let bench = Workbench::empty();
    check(
        &bench,
        &bench.callgate(&["rnu", "x.ts"]),
        expect![[r#"
        exit code 2
        --- stdout
        --- stderr
        error: unrecognized subcommand 'rnu'

        Usage: callgate [OPTIONS] <COMMAND>

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn a_limit_that_is_no_time() {
    let bench = Workbench::empty();
    check(
        &bench,
        &bench.callgate(&["run", "-", "--timeout", "soon"]),
        expect![[r#"
            exit code 2
            --- stdout
            --- stderr
            error: invalid value 'soon' for '--timeout <TIME>': "soon" is not a duration; write a number and ms, s, m or h, such as "500ms" or "2s"

            For more information, try '--help'.
        "#]],
    );
}

#[test]
fn less_memory_than_a_script_needs() {
    let bench = Workbench::with_config(json!({ "limits": { "memory": "8MiB" } }));
    check(
        &bench,
        &bench.callgate(&["run", "-"]),
        expect![[r#"
        exit code 2
        --- stdout
        --- stderr
        callgate: callgate.json:1:21: "memory" in "limits": "8MiB" is too little memory; a script needs "16MiB" at least
    "#]],
    );
    let flag = bench.callgate(&["run", "-", "--memory", "15MiB"]);
    check(
        &bench,
        &flag,
        expect![[r#"
        exit code 2
        --- stdout
        --- stderr
        error: invalid value '15MiB' for '--memory <SIZE>': "15MiB" is too little memory; a script needs "16MiB" at least

        For more information, try '--help'.
    "#]],
    );
}

/// What was done, is done: this is no usage error, after which nothing was.
#[test]
fn output_that_cannot_be_written() {
    let bench = Workbench::empty();
    bench.write("script.ts", "return 'done'");
    let full = std::fs::File::create("/dev/full").expect("a device");
    let ran = bench
        .command(&["run", "script.ts"])
        .stdout(full)
        .output()
        .expect("it runs");
    assert_eq!(
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr)),
        (
            Some(1),
            "callgate: could not write to standard output: No space left on device (os error 28)\n"
                .into()
        )
    );
}

/// No `--allow` lifts a rule that denies for some arguments.
#[test]
fn what_may_be_denied_needs_no_flag() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": { "deny": [
            { "tool": "ticketing_createIssue", "arguments": [{ "at": "/title", "equals": "secret" }] },
        ] },
    }));
    bench.write("script.ts", "await ticketing_createIssue({ title: 'x' })");
    let flags = ["check", "script.ts", "--allow", "ticketing_createIssue"];
    check(
        &bench,
        &bench.callgate(&flags),
        expect![[r#"
            exit code 0
            --- stdout
            ticketing_createIssue (line 1): denied for some arguments, by rule "ticketing_createIssue" (/title = "secret") in permissions.deny
            --- stderr
        "#]],
    );
    check(
        &bench,
        &bench.callgate(&flags[..2]),
        expect![[r#"
            exit code 0
            --- stdout
            ticketing_createIssue (line 1): needs approval: no rule matches
            to run it unattended: --allow ticketing_createIssue
            --- stderr
        "#]],
    );
}

#[test]
fn an_allowed_pattern_that_matches_nothing() {
    let bench = ticketing();
    check(
        &bench,
        &bench.run("return 1", &["--allow", "tickting_*"]),
        expect![[r#"
            exit code 0
            --- stdout
            1
            --- stderr
            warning: rule "tickting_*" in --allow matches no tool; the nearest is "ticketing_createIssue"
        "#]],
    );
}

/// Nobody was asked, so no ledger says so.
#[test]
fn what_yes_allowed_is_told_as_that() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
    }));
    let script = "await ticketing_createIssue({ title: 'x' })";
    let report = bench.report(script, &["--yes", "--ledger", "calls.jsonl"]);
    let decision = &report["calls"][0]["decision"];
    assert_eq!(
        decision,
        "needs approval: no rule matches, and --yes allows it"
    );
    let ledger = std::fs::read_to_string(bench.path().join("calls.jsonl")).expect("a ledger");
    let before: serde_json::Value =
        serde_json::from_str(ledger.lines().next().expect("a line")).expect("JSON");
    assert_eq!(before["decision"], *decision, "{before:#}");
}

#[test]
fn a_call_warns_of_what_matches_nothing() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": { "allow": ["ticketing_list*"], "deny": ["tickting_*"] },
        "toolLabels": { "ticketing_delete*": ["private"] },
        "flows": [{ "from": "crm", "to": "*", "action": "deny" }],
    }));
    check(
        &bench,
        &bench.callgate(&["call", "ticketing_listIssues", "{}"]),
        expect![[r#"
            exit code 0
            --- stdout
            {"issues":[]}
            --- stderr
            warning: rule "tickting_*" in permissions.deny matches no tool; the nearest is "ticketing_createIssue"
            warning: the rule from "crm" to "*" in flows matches nothing: from "crm": there is no such server or tool
            warning: label "private" of "ticketing_delete*" in toolLabels is on no tool
        "#]],
    );
}

#[test]
fn an_allowed_pattern_that_is_none() {
    let bench = ticketing();
    check(
        &bench,
        &bench.run("return 1", &["--allow", "ticketing-*"]),
        expect![[r#"
            exit code 2
            --- stdout
            --- stderr
            callgate: --allow: pattern "ticketing-*" can never match: generated names have "_" in place of "-"; did you mean "ticketing_*"?
        "#]],
    );
}

#[test]
fn a_typo_in_a_tools_name() {
    let bench = ticketing();
    check(
        &bench,
        &bench.run("await ticketing_createIsue({ title: 'a' })", &[]),
        expect![[r#"
            exit code 1
            --- stdout
            --- stderr
            error: cannot find name `ticketing_createIsue`; did you mean `ticketing_createIssue`?
              --> stdin.ts:1:7
              1 | await ticketing_createIsue({ title: 'a' })
                |       ^
            error: 1 type error; nothing was run
            calls: none
        "#]],
    );
    check(
        &bench,
        &bench.callgate(&["types", "ticketing_createIsue"]),
        expect![[r#"
            exit code 2
            --- stdout
            --- stderr
            callgate: no tool is named "ticketing_createIsue"; did you mean "ticketing_createIssue"?; `callgate tools` lists those there are
        "#]],
    );
    check(
        &bench,
        &bench.callgate(&["call", "ticketing_createIsue", "{}"]),
        expect![[r#"
            exit code 2
            --- stdout
            --- stderr
            callgate: no tool is named "ticketing_createIsue"; did you mean "ticketing_createIssue"?; `callgate tools` lists those there are
        "#]],
    );
}

#[test]
fn a_tool_called_by_hand() {
    let bench = ticketing();
    let ran = bench.callgate(&["call", "ticketing_createIssue", "{\"title\": \"By hand\"}"]);
    check(
        &bench,
        &ran,
        expect![[r#"
        exit code 0
        --- stdout
        {"issueId":"ISSUE-1","url":"https://tickets.example/ISSUE-1","title":"By hand","body":"","priority":"medium"}
        --- stderr
    "#]],
    );
    check(
        &bench,
        &bench.callgate(&["call", "ticketing_createIssue", "{}"]),
        expect![[r#"
            exit code 1
            --- stdout
            --- stderr
            callgate: ticketing.createIssue failed: createIssue cannot read its arguments: missing field `title`
        "#]],
    );
    check(
        &bench,
        &bench.callgate(&["call", "ticketing_createIssue", "[1]"]),
        expect![[r#"
            exit code 2
            --- stdout
            --- stderr
            callgate: the arguments must be a JSON object, such as '{"path": "README.md"}'
        "#]],
    );
    check(
        &bench,
        &bench.callgate(&["call", "ticketing_createIssue", "{"]),
        expect![[r#"
            exit code 2
            --- stdout
            --- stderr
            callgate: the arguments are not JSON: EOF while parsing an object at line 1 column 1
        "#]],
    );
}

#[test]
fn tools_are_listed_by_server() {
    let bench = Workbench::new(json!({
        "ticketing": fixture("callgate-demo-ticketing", &[]),
        "logging": fixture("callgate-demo-logging", &[]),
    }));
    check(
        &bench,
        &bench.callgate(&["tools"]),
        expect![[r#"
        exit code 0
        --- stdout
        ticketing
          ticketing_createIssue  File an issue and get its id.
          ticketing_listIssues  Get every issue filed so far, oldest first.
        logging
          logging_getLogs  Get the shop's log entries, oldest first.
        --- stderr
    "#]],
    );
}

#[test]
fn the_declarations_of_one_tool() {
    let bench = Workbench::new(json!({ "logging": fixture("callgate-demo-logging", &[]) }));
    check(
        &bench,
        &bench.callgate(&["types", "logging_getLogs"]),
        expect![[r#"
            exit code 0
            --- stdout
            /** Of one call. Past `timeoutMs` it throws McpTimeoutError. */
            type CallOptions = { signal?: AbortSignal; timeoutMs?: number };
            declare namespace mcp {
              /** Calls a tool by the name of its function. */
              function callTool<T = unknown>(name: string, input?: object, options?: CallOptions): Promise<T>;
              /** Hands an image, audio or resource to the caller: an `unknown` result, or MCP content blocks. */
              function emit(content: unknown): void;
              /** The text of an `unknown` result; throws if it has none. */
              function text(result: unknown): string;
              /** An `unknown` result as a value: its text parsed, or what is a value already. `T` is taken on trust. */
              function json<T = any>(result: unknown): T;
              /** A tool that was found. */
              type FoundTool = { name: string; server: string; summary?: string; declaration?: string };
              /** A tool and its JSON Schemas. */
              type ToolDetails = {
                name: string;
                server: string;
                tool: string;
                description?: string;
                inputSchema: any;
                outputSchema?: any;
              };
              /** Finds tools by what they do, the best first. Call them by `callTool(tool.name, input)`. */
              function searchTools(
                query: string,
                options?: CallOptions & {
                  /** How much is said of each tool; default: "summaries". */
                  detail?: "names" | "summaries" | "signatures" | "full";
                  limit?: number;
                  server?: string;
                  by?: "auto" | "words" | "regex" | "vectors" | "hybrid" | "model";
                },
              ): Promise<{ tools: FoundTool[]; searched: number; notes: string[] }>;
              /** Declarations and schemas of tools by the names of their functions. */
              function getToolDetails(
                names: string | string[],
                options?: CallOptions,
              ): Promise<{ declarations: string; tools: ToolDetails[]; unknown: { name: string; near?: string }[] }>;
              /** Has a small model put a value (an array, for many) into a form: a JSON Schema, or a type as text such as "{ id: number }". */
              function extract<T = any>(value: unknown, schema: object | string, options?: CallOptions): Promise<T>;
            }
            /** A tool call that did not give a result. */
            declare class McpError extends Error {
              /** The name of the function. */
              readonly tool: string;
              readonly server?: string;
            }
            /** The tool ran and reported an error. */
            declare class McpToolError extends McpError {
              readonly server: string;
              readonly content: unknown;
              readonly structuredContent?: unknown;
              readonly retryable: boolean;
            }
            /** The server could not be asked, or did not answer as the protocol says. */
            declare class McpProtocolError extends McpError {
              readonly code: number;
              readonly data?: unknown;
              /** It did not reach the server, or can be called twice without harm. */
              readonly retryable: boolean;
            }
            /** The server did not answer in time. */
            declare class McpTimeoutError extends McpError {
              readonly retryable: boolean;
            }
            /** The call was not permitted. */
            declare class McpDeniedError extends McpError {
              /** Who decided. */
              readonly because: string;
              /** The rule that decided, as it is written, if one did. */
              readonly rule?: unknown;
              /** Where that rule is written. */
              readonly writtenIn?: string;
              /** What the person who runs the script can do about it. */
              readonly advice?: string;
            }
            /** A dry run did not make the call. */
            declare class McpDryRunError extends McpError {
              /** What the rules say of the call. */
              readonly decision: string;
            }
            /** `mcp.extract` has no value that fits. */
            declare class McpExtractError extends McpError {
              readonly reason: "schema" | "value" | "limit" | "loop" | "unavailable" | "invalid" | "timeout";
              /** For "invalid": what was wrong with the model's last answer. */
              readonly problems: string[];
            }

            /** One line of the log */
            type LogEntry = {
             /** date-time */ timestamp: string;
             level: "debug" | "info" | "warn" | "error";
             service: string;
             message: string;
            };
            /** Get the shop's log entries, oldest first. */
            declare function logging_getLogs(input?: {
             /** Oldest moment of interest, in milliseconds since the Unix epoch; without it, from the start of the log */ since?: number;
             /** First moment no longer of interest, in milliseconds since the Unix epoch; without it, to the end of the log */ until?: number;
             /** Only entries of this level */ level?: "debug" | "info" | "warn" | "error";
             /** Only entries of this service */ service?: string;
             /** At most this many entries, oldest first; without it, all (integer, ≥ 0) */ limit?: number;
            }, options?: CallOptions): Promise<{ entries: LogEntry[] }>;
            --- stderr
        "#]],
    );
}

#[test]
fn tools_for_a_provider() {
    let bench = ticketing();
    let flags = [
        "export",
        "--format",
        "gemini",
        "--defer",
        "*_createIssue",
        "nothing_*",
    ];
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
            callgate: no tool is matched by nothing_*
            callgate: gemini has no search of its own, so every tool is loaded at once
        "#]],
    );
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
            exit code 1
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

#[test]
fn check_tells_what_a_script_may_call_besides() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": { "allow": ["ticketing_*"] },
    }));
    let checked = |script: &str, expected: Expect| {
        bench.write("script.ts", script);
        check(&bench, &bench.callgate(&["check", "script.ts"]), expected);
    };
    checked(
        "return await mcp.callTool('nope', {})",
        expect![[r#"
        exit code 1
        --- stdout
        names no tool
        line 1: no tool is named "nope"
        --- stderr
    "#]],
    );
    checked(
        "return await mcp.extract(await mcp.callTool('mcp.searchTools', { query: '' }), 'string')",
        expect![[r#"
            exit code 0
            --- stdout
            names no tool
            --- stderr
        "#]],
    );
    checked(
        "return Object.keys(globalThis).length",
        expect![[r#"
        exit code 0
        --- stdout
        names no tool
        uses the global object as a value: it may call any tool
        --- stderr
    "#]],
    );
    checked(
        "const name = 'a'; return await mcp.callTool(name)",
        expect![[r#"
            exit code 0
            --- stdout
            names no tool
            uses mcp as a value, or mcp.callTool with a computed name: it may call any tool
            --- stderr
        "#]],
    );
    checked(
        "const { ticketing_listIssues: list } = globalThis; return await list({})",
        expect![[r#"
            exit code 0
            --- stdout
            ticketing_listIssues (line 1): allowed by rule "ticketing_*" in permissions.allow
            --- stderr
        "#]],
    );
}

#[test]
fn tools_are_on_the_global_object() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": { "allow": ["ticketing_*"] },
    }));
    for list in [
        "const { ticketing_listIssues: list } = globalThis;",
        "const list = (globalThis as any).ticketing_listIssues;",
        "const all = globalThis; const list = all.ticketing_listIssues;",
        "const list = (globalThis as any)['ticketing' + '_listIssues'];",
        "const list = Reflect.get(globalThis, 'ticketing_listIssues');",
    ] {
        let ran = bench.run(&format!("{list} return await list({{}})"), &[]);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (0, "{\"issues\":[]}\n"),
            "{list} {ran:#?}"
        );
    }
    // All of them, and no more than the run may use.
    let all = bench.run("return Object.keys(Object.getOwnPropertyDescriptors(globalThis)).filter(name => name.startsWith('ticketing_')).length", &[]);
    assert_eq!((all.code, all.stdout.as_str()), (0, "2\n"), "{all:#?}");
}

#[test]
fn a_call_that_no_rule_allows_is_denied_without_a_terminal() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
    }));
    let script = "console.log('before');\nawait ticketing_createIssue({ title: 'a' });";
    let ran = bench.run(script, &[]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let ran = bench.run(script, &["--yes"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "before\n"), "{ran:#?}");
    let ran = bench.run(script, &["--allow", "ticketing_*"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "before\n"), "{ran:#?}");
}

#[test]
fn deny_wins_over_every_flag() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "ticketing": fixture("callgate-demo-ticketing", &[]) },
        "permissions": { "deny": ["ticketing_create*"] },
    }));
    let script = "await ticketing_createIssue({ title: 'a' })";
    let ran = bench.run(script, &["--yes", "--allow", "ticketing_createIssue"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert!(ran.stderr.contains("permissions.deny"), "{ran:#?}");
}

/// `head` takes one line and goes: no panic, no message.
#[test]
fn a_reader_that_goes_away() {
    let bench = Workbench::empty();
    bench.write(
        "script.ts",
        "for (let i = 0; i < 100_000; i++) console.log(i)",
    );
    let mut child = bench
        .command(&["run", "script.ts", "--output", "64MiB"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start callgate");
    let mut stdout = child.stdout.take().expect("a piped stdout");
    let mut first = [0; 2];
    stdout.read_exact(&mut first).expect("the first line");
    drop(stdout);
    let ran = Ran::from(child.wait_with_output().expect("the end"));
    assert_eq!((&first, ran.code, ran.stderr.as_str()), (b"0\n", 0, ""));
}

#[test]
fn output_over_the_limit_keeps_head_and_tail() {
    let bench = Workbench::empty();
    let script = "for (let i = 0; i < 1000; i++) console.log('line', i, 'ü'.repeat(5))";
    check(
        &bench,
        &bench.run(script, &["--output", "200B"]),
        expect![[r#"
            exit code 0
            --- stdout
            [19691 of 19890 bytes printed are cut: the beginning and the end follow]
            line 0 üüüüü
            line 1 üüüüü
            line 2 üüüüü
            line 3 üüüüü
            line 4 üüüüü
            line 5 ü
            […]
            line 995 üüüüü
            line 996 üüüüü
            line 997 üüüüü
            line 998 üüüüü
            line 999 üüüüü
            --- stderr
        "#]],
    );
}

#[test]
fn completions_are_written_for_each_shell() {
    let bench = Workbench::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = bench.callgate(&["completions", shell]);
        assert!(
            ran.code == 0 && ran.stdout.contains("callgate"),
            "{shell}: {ran:#?}"
        );
    }
}

#[test]
fn each_end_has_its_exit_code() {
    let bench = Workbench::new(json!({ "odd": odd("flaky"), "exits": odd("exits") }));
    for (script, code) in [
        ("return 1", 0),
        ("throw new Error('x')", 1),
        ("const = 1", 1),
        ("await odd_fails({})", 1),
        ("while (true) {}", 4),
        ("await exits_x({})", 5),
    ] {
        let ran = bench.run(script, &["--timeout", "300ms"]);
        assert_eq!(ran.code, code, "{script}: {ran:#?}");
    }
    assert_eq!(bench.callgate(&["run"]).code, 2);
}

/// A server that takes an hour to start is not started for a script that
/// cannot run.
#[test]
fn a_script_that_cannot_run_is_refused_before_servers_start() {
    let mut silent = odd("silent");
    silent["startTimeout"] = json!("1h");
    let bench = Workbench::new(json!({ "silent": silent }));
    bench.write("script.ts", "const = 1");
    assert_eq!(bench.callgate(&["run", "script.ts"]).code, 1);
    assert_eq!(bench.callgate(&["check", "script.ts"]).code, 1);
}
