//! Types written as text, as JSON Schemas.

use callgate_script::json_schema;
use expect_test::{Expect, expect};

fn check(text: &str, expected: Expect) {
    let shown = match json_schema(text) {
        Ok(schema) => schema.to_string(),
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&shown);
}

#[test]
fn types_of_json_values() {
    check("string", expect![[r#"{"type":"string"}"#]]);
    check("unknown", expect!["{}"]);
    check(
        "string[]",
        expect![[r#"{"type":"array","items":{"type":"string"}}"#]],
    );
    check(
        "readonly (number | null)[]",
        expect![[r#"{"type":"array","items":{"anyOf":[{"type":"number"},{"type":"null"}]}}"#]],
    );
    check(
        "Array<ReadonlyArray<boolean>>",
        expect![[r#"{"type":"array","items":{"type":"array","items":{"type":"boolean"}}}"#]],
    );
    check(
        "'a' | \"b\" | -1 | 2.5 | true",
        expect![[r#"{"enum":["a","b",-1,2.5,true]}"#]],
    );
    check(
        "[string, number]",
        expect![[
            r#"{"type":"array","minItems":2,"maxItems":2,"prefixItems":[{"type":"string"},{"type":"number"}]}"#
        ]],
    );
    check(
        "[]",
        expect![[r#"{"type":"array","minItems":0,"maxItems":0}"#]],
    );
    check(
        "Record<string, number>",
        expect![[r#"{"type":"object","additionalProperties":{"type":"number"}}"#]],
    );
    check(
        "{}",
        expect![[r#"{"type":"object","additionalProperties":false}"#]],
    );
    check(
        "{
           /** which */ id: number;
           'the-name'?: string,
           readonly tags: string[]
           5: any; // more
         }",
        expect![[
            r#"{"type":"object","properties":{"id":{"type":"number"},"the-name":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},"5":{}},"required":["id","tags","5"],"additionalProperties":false}"#
        ]],
    );
    check(
        "{ [key: string]: { a: object } }",
        expect![[
            r#"{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}}"#
        ]],
    );
    check(
        "{ constructor: string; __proto__: string }",
        expect![[
            r#"{"type":"object","properties":{"constructor":{"type":"string"},"__proto__":{"type":"string"}},"required":["constructor","__proto__"],"additionalProperties":false}"#
        ]],
    );
}

#[test]
fn what_is_no_type_of_json_values() {
    check(
        "",
        expect!["the text is no TypeScript type: expected '=>', got ';'"],
    );
    check(
        "{ id: ",
        expect!["the text is no TypeScript type: unexpected )"],
    );
    check(
        "string; evil()",
        expect!["the text is no TypeScript type: expected ')', got ';'"],
    );
    check(
        "string); evil(",
        expect!["the text is more than one TypeScript type"],
    );
    check(
        "string) | (number",
        expect!["the text is more than one TypeScript type"],
    );
    check(
        "LogEntry[]",
        expect![[r#"the type "LogEntry" cannot be a JSON Schema: write the type itself"#]],
    );
    check(
        "a.b",
        expect![[r#"the type "a.b" cannot be a JSON Schema: write the type itself"#]],
    );
    check(
        "Date",
        expect![[r#"the type "Date" cannot be a JSON Schema: JSON has no dates; write string"#]],
    );
    check(
        "Map<string, number>",
        expect![[
            r#"the type "Map<string, number>" cannot be a JSON Schema: write the type itself"#
        ]],
    );
    check(
        "{ a: undefined }",
        expect![[
            r#"the type "undefined" cannot be a JSON Schema: write an optional property with "?", or null"#
        ]],
    );
    check(
        "bigint",
        expect![[r#"the type "bigint" cannot be a JSON Schema: JSON has no such values"#]],
    );
    check(
        "5n",
        expect![[r#"the type "5n" cannot be a JSON Schema: JSON has no such values"#]],
    );
    check(
        "{ f(): void }",
        expect![[r#"the type "f(): void" cannot be a JSON Schema: JSON has no functions"#]],
    );
    check(
        "() => void",
        expect![[r#"the type "() => void" cannot be a JSON Schema: write a type of JSON values"#]],
    );
    check(
        "{ a: 1 } & { b: 2 }",
        expect![[
            r#"the type "{ a: 1 } & { b: 2 }" cannot be a JSON Schema: write the properties of both in one object"#
        ]],
    );
    check(
        "keyof { a: 1 }",
        expect![[
            r#"the type "keyof { a: 1 }" cannot be a JSON Schema: write a type of JSON values"#
        ]],
    );
    check(
        "`a${string}`",
        expect![[r#"the type "`a${string}`" cannot be a JSON Schema: JSON has no such values"#]],
    );
    check(
        "[a?: string]",
        expect![[
            r#"{"type":"array","minItems":1,"maxItems":1,"prefixItems":[{"type":"string"}]}"#
        ]],
    );
    check(
        "[...string[]]",
        expect![[
            r#"the type "...string[]" cannot be a JSON Schema: a tuple here has elements that are all there"#
        ]],
    );
    check(
        "{ [key: number]: 1 }",
        expect![[r#"the type "[key: number]: 1" cannot be a JSON Schema: write [key: string]"#]],
    );
    check(
        "{ [x]: 1 }",
        expect![[
            r#"the type "[x]: 1" cannot be a JSON Schema: write the property's name as it is"#
        ]],
    );
    check(
        "{ a: 1; a: 2 }",
        expect![[r#"the property "a" stands twice in one object"#]],
    );
    check(
        "{ a: { '$serde_json::private::RawValue'?: 'x' } }",
        expect![[
            r#"the property "$serde_json::private::RawValue" has a name that is reserved; give it another"#
        ]],
    );
    check(
        "1e999",
        expect![[r#"the type "1e999" cannot be a JSON Schema: JSON has no such number"#]],
    );
    check(
        "'\\ud800'",
        expect![[r#"the type "'\\ud800'" cannot be a JSON Schema: it is no text of Unicode"#]],
    );
    check(
        &format!("'{}'", "x".repeat(20_000)),
        expect!["the type has 20002 bytes, over the limit of 8192"],
    );
    check(
        &format!("string{}", "[]".repeat(40)),
        expect!["the type is nested deeper than 32 levels"],
    );
    check(
        &"(".repeat(15_000),
        expect!["the type has 15000 bytes, over the limit of 8192"],
    );
    check(
        &"{a:".repeat(4_000),
        expect!["the type has 12000 bytes, over the limit of 8192"],
    );
    check(
        &format!("{}1", "readonly ".repeat(1_500)),
        expect!["the type has 13501 bytes, over the limit of 8192"],
    );
    check(
        &format!("1{}", " | 1".repeat(3_000))
            .chars()
            .take(60)
            .collect::<String>(),
        expect!["the text is no TypeScript type: unexpected )"],
    );
}
