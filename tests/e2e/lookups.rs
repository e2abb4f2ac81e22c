//! Look-ups by scripts: searches for tools, and the tools' details.

use callgate_tests::Workbench;
use serde_json::{Value, json};

#[test]
fn tool_found_by_search_can_be_called() {
    let report = Workbench::demo().report(
        "const { tools } = await mcp.searchTools('createIssue', { limit: 3 });
         const tool = tools[0];
         if (!tool) throw new Error('nothing was found');
         const { declarations, unknown } = await mcp.getToolDetails(tool.name);
         if (!declarations.includes(tool.name) || unknown.length) throw new Error(declarations);
         const input = { title: 'found', body: 'by looking', priority: 'low' };
         const made = await mcp.callTool<{ id: string }>(tool.name, input);
         return [tool.name, typeof made];",
        &["--check=require"],
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
fn denied_tool_takes_no_place_under_the_limit() {
    for (query, denied) in [
        ("create an issue", "ticketing_createIssue"),
        ("list issues", "ticketing_listIssues"),
    ] {
        let script = format!("return (await mcp.searchTools({query:?}, {{ limit: 1 }})).tools");
        let report = Workbench::demo().report(&script, &["--deny", denied]);
        let found = &report["value"]["json"];
        assert_eq!(found.as_array().map(Vec::len), Some(1), "{report:#}");
        assert_ne!(found[0]["name"], denied, "{report:#}");
    }
}
