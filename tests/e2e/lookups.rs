//! What scripts look up: tools by what they do, and what is known of them.

use callgate_tests::{Workbench, fixture};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn bench() -> Workbench {
    Workbench::new(json!({
        "logging": fixture("callgate-demo-logging", &[]),
        "ticketing": fixture("callgate-demo-ticketing", &[]),
    }))
}

/// Runs a script that must pass the type check and complete.
fn completed(bench: &Workbench, script: &str) -> Value {
    let report = bench.report(script, &["--check=require"]);
    assert_eq!(report["status"], "completed", "{report:#}");
    report
}

#[test]
fn a_tool_that_was_looked_up_can_be_called() {
    let report = completed(
        &bench(),
        "const { tools } = await mcp.searchTools('createIssue', { limit: 3 });
         const tool = tools[0];
         if (!tool) throw new Error('nothing was found');
         const { declarations, unknown } = await mcp.getToolDetails(tool.name);
         if (!declarations.includes(tool.name) || unknown.length) throw new Error(declarations);
         const input = { title: 'found', body: 'by looking', priority: 'low' };
         const made = await mcp.callTool<{ id: string }>(tool.name, input);
         return [tool.name, typeof made];",
    );
    assert_eq!(
        report["value"]["json"],
        json!(["ticketing_createIssue", "object"]),
        "{report:#}"
    );
    // Lookups are counted, and are no calls.
    assert_eq!(report["lookups"], 2, "{report:#}");
    let called: Vec<&Value> = report["calls"].as_array().into_iter().flatten().collect();
    assert_eq!(called.len(), 1, "{report:#}");
    assert_eq!(called[0]["function"], "ticketing_createIssue");
}

#[test]
fn levels_of_detail() {
    let script = |detail: &str| {
        format!(
            "const found = await mcp.searchTools('createIssue', {{ detail: {detail:?}, limit: 1 }});
             console.log(found.tools[0]);"
        )
    };
    let check = |detail: &str, expected: Expect| {
        let report = completed(&bench(), &script(detail));
        expected.assert_eq(report["output"]["text"].as_str().unwrap_or_default());
    };
    check(
        "names",
        expect![[r#"
        { name: 'ticketing_createIssue', server: 'ticketing' }
    "#]],
    );
    check(
        "summaries",
        expect![[r#"
        {
          name: 'ticketing_createIssue',
          server: 'ticketing',
          summary: 'File an issue and get its id.'
        }
    "#]],
    );
    check(
        "signatures",
        expect![[r#"
        {
          name: 'ticketing_createIssue',
          server: 'ticketing',
          summary: 'File an issue and get its id.',
          declaration: 'type Issue = {\n issueId: string;\n url: string;\n title: string;\n body: string;\n priority: "low" | "medium" | "high";\n};\ndeclare function ticketing_createIssue(input: { title: string; body?: string; priority?: "low" | "medium" | "high" }, options?: CallOptions): Promise<Issue>;\n'
        }
    "#]],
    );
}

#[test]
fn details_of_names_that_are_none() {
    let report = completed(
        &bench(),
        "const { tools, unknown } = await mcp.getToolDetails(['ticketing_createIssu', 'x', 'x']);
         return { tools, unknown };",
    );
    assert_eq!(
        report["value"]["json"],
        json!({
            "tools": [],
            "unknown": [
                { "name": "ticketing_createIssu", "near": "ticketing_createIssue" },
                { "name": "x", "near": null },
            ],
        }),
    );
}

#[test]
fn what_makes_no_lookup() {
    let check = |call: &str, expected: Expect| {
        let report = bench().report(
            &format!(
                "try {{ await {call}; }} catch (error) {{
                   if (!(error instanceof McpProtocolError)) throw error;
                   return `${{error.tool}} ${{error.code}} ${{error.message}}`;
                 }}"
            ),
            &["--check=off"],
        );
        expected.assert_eq(report["value"]["text"].as_str().unwrap_or_default());
    };
    check(
        "mcp.searchTools()",
        expect!["mcp.searchTools -32602 mcp.searchTools: missing field `query`"],
    );
    check(
        "mcp.searchTools(5)",
        expect![
            "mcp.searchTools -32602 mcp.searchTools: invalid type: integer `5`, expected a string"
        ],
    );
    check(
        "mcp.searchTools('x'.repeat(5000))",
        expect![
            "mcp.searchTools -32602 mcp.searchTools: the query has 5000 bytes, over the limit of 4096"
        ],
    );
    check(
        "mcp.searchTools('x', { limit: 1000 })",
        expect!["mcp.searchTools -32602 mcp.searchTools: the limit must be 1 to 100"],
    );
    check(
        "mcp.searchTools('x', { limit: -1 })",
        expect![
            "mcp.searchTools -32602 mcp.searchTools: invalid value: integer `-1`, expected usize"
        ],
    );
    check(
        "mcp.searchTools('x', { detail: 'all' })",
        expect![
            "mcp.searchTools -32602 mcp.searchTools: `detail` must be one of names, summaries, signatures and full"
        ],
    );
    check(
        "mcp.searchTools('x', { by: 'luck' })",
        expect![
            "mcp.searchTools -32602 mcp.searchTools: `by` must be one of auto, words, regex, vectors, hybrid and model"
        ],
    );
    check(
        "mcp.getToolDetails()",
        expect!["mcp.getToolDetails -32602 mcp.getToolDetails: missing field `names`"],
    );
    check(
        "mcp.getToolDetails([1])",
        expect![
            "mcp.getToolDetails -32602 mcp.getToolDetails: `names` must be a string or an array of strings"
        ],
    );
    check(
        "mcp.getToolDetails(Array(200).fill('x'))",
        expect![
            "mcp.getToolDetails -32602 mcp.getToolDetails: 200 names are more than the 100 of one call"
        ],
    );
    check(
        "mcp.callTool('mcp.searchTools', { q: 1 })",
        expect![
            "mcp.searchTools -32602 mcp.searchTools: unknown field `q`, expected one of `query`, `detail`, `limit`, `server`, `by`"
        ],
    );
}

#[test]
fn a_run_has_so_many_lookups() {
    let report = bench().report(
        "let made = 0;
         try {
           for (;;) { await mcp.searchTools('x', { detail: 'names' }); made++; }
         } catch (error) {
           if (!(error instanceof McpProtocolError)) throw error;
           return [made, error.code, error.message];
         }",
        &["--check=off"],
    );
    assert_eq!(
        report["value"]["json"],
        json!([
            100,
            -32053,
            "mcp.searchTools: a run may look up 100 times, and this one has; search for more at \
             once and keep what was found"
        ]),
        "{report:#}"
    );
    assert_eq!(report["lookups"], 100);
    assert_eq!(report["calls"], json!([]));
}
