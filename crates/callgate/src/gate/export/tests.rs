//! Arrays of two tools for each provider.

use callgate_catalog::{Catalog, ToolDefinition};
use expect_test::{Expect, expect};

use super::*;

fn check(format: ExportFormat, defer: bool, expected: &Expect) {
    let entry = |name: &str| json!({ "name": name, "description": format!("does {name}"), "inputSchema": { "type": "object" } });
    let parse =
        |server: &str, name: &str| ToolDefinition::parse(server, &entry(name)).expect("a tool");
    let catalog = Catalog::build(vec![
        parse("crm", "find"),
        parse("crm", "merge"),
        parse("b$", "x"),
    ]);
    let exported = exported(
        &catalog,
        format,
        |_| true,
        |function| defer && function != "crm_find",
    );
    let mut text = exported.tools.as_array().map(|tools| {
        let lines = tools.iter().map(|tool| tool.to_string() + "\n");
        lines.collect::<String>()
    });
    for (name, function) in &exported.renamed {
        text.get_or_insert_default()
            .push_str(&format!("{name} is {function}\n"));
    }
    expected.assert_eq(&text.unwrap_or_default());
    assert_eq!(exported.notes, Vec::<String>::new());
}

#[test]
fn tools_are_exported_for_anthropic() {
    check(
        ExportFormat::Anthropic,
        false,
        &expect![[r#"
        {"name":"crm_find","description":"does find","input_schema":{"type":"object"}}
        {"name":"crm_merge","description":"does merge","input_schema":{"type":"object"}}
        {"name":"b__x_b75cd8e9","description":"does x","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}
        b__x_b75cd8e9 is b$_x
    "#]],
    );
    check(
        ExportFormat::Anthropic,
        true,
        &expect![[r#"
        {"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}
        {"name":"crm_find","description":"does find","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}
        {"name":"crm_merge","description":"does merge","input_schema":{"type":"object"},"defer_loading":true}
        {"name":"b__x_b75cd8e9","description":"does x","input_schema":{"type":"object"},"defer_loading":true}
        b__x_b75cd8e9 is b$_x
    "#]],
    );
}

#[test]
fn tools_are_exported_for_openai() {
    check(
        ExportFormat::OpenAi,
        false,
        &expect![[r#"
        {"type":"function","name":"crm_find","description":"does find","parameters":{"type":"object","properties":{}},"strict":false}
        {"type":"function","name":"crm_merge","description":"does merge","parameters":{"type":"object","properties":{}},"strict":false}
        {"type":"function","name":"b__x_b75cd8e9","description":"does x","parameters":{"type":"object","properties":{}},"strict":false}
        b__x_b75cd8e9 is b$_x
    "#]],
    );
    check(
        ExportFormat::OpenAi,
        true,
        &expect![[r#"
        {"type":"tool_search"}
        {"type":"function","name":"crm_find","description":"does find","parameters":{"type":"object","properties":{}},"strict":false}
        {"type":"namespace","name":"crm","description":"tools of the server crm (1)","tools":[{"type":"function","name":"crm_merge","description":"does merge","parameters":{"type":"object","properties":{}},"strict":false,"defer_loading":true}]}
        {"type":"namespace","name":"b__91140f58","description":"tools of the server b$ (1)","tools":[{"type":"function","name":"b__x_b75cd8e9","description":"does x","parameters":{"type":"object","properties":{}},"strict":false,"defer_loading":true}]}
        b__x_b75cd8e9 is b$_x
    "#]],
    );
}

#[test]
fn tools_are_exported_for_gemini() {
    check(
        ExportFormat::Gemini,
        true,
        &expect![[r#"
        {"functionDeclarations":[{"name":"crm_find","description":"does find","parametersJsonSchema":{"type":"object"}},{"name":"crm_merge","description":"does merge","parametersJsonSchema":{"type":"object"}},{"name":"b__x_b75cd8e9","description":"does x","parametersJsonSchema":{"type":"object"}}]}
        b__x_b75cd8e9 is b$_x
    "#]],
    );
}
