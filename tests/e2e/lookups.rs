//! What scripts look up: tools by what they do, and what is known of them.

use callgate_tests::{Workbench, demo_ticketing};
use serde_json::{Value, json};

/// Runs a script that must pass the type check and complete.
fn completed(bench: &Workbench, script: &str) -> Value {
    let report = bench.report(script, &["--check=require"]);
    assert_eq!(report["status"], "completed", "{report:#}");
    report
}

#[test]
fn a_tool_that_was_looked_up_can_be_called() {
    let report = completed(
        &Workbench::demo(),
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

/// Scripts and configurations may have the names of tools with the server's name twice.
#[test]
fn a_long_name_calls_the_tool_and_rules_go_by_it() {
    let bench = Workbench::new(json!({ "list": demo_ticketing() }));
    let report = completed(
        &bench,
        "const { tools } = await mcp.searchTools('issues', { detail: 'names' });
         const { declarations } = await mcp.getToolDetails('list_listIssues');
         const short = await list_issues();
         const long = await list_listIssues({});
         const named = await mcp.callTool('list_listIssues', {});
         const same = [long, named].every(it => JSON.stringify(it) === JSON.stringify(short));
         return [tools.map(tool => tool.name), declarations.includes('list_issues('), same];",
    );
    let names = json!(["list_createIssue", "list_issues"]);
    assert_eq!(
        report["value"]["json"],
        json!([names, true, true]),
        "{report:#}"
    );
    for call in report["calls"].as_array().expect("calls") {
        assert_eq!(call["function"], "list_issues");
    }
    let call =
        |flags: &[&str]| bench.callgate(&[&["call", "list_listIssues", "{}"], flags].concat());
    assert_eq!(call(&[]).code, 0);
    for rule in ["list_listIssues", "list_issues", "list_list*"] {
        let denied = call(&["--deny", rule]);
        assert_ne!(denied.code, 0, "{rule}");
        assert!(denied.stderr.contains(rule), "{}", denied.stderr);
    }
    let asked = ["--ask", "*", "--allow"];
    assert_ne!(call(&asked[..2]).code, 0);
    for rule in ["list_listIssues", "list_issues"] {
        assert_eq!(call(&[&asked[..], &[rule]].concat()).code, 0, "{rule}");
    }
}
