//! Signatures: one line a function, which stands alone and keeps the short facts.

use callgate_typegen::Detail;
use expect_test::expect;
use serde_json::{Value, json};

use crate::declare;

/// The signature of a tool `t` with these properties, without the rest of the line.
fn arguments(properties: Value) -> String {
    let schema = json!({ "type": "object", "properties": properties });
    let text = declare("s", &[json!({ "name": "t", "inputSchema": schema })])
        .text(Detail::Signature, |_| true);
    let text = text.strip_prefix("s_t({ ").expect("arguments");
    text.strip_suffix(" }): unknown\n")
        .expect("one line")
        .to_owned()
}

#[test]
fn short_facts_are_kept_in_signatures() {
    for case in r#"
        { "type": "string" } → string
        { "type": "number", "default": 10 } → number /* default 10 */
        { "type": "number", "default": 10, "description": "How many (default 10)." } → number /* default 10 */
        { "enum": ["a", "b"], "default": "a" } → "a" | "b" /* default "a" */
        { "type": "array", "items": { "type": "string" }, "minItems": 1 } → string[] /* non-empty */
        { "type": "integer", "minimum": 1, "maximum": 100, "default": 30 } → number /* 1–100, default 30 */
        { "type": "string", "format": "date-time" } → string /* date-time */
        { "type": "string", "deprecated": true } → string /* deprecated */
        { "type": "string", "description": "Deprecated: use y." } → string /* deprecated */
        { "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "null" }], "default": 5 } → number | null /* default 5, ≥ 1 */
        { "type": "string", "description": "Local branches ('local'), remote ones ('remote') or all('all')." } → string /* "local" | "remote" | "all" */
        { "type": "string", "description": "One of: asc, desc or none." } → string /* "asc" | "desc" | "none" */
        { "type": "string", "description": "Order: \"asc\", \"desc\"" } → string /* "asc" | "desc" */
        { "type": "string", "description": "Must be one of low|mid|high" } → string /* "low" | "mid" | "high" */
        { "type": "string", "description": "`asc` or `desc`, defaults to `asc`" } → string /* default "asc", "asc" | "desc" */
        { "type": "integer", "description": "Page size (default: 30, max: 100)" } → number /* default 30 */
        { "type": "boolean", "description": "Default is false." } → boolean /* default false */
        { "type": "string", "description": "Branch. Defaults to main." } → string /* default main */"#
        .trim()
        .lines()
    {
        let (schema, expected) = case.trim().split_once(" → ").expect(case);
        let schema: Value = serde_json::from_str(schema).expect(case);
        assert_eq!(arguments(json!({ "x": schema })), format!("x?: {expected}"));
    }
    for plain in [
        "The default branch, or another one",
        "Defaults to the present folder",
        "Such as 'a' or 'b'",
        "The body (required for 'add' and 'reply')",
        "One of the names, or several",
        "Either the name or the number",
        "The values of a row, and others",
        "The user's and the group's name",
        "A text that isn't 'quoted",
    ] {
        let schema = json!({ "type": "string", "description": plain });
        assert_eq!(arguments(json!({ "x": schema })), "x?: string");
    }
}

#[test]
fn signature_is_one_standalone_line() {
    let tree = json!({ "type": "object", "title": "Tree", "properties": { "of": { "type": "array", "items": { "$ref": "#" } } } });
    let arguments = json!({ "type": "object", "title": "LogQuery", "required": ["repo"], "properties": { "repo": { "type": "string" } } });
    let entry = json!({ "title": "Entry", "type": "object", "properties": { "at": { "type": "string", "format": "date-time" } }, "additionalProperties": { "type": "number" } });
    let twice = json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/E" }, "b": { "type": "array", "items": { "$ref": "#/$defs/E" } } }, "$defs": { "E": entry } });
    let tools = [
        json!({ "name": "none", "description": "Reads it. DEPRECATED: Use log instead.", "inputSchema": { "type": "object" } }),
        json!({ "name": "gone", "title": "Gone (deprecated)", "inputSchema": { "type": "object" } }),
        json!({ "name": "log", "inputSchema": arguments, "outputSchema": { "type": "object", "properties": { "entry": entry } } }),
        json!({ "name": "twice", "inputSchema": twice }),
        json!({ "name": "grow", "inputSchema": tree, "outputSchema": tree }),
    ];
    let all = declare("s", &tools);
    expect![[r#"
        /** @deprecated Use log instead */ s_none(): unknown
        /** @deprecated */ s_gone(): unknown
        s_log({ repo: string }): { entry?: { at?: string, [key: string]: number } }
        s_twice({ a?: Entry, b?: Entry[] }): unknown; type Entry = { at?: string /* date-time */, [key: string]: number }
        s_grow(Tree): Tree; type Tree = { of?: Tree[] }
    "#]]
    .assert_eq(&all.text(Detail::Signature, |_| true));
    let alone = all.text(Detail::Signature, |function| function == "s_grow");
    assert!(all.text(Detail::Signature, |_| true).ends_with(&alone));
}

#[test]
fn declarations_to_read_have_inputs_in_place() {
    let tree = json!({ "type": "object", "title": "Tree", "properties": { "of": { "type": "array", "items": { "$ref": "#" } } } });
    let commit = json!({ "type": "object", "title": "commitArguments", "required": ["message", "repo_path"],
        "properties": { "message": { "type": "string" }, "repo_path": { "type": "string" } } });
    let list = json!({ "type": "object", "title": "ListQuery", "properties": { "page": { "type": "integer" } } });
    let tools = [
        json!({ "name": "git_commit", "inputSchema": commit }),
        json!({ "name": "list", "inputSchema": list }),
        json!({ "name": "grow", "inputSchema": tree, "outputSchema": tree }),
    ];
    let names = ["s_git_commit", "s_list", "s_grow"];
    expect![[r#"
        type Tree = { of?: Tree[] };
        declare function s_git_commit(input: { message: string; repo_path: string }, options?: CallOptions): Promise<unknown>;
        declare function s_list(input?: {
         /** integer */ page?: number;
        }, options?: CallOptions): Promise<unknown>;
        declare function s_grow(input?: Tree, options?: CallOptions): Promise<Tree>;
    "#]]
    .assert_eq(&declare("s", &tools).text_of(Detail::Read, &names, |_| None));
}

#[test]
fn inputs_without_members_are_left_out() {
    let closed = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let typed = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    let tools = [
        json!({ "name": "tabs", "inputSchema": closed }),
        json!({ "name": "ping", "inputSchema": { "type": "object", "maxProperties": 0 } }),
        json!({ "name": "open", "inputSchema": { "type": "object", "additionalProperties": true } }),
        json!({ "name": "tags", "inputSchema": typed }),
    ];
    expect![[r#"
        s_tabs(): unknown
        s_ping(): unknown
        s_open(): unknown
        s_tags({ [key: string]: string }): unknown
    "#]]
    .assert_eq(&declare("s", &tools).text(Detail::Signature, |_| true));
}

#[test]
fn types_nested_in_types_without_end_are_bounded() {
    let next = |n: usize| json!({ "title": format!("T{n}"), "type": "object", "properties": { "x": { "$ref": format!("#/$defs/T{}", n + 1) } }, "additionalProperties": { "$ref": format!("#/$defs/T{}", n + 1) } });
    let definitions: serde_json::Map<String, Value> =
        (0..2000).map(|n| (format!("T{n}"), next(n))).collect();
    let schema = json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/T0" } }, "$defs": definitions });
    let text = declare("s", &[json!({ "name": "t", "inputSchema": schema })])
        .text(Detail::Signature, |_| true);
    assert!(text.len() < 128 * 1024, "{} bytes", text.len());
}

/// Callers that give JSON know no promise and no bigint.
#[test]
fn calls_are_declared_in_terms_of_json() {
    let number = json!({ "type": "integer", "description": "The number of notes." });
    let tools = [
        json!({ "name": "log", "description": "Lists notes.", "inputSchema": {
            "type": "object",
            "properties": { "repo": { "type": "string" }, "max_count": number },
            "required": ["repo"],
        } }),
        json!({ "name": "count", "inputSchema": { "type": "object" }, "outputSchema": {
            "type": "object", "properties": { "n": { "type": "integer", "format": "int64" } },
            "required": ["n"], "additionalProperties": false,
        } }),
        json!({ "name": "find", "inputSchema": { "type": "object", "required": ["by"],
            "properties": { "by": { "$ref": "#/$defs/By" } },
            "$defs": { "By": { "type": "object", "required": ["id"],
                "properties": { "id": { "type": "string" } } } } } }),
    ];
    expect![[r#"
        /** Lists notes. */
        s_log({
         repo: string;
         /** The number of notes. (integer) */ max_count?: number;
        }): unknown
        s_count(): {
         /** int64 */ n: number;
        }
        s_find({ by: { id: string } }): unknown
    "#]]
    .assert_eq(&declare("s", &tools).text(Detail::Call, |_| true));
}
