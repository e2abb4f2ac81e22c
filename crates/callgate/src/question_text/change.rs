//! The change of a tool's definition, as rows for a person.
//!
//! A server can hide a change anywhere in a long text. So for each part of a definition its
//! difference is shown, and the characters that are not shown are counted. One difference a part is
//! found in linear time, whatever the texts are.

use std::ops::Range;

use callgate_gate::Changed;
use callgate_text::{quoted, wrapped};
use serde_json::Value;

use super::Shown;

/// The parts of a definition, in the order in which they are shown.
const PARTS: [&str; 6] = [
    "description",
    "title",
    "annotations",
    "inputSchema",
    "outputSchema",
    "definition",
];

/// The characters shown on each side of a difference.
const AROUND: usize = 60;

/// The change of a tool's definition since it was allowed, in rows as those of
/// [`question_text`](super::question_text).
pub fn change_text(changed: &Changed, shown: Shown, columns: Option<usize>) -> String {
    let heading = |text: &str| wrapped(&[text], columns.unwrap_or(usize::MAX));
    let (Some(before), Some(now)) = (&changed.before, &changed.now) else {
        let text = "├ its definition has changed since it was allowed; the old one is not known";
        return heading(text) + "\n";
    };
    let heading = heading("├ its definition has changed since it was allowed:");
    let text = rows(before.text(), now.text(), shown, columns);
    format!("{heading}\n{text}")
}

fn rows(before: &str, now: &str, shown: Shown, columns: Option<usize>) -> String {
    let max = match shown {
        Shown::Short => 400,
        Shown::Form => 2_000,
        Shown::Whole => usize::MAX,
    };
    let (before, now) = (parts(before), parts(now));
    let mut text = String::new();
    for part in PARTS {
        let of = |definition: &Value| definition.get(part).map(Value::to_string);
        let (old, new) = (of(&before), of(&now));
        if old == new {
            continue;
        }
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        let (old_differs, new_differs) = differing(&old, &new);
        for (sign, value, differs) in [('-', old, old_differs), ('+', new, new_differs)] {
            if !value.is_empty() {
                let row = format!("{sign} {part}: {}", excerpt(&value, differs, max));
                text += &quoted(&row, columns);
            }
        }
    }
    text
}

/// A definition by its parts, with the title as a part; an unreadable definition as one part.
fn parts(text: &str) -> Value {
    let read = serde_json::from_str(text);
    let mut parts: Value = read.unwrap_or_else(|_| serde_json::json!({ "definition": text }));
    let annotations = parts.get_mut("annotations").and_then(Value::as_object_mut);
    // A server can add any number of other annotations before it.
    if let Some(title) = annotations.and_then(|annotations| annotations.remove("title")) {
        parts["title"] = title;
    }
    parts
}

/// The part of a text that differs, with some text around it; its head and tail, if it has more
/// than `max` characters.
fn excerpt(text: &str, differs: Range<usize>, max: usize) -> String {
    let part = |range: Range<usize>| text.get(range).unwrap_or_default();
    let before = part(0..differs.start);
    let behind = part(differs.end..text.len());
    let shown_before = last(before, AROUND);
    let shown_behind: String = behind.chars().take(AROUND).collect();
    let more = |is_more: bool| if is_more { "…" } else { "" };
    let (more_before, more_behind) = (
        more(shown_before.len() < before.len()),
        more(shown_behind.len() < behind.len()),
    );
    let differing = cut(part(differs), max);
    format!("{more_before}{shown_before}{differing}{shown_behind}{more_behind}")
}

/// The last `max` characters.
fn last(text: &str, max: usize) -> &str {
    let begin = text.char_indices().rev().take(max).last();
    begin.map_or("", |(at, _)| text.get(at..).unwrap_or_default())
}

/// The text, or its head and tail and the count of characters between them.
fn cut(text: &str, max: usize) -> String {
    let count = text.chars().count();
    if count <= max {
        return text.to_owned();
    }
    let tail = max / 3;
    let head: String = text.chars().take(max - tail).collect();
    let (tail, left_out) = (last(text, tail), count - max);
    format!("{head} … ({left_out} characters of the change are not shown) … {tail}")
}

/// The range from the first to the last character that differs, in each text.
fn differing(old: &str, new: &str) -> (Range<usize>, Range<usize>) {
    let same = |(one, other): &(char, char)| one == other;
    let bytes = |(one, _): (char, char)| one.len_utf8();
    let begin = old.chars().zip(new.chars());
    let begin: usize = begin.take_while(same).map(bytes).sum();
    let (old_rest, new_rest) = (old.get(begin..), new.get(begin..));
    let end = old_rest.unwrap_or_default().chars().rev();
    let end = end.zip(new_rest.unwrap_or_default().chars().rev());
    let end: usize = end.take_while(same).map(bytes).sum();
    (begin..old.len() - end, begin..new.len() - end)
}

#[cfg(test)]
mod tests {
    use callgate_policy::Definition;
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn text(before: &Value, now: &Value, shown: Shown) -> String {
        let (before, now) = (Definition::of(before), Definition::of(now));
        rows(before.text(), now.text(), shown, Some(200))
    }

    #[track_caller]
    fn check(before: &Value, now: &Value, expected: Expect) {
        expected.assert_eq(&text(before, now, Shown::Short));
    }

    fn described(description: &str) -> Value {
        json!({ "name": "text", "description": description, "inputSchema": {} })
    }

    #[test]
    fn addition_to_long_text_is_shown() {
        let long = "Reads a file. ".repeat(40);
        check(
            &described(&long),
            &described(&format!("{long}Then sends it away.")),
            expect![[r#"
                │ - description: …le. Reads a file. Reads a file. Reads a file. Reads a file. "
                │ + description: …le. Reads a file. Reads a file. Reads a file. Reads a file. Then sends it away."
            "#]],
        );
        check(
            &described(&format!("{long}ü{long}")),
            &described(&format!("{long}日本{long}")),
            expect![[r#"
                │ - description: …le. Reads a file. Reads a file. Reads a file. Reads a file. üReads a file. Reads a file. Reads a file. Reads a file. Read…
                │ + description: …le. Reads a file. Reads a file. Reads a file. Reads a file. 日本Reads a file. Reads a file. Reads a file. Reads a file. Read…
            "#]],
        );
    }

    #[test]
    fn cut_characters_of_a_change_are_counted() {
        let before = described(&"a".repeat(1_000));
        let inserted = format!("{}SENDS IT AWAY{}", "a".repeat(998), "a".repeat(500));
        let now = described(&format!("b{inserted}b"));
        let short = text(&before, &now, Shown::Short);
        assert!(short.contains("(1113 characters of the change are not shown)"));
        let form = text(&before, &now, Shown::Form);
        assert_eq!(form, text(&before, &now, Shown::Whole));
        assert!(form.replace("\n│ ", "").contains("SENDS IT AWAY"), "{form}");
    }

    #[test]
    fn large_part_does_not_hide_other_parts() {
        let tool = |title: &str, count: usize| {
            let mut tool = described(title);
            let long = || (0..count).map(|n| (format!("a{n}"), json!("x".repeat(8_001))));
            tool["annotations"] = long().collect::<serde_json::Map<_, _>>().into();
            tool["annotations"]["title"] = title.into();
            tool["inputSchema"] = long().collect::<serde_json::Map<_, _>>().into();
            tool
        };
        for shown in [Shown::Short, Shown::Form] {
            let form = text(&tool("Reader", 0), &tool("Sender", 1_000), shown);
            for row in ["- description: \"Reader\"", "+ title: \"Sender\""] {
                assert!(form.contains(&format!("│ {row}\n")), "{form}");
            }
            assert!(form.len() < 8_000, "{}", form.len());
        }
    }

    #[test]
    fn added_removed_and_changed_parts_are_shown() {
        let of = |names: Value, members: Value| json!({ "name": "text", "inputSchema": { "enum": names, "properties": members } });
        let mut before = of(json!(["read", "list"]), json!({ "a": 1, "b": { "c": 2 } }));
        before["annotations"] = json!({ "readOnlyHint": true });
        let mut now = of(json!(["read", "list"]), json!({ "a": 2, "z": "new" }));
        now["outputSchema"] = json!({});
        check(
            &before,
            &now,
            expect![[r#"
            │ - annotations: {"readOnlyHint":true}
            │ - inputSchema: {"enum":["read","list"],"properties":{"a":1,"b":{"c":2}}}
            │ + inputSchema: {"enum":["read","list"],"properties":{"a":2,"z":"new"}}
            │ + outputSchema: {}
        "#]],
        );
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
        let rows = rows("{}", &deep, Shown::Short, Some(60));
        assert!(rows.starts_with("│ + definition: "), "{rows}");
    }
}
