//! Declarations of any JSON: nothing panics, and the output is well formed and within its limits.
//! The fuzz target `declarations` checks the same.

mod entry;

use proptest::prelude::*;
use serde_json::{Value, json};

/// JSON made of the parts of schemas, in places where they may not belong.
fn hostile() -> impl Strategy<Value = Value> {
    let words = "$ref¦#¦#/$defs/a¦a¦object¦array¦string¦null¦type¦title¦properties¦required¦\
        items¦prefixItems¦enum¦const¦anyOf¦oneOf¦allOf¦$defs¦additionalProperties¦\
        patternProperties¦description¦nullable¦$id¦not¦minItems¦contains¦if¦then¦else¦\
        dependentSchemas¦dependencies¦maxProperties¦unevaluatedProperties¦\
        unevaluatedItems¦definitions¦$anchor¦$dynamicAnchor¦$dynamicRef¦$schema¦\
        http://json-schema.org/draft-07/schema#¦a#a¦#a¦*/¦\u{2028}¦__proto__¦#/%zz¦\
        #/$defs/~2¦minimum¦maximum¦exclusiveMinimum¦maxLength¦pattern¦format¦default¦\
        examples¦uniqueItems¦dependentRequired¦propertyNames¦deprecated¦\
        @ts-expect-error¦\u{202e}\n¦constructor";
    let word = prop::sample::select(words.split('¦').collect::<Vec<_>>());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        any::<u64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 80, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..7).prop_map(|entries| {
                let entries = entries
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value));
                Value::Object(entries.collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_json_makes_well_formed_declarations(
        schemas in prop::collection::vec(hostile(), 1..5),
    ) {
        entry::check(Value::from(schemas).to_string().as_bytes());
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        entry::check(&bytes);
    }
}

#[test]
fn deep_nesting_is_taken() {
    // The deepest nesting that the parser accepts, in keywords that can nest without end.
    for open in [r#"{"items":"#, r#"{"properties":{"a":"#, r#"[{"default":"#] {
        let brackets = open.chars().rev().filter(|c| "{[".contains(*c));
        let close: String = brackets.map(|c| if c == '{' { '}' } else { ']' }).collect();
        let levels = 120 / close.len();
        entry::check(format!("{}1{}", open.repeat(levels), close.repeat(levels)).as_bytes());
    }
}
