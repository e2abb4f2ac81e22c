//! Real and hostile catalogs: everything generates, deterministically and in bounds.

use callgate_typegen::{Detail, Reason, ToolSchema, generate};
use serde_json::{Map, Value, json};

use crate::{corpus, declare};

/// Generates one tool with this input and says why it was widened.
fn reasons(input: &Value) -> Vec<Reason> {
    let schema = ToolSchema {
        server: "server",
        tool: "tool",
        function: "server_tool",
        title: None,
        description: None,
        input,
        output: None,
    };
    let declarations = generate(&[schema]);
    assert!(declarations.text(Detail::Full, |_| true).len() < 200_000);
    let found = declarations.degradations().iter();
    found
        .map(|degradation| degradation.reason.clone())
        .collect()
}

#[test]
fn the_github_server_loses_nothing() {
    let Some(tools) = corpus() else { return };
    let declarations = declare("server", &tools);
    let text = declarations.text(Detail::Full, |_| true);
    assert_eq!(declarations.degradations(), []);
    assert_eq!(text.matches("declare function ").count(), 117);
    assert_eq!(declare("server", &tools).text(Detail::Full, |_| true), text);
}

#[test]
fn partial_declarations_contain_only_needed_types() {
    let tool = |name: &str, title: &str| {
        let input = json!({
            "type": "object",
            "properties": { "v": { "type": "object", "title": title, "properties": { "x": {} } } },
        });
        json!({ "name": name, "inputSchema": input })
    };
    let declarations = declare("server", &[tool("a", "Ore"), tool("b", "Metal")]);
    assert_eq!(
        declarations.text(Detail::Full, |function| function == "server_b"),
        "type Metal = { x?: unknown };\n\
         declare function server_b(input?: { v?: Metal }, options?: CallOptions): Promise<unknown>;\n"
    );
    assert_eq!(declarations.text(Detail::Full, |_| false), "");
}

#[test]
fn a_schema_nested_very_deep_is_cut() {
    for titled in [false, true] {
        let mut schema = json!({});
        for _ in 0..100_000 {
            let mut level = Map::from_iter([("type".to_owned(), json!("object"))]);
            if titled {
                level.insert("title".to_owned(), json!("Level"));
            }
            let properties = Map::from_iter([("p".to_owned(), schema)]);
            level.insert("properties".to_owned(), Value::Object(properties));
            schema = Value::Object(level);
        }
        let reasons = reasons(&schema);
        // Taking a value this deep apart recurses, and is not under test.
        std::mem::forget(schema);
        assert_eq!(reasons, [Reason::TooDeep { limit: 48 }], "titled: {titled}");
    }
}

#[test]
fn references_do_not_multiply() {
    let mut definitions = Map::new();
    for level in 0..60 {
        let next = format!("#/$defs/L{}", level + 1);
        let both = json!({ "type": "array", "prefixItems": [{ "$ref": next }, { "$ref": next }] });
        definitions.insert(format!("L{level}"), both);
    }
    definitions.insert("L60".to_owned(), json!({ "type": "string" }));
    let schema = json!({
        "type": "object",
        "properties": { "x": { "$ref": "#/$defs/L0" } },
        "$defs": definitions,
    });
    assert_eq!(reasons(&schema), []);
}

#[test]
fn a_schema_of_too_many_parts_is_cut() {
    let property = |index| (format!("p{index}"), json!({ "type": "string" }));
    let properties: Map<String, Value> = (0..30_000).map(property).collect();
    let schema = json!({ "type": "object", "properties": properties });
    let (large, long) = (
        Reason::TooLarge { limit: 20_000 },
        Reason::TooLong { limit: 131_072 },
    );
    assert_eq!(reasons(&schema), [large, long]);
}

#[test]
fn long_lists_are_not_compared_name_by_name() {
    let names: Vec<String> = (0..40_000).map(|index| format!("n{index}")).collect();
    let values: Vec<String> = (0..40_000).map(|index| format!("v{index}")).collect();
    let dependent = names.iter().map(|name| (format!("d{name}"), json!([name])));
    let dependent: Map<String, Value> = dependent.collect();
    for schema in [
        json!({ "required": names, "dependentRequired": { "x": names, "y": values } }),
        json!({ "required": names, "dependentRequired": dependent }),
        json!({ "required": names, "not": { "required": values } }),
        json!({ "properties": { "p": { "enum": names, "not": { "enum": values } } } }),
        json!({ "type": "object", "oneOf": [{ "required": names }, { "required": values }] }),
        json!({ "type": "object", "oneOf": values.iter().map(|v| json!({ "required": [v] })).collect::<Vec<_>>() }),
        json!({ "propertyNames": { "enum": names }, "properties": { "n1": {} } }),
    ] {
        let mut schema = schema;
        schema["type"] = json!("object");
        reasons(&schema);
    }
}

#[test]
fn names_of_documents_inside_documents_are_bounded() {
    let mut schema = json!({ "$ref": "nowhere" });
    let with_items = |key: &str, value, items| {
        Value::Object(Map::from_iter([
            (key.to_owned(), value),
            ("items".to_owned(), items),
        ]))
    };
    for _ in 0..20_000 {
        schema = with_items("$id", json!("step/x"), schema);
    }
    let schema = with_items("properties", json!({ "a": { "$ref": "#a" } }), schema);
    let reasons = reasons(&schema);
    // Taking a value this deep apart recurses, and is not under test.
    std::mem::forget(schema);
    assert_eq!(reasons.len(), 2, "{reasons:?}");
}

#[test]
fn long_names_and_enumerations_are_replaced() {
    let name = "n".repeat(1_000_000);
    let schema = json!({ "type": "object", "properties": { name: {} } });
    assert_eq!(reasons(&schema), [Reason::TooLong { limit: 131_072 }]);
    let values: Vec<String> = (0..1_000).map(|index| format!("v{index}")).collect();
    let schema = json!({ "type": "object", "properties": { "e": { "enum": values } } });
    let (keyword, limit) = ("enum", 64);
    assert_eq!(reasons(&schema), [Reason::TooMany { keyword, limit }]);
}

#[test]
fn choices_are_not_multiplied_without_end() {
    let choice = |level: usize| {
        let branches = (0..10).map(|branch| {
            let key = format!("k{level}_{branch}");
            json!({ "type": "object", "properties": { key.clone(): {} }, "required": [key] })
        });
        json!({ "anyOf": branches.collect::<Vec<_>>() })
    };
    let expected = Reason::TooManyCombinations { limit: 1_000 };
    let choices: Vec<Value> = (0..12).map(choice).collect();
    let schema = json!({ "type": "object", "allOf": choices });
    assert_eq!(reasons(&schema), std::slice::from_ref(&expected));

    // The same by way of names, of which each leads to two.
    let mut definitions = Map::new();
    for level in 0..40 {
        let next = [format!("A{}", level + 1), format!("B{}", level + 1)];
        let next = next.map(|name| json!({ "$ref": format!("#/$defs/{name}") }));
        definitions.insert(format!("A{level}"), json!({ "anyOf": next }));
        let other = json!({ "anyOf": next, "required": ["b"] });
        definitions.insert(format!("B{level}"), other);
    }
    definitions.insert("A40".to_owned(), choice(40));
    definitions.insert("B40".to_owned(), choice(41));
    let schema = json!({ "$ref": "#/$defs/A0", "$defs": definitions });
    assert!(reasons(&schema).contains(&expected));
}

#[test]
fn long_reference_chains_do_not_widen_other_tools() {
    let chain = |end: &str| {
        let mut definitions = Map::new();
        for level in 0..100 {
            let next = json!({ "$ref": format!("#/$defs/L{}", level + 1) });
            let link = json!({ "type": "object", "properties": { "next": next } });
            definitions.insert(format!("L{level}"), link);
        }
        definitions.insert("L100".to_owned(), json!({ "type": end }));
        json!({ "$ref": "#/$defs/L0", "$defs": definitions })
    };
    let shared = json!({
        "type": "object",
        "properties": { "e": { "$ref": "#/$defs/Edge" } },
        "$defs": {
            "Edge": { "type": "object", "properties": { "to": { "$ref": "#/$defs/Vertex" } } },
            "Vertex": { "type": "object", "properties": { "out": { "$ref": "#/$defs/Edge" } } },
        },
    });
    let tools = [
        json!({ "name": "a", "inputSchema": chain("string") }),
        json!({ "name": "b", "inputSchema": chain("number") }),
        json!({ "name": "c", "inputSchema": shared }),
        json!({ "name": "d", "inputSchema": shared }),
    ];
    let declarations = declare("server", &tools);
    assert_eq!(
        declarations.text(Detail::Full, |function| ["server_c", "server_d"]
            .contains(&function)),
        "type Edge = { to?: Vertex };\n\
         type Vertex = { out?: Edge };\n\
         declare function server_c(input?: { e?: Edge }, options?: CallOptions): Promise<unknown>;\n\
         declare function server_d(input?: { e?: Edge }, options?: CallOptions): Promise<unknown>;\n"
    );
    let text = declarations.text(Detail::Full, |function| function == "server_a");
    for part in [
        "type ServerAL99 = { next?: string };",
        "type ServerAL0 = { next?: ServerAL1 };",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn ten_thousand_tools_are_declared() {
    let tools: Vec<Value> = (0..10_000)
        .map(|index| {
            let entry =
                json!({ "type": "object", "properties": { "x": { "const": index % 100 } } });
            let input = json!({
                "type": "object",
                "properties": { "e": { "$ref": "#/$defs/Entry" } },
                "$defs": { "Entry": entry },
            });
            json!({ "name": format!("t{index}"), "inputSchema": input })
        })
        .collect();
    let text = declare("server", &tools).text(Detail::Full, |_| true);
    assert_eq!(text.matches("declare function ").count(), 10_000);
    assert_eq!(text.matches("type ").count(), 100);
}
