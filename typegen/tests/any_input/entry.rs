//! The properties that hold for any bytes from a server: shared by the property test beside this
//! file and by the fuzz target in `fuzz/`.

use callgate_typegen::names::assign;
use callgate_typegen::{Detail, ToolSchema, generate};
use serde_json::Value;

/// Bytes that declarations of one tool may have: the limit of its text and, for
/// each of its functions, the longest name and comment.
const MAX_TEXT: usize = 128 * 1024 + 16 * 1024;

/// Parses bytes as JSON, as a schema or a list of schemas (input and output in turn), and checks
/// the declarations. Panics if a property does not hold.
pub fn check(bytes: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    let schemas = match &value {
        Value::Array(schemas) => schemas.as_slice(),
        schema => std::slice::from_ref(schema),
    };
    let text = |index: usize, key: &str| schemas.get(index).and_then(|s| s.get(key)?.as_str());
    let title = |index: usize| text(2 * index, "title").map_or(index.to_string(), str::to_owned);
    let tools: Vec<String> = (0..schemas.len().div_ceil(2).max(1)).map(title).collect();
    let names = assign(tools.iter().map(|tool| ("server", tool.as_str())));
    let tools: Vec<ToolSchema<'_>> = tools
        .iter()
        .enumerate()
        .map(|(index, tool)| ToolSchema {
            server: "server",
            tool,
            function: names.function("server", tool).unwrap_or_default(),
            title: text(2 * index, "title"),
            description: text(2 * index, "description"),
            input: schemas.get(2 * index).unwrap_or(&Value::Null),
            output: schemas.get(2 * index + 1),
        })
        .collect();

    let declarations = generate(&tools);
    let full = declarations.text(Detail::Full, |_| true);
    assert_eq!(full, generate(&tools).text(Detail::Full, |_| true));
    assert_eq!(lines_of(&full, "declare function "), tools.len());
    let signatures = declarations.text(Detail::Signature, |_| true);
    assert_eq!(signatures.lines().count(), tools.len(), "{signatures}");
    assert_closed(&full);
    assert_closed(&signatures);
    for detail in [Detail::Name, Detail::Summary] {
        let lines = declarations.text(detail, |_| true);
        assert_eq!(lines.lines().count(), tools.len(), "{lines}");
    }
    for tool in &tools {
        let one = declarations.text(Detail::Full, |function| function == tool.function);
        assert!(one.len() < MAX_TEXT, "{} bytes", one.len());
        assert_closed(&one);
    }
}

/// Lines of code, not of comments, that start with `start`.
fn lines_of(text: &str, start: &str) -> usize {
    let code = without_comments_and_strings(text);
    code.lines().filter(|line| line.starts_with(start)).count()
}

/// Every bracket outside comments and strings is closed by its own kind.
fn assert_closed(text: &str) {
    let mut open = Vec::new();
    let code = without_comments_and_strings(text).replace("=>", "");
    for character in code.chars() {
        match character {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            '<' => open.push('>'),
            ')' | ']' | '}' | '>' => assert_eq!(open.pop(), Some(character), "{text}"),
            _ => {}
        }
    }
    assert!(open.is_empty(), "{text}");
}

fn without_comments_and_strings(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"']) {
        let (before, from) = rest.split_at(at);
        code.push_str(before);
        rest = if let Some(comment) = from.strip_prefix("/*") {
            comment.split_once("*/").expect("a comment that ends").1
        } else if let Some(comment) = from.strip_prefix("//") {
            comment.split_once('\n').expect("a line that ends").1
        } else {
            let string = from.strip_prefix('"').expect("code has no bare slash");
            let mut escaped = false;
            let end = string.find(|character| {
                let ends = character == '"' && !escaped;
                escaped = character == '\\' && !escaped;
                ends
            });
            let (inside, after) = string.split_at(end.expect("a string that ends"));
            assert!(!inside.contains(['\n', '\u{2028}', '\u{2029}']), "{text}");
            &after[1..]
        };
    }
    code.push_str(rest);
    code
}
