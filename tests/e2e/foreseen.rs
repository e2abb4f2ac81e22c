//! What the command line lists of tools, and what it foresees of a script.

use callgate_tests::{Workbench, fixture};
use expect_test::expect;
use serde_json::json;

use crate::cli::{check, ticketing};

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
              /** The rule that decided, as it is written; null if none did. */
              readonly rule: unknown;
              /** Where that rule is written. */
              readonly writtenIn: string | null;
              /** What the person who runs the script can do about it. */
              readonly advice: string | null;
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
