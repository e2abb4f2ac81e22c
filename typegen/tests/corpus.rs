//! Real and hostile catalogs: everything generates, deterministically and in bounds.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails the test")]

use std::path::Path;

use callgate_typegen::names::assign;
use callgate_typegen::{Declarations, Detail, Reason, ToolSchema, generate};
use serde_json::{Map, Value, json};

/// Generates tools of one server, given as a server lists them.
fn declare(tools: &[Value]) -> Declarations {
    let name = |tool: &Value| tool["name"].as_str().unwrap_or("t").to_owned();
    let names: Vec<String> = tools.iter().map(name).collect();
    let functions = assign(names.iter().map(|name| ("server", name.as_str())));
    let schemas: Vec<ToolSchema<'_>> = tools
        .iter()
        .zip(&names)
        .map(|(raw, name)| ToolSchema {
            server: "server",
            tool: name,
            function: functions.function("server", name).unwrap(),
            title: raw["title"].as_str(),
            description: raw["description"].as_str(),
            input: &raw["inputSchema"],
            output: raw.get("outputSchema"),
        })
        .collect();
    generate(&schemas)
}

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
    let degradations = declarations.degradations().iter();
    degradations
        .map(|degradation| degradation.reason.clone())
        .collect()
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that skips says why")]
fn the_github_server_loses_nothing() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/corpus/github-mcp-server.tools.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: ../shared/corpus is not beside the checkout");
        return;
    };
    let list: Value = serde_json::from_str(&text).unwrap();
    let tools = list["tools"].as_array().unwrap();
    let declarations = declare(tools);
    let text = declarations.text(Detail::Full, |_| true);
    let found: Vec<String> = declarations
        .degradations()
        .iter()
        .map(|d| d.to_string())
        .collect();
    assert_eq!(found, [""; 0]);
    assert_eq!(text.matches("declare function ").count(), 117);
    assert_eq!(declare(tools).text(Detail::Full, |_| true), text);
}

#[test]
fn a_part_shows_only_what_it_needs() {
    let tool = |name: &str, title: &str| {
        let input = json!({
            "type": "object",
            "properties": { "v": { "type": "object", "title": title, "properties": { "x": {} } } },
        });
        json!({ "name": name, "inputSchema": input })
    };
    let declarations = declare(&[tool("a", "Ore"), tool("b", "Metal")]);
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
            let mut map = Map::new();
            map.insert("type".to_owned(), json!("object"));
            if titled {
                map.insert("title".to_owned(), json!("Level"));
            }
            let mut properties = Map::new();
            properties.insert("p".to_owned(), schema);
            map.insert("properties".to_owned(), Value::Object(properties));
            schema = Value::Object(map);
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
    let properties: Map<String, Value> = (0..30_000)
        .map(|index| (format!("p{index}"), json!({ "type": "string" })))
        .collect();
    let schema = json!({ "type": "object", "properties": properties });
    assert_eq!(
        reasons(&schema),
        [
            Reason::TooLarge { limit: 20_000 },
            Reason::TooLong { limit: 131_072 }
        ]
    );
}

#[test]
fn long_lists_are_not_compared_name_by_name() {
    let names: Vec<String> = (0..40_000).map(|index| format!("n{index}")).collect();
    let values: Vec<String> = (0..40_000).map(|index| format!("v{index}")).collect();
    let dependent: Map<String, Value> = names
        .iter()
        .map(|name| (format!("d{name}"), json!([name])))
        .collect();
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
        let map = schema.as_object_mut().unwrap();
        map.insert("type".to_owned(), json!("object"));
        reasons(&schema);
    }
}

#[test]
fn names_of_documents_inside_documents_are_bounded() {
    let mut schema = json!({ "$ref": "nowhere" });
    for _ in 0..20_000 {
        let mut map = Map::new();
        map.insert("$id".to_owned(), json!("step/x"));
        map.insert("items".to_owned(), schema);
        schema = Value::Object(map);
    }
    let mut root = Map::new();
    root.insert("properties".to_owned(), json!({ "a": { "$ref": "#a" } }));
    root.insert("items".to_owned(), schema);
    let schema = Value::Object(root);
    let reasons = reasons(&schema);
    // Taking a value this deep apart recurses, and is not under test.
    std::mem::forget(schema);
    assert_eq!(reasons.len(), 2, "{reasons:?}");
}

#[test]
fn declarations_too_long_are_replaced() {
    let name = "n".repeat(1_000_000);
    let schema = json!({ "type": "object", "properties": { name: {} } });
    assert_eq!(reasons(&schema), [Reason::TooLong { limit: 131_072 }]);
}

#[test]
fn enumerations_too_long_are_widened() {
    let values: Vec<String> = (0..1_000).map(|index| format!("v{index}")).collect();
    let schema = json!({ "type": "object", "properties": { "e": { "enum": values } } });
    let limit = 64;
    let keyword = "enum";
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
fn long_chains_of_references_spoil_no_other_tools_types() {
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
    let declarations = declare(&tools);
    assert_eq!(
        declarations.text(Detail::Full, |function| function == "server_c"
            || function == "server_d"),
        "type Edge = { to?: Vertex };\n\
         type Vertex = { out?: Edge };\n\
         declare function server_c(input?: { e?: Edge }, options?: CallOptions): Promise<unknown>;\n\
         declare function server_d(input?: { e?: Edge }, options?: CallOptions): Promise<unknown>;\n"
    );
    let text = declarations.text(Detail::Full, |function| function == "server_a");
    assert!(
        text.contains("type ServerAL99 = { next?: string };"),
        "{text}"
    );
    assert!(
        text.contains("type ServerAL0 = { next?: ServerAL1 };"),
        "{text}"
    );
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
    let text = declare(&tools).text(Detail::Full, |_| true);
    assert_eq!(text.matches("declare function ").count(), 10_000);
    assert_eq!(text.matches("type ").count(), 100);
}
