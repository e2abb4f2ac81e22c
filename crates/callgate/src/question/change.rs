//! The change of a tool's definition, as lines for a person.
//!
//! A text of a definition is one line, however long it is, and a server can put the part that
//! matters anywhere in it. So of two lines that belong together the difference is shown, and
//! characters that are not shown are counted.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use callgate_gate::Changed;
use similar::{DiffTag, TextDiff};

use super::Shown;
use crate::harmless::one_line;
use crate::quoted::quoted;

/// Characters that two lines share, on each side of their difference.
const AROUND: usize = 60;

/// Time for comparing two definitions. The rest is shown as changed.
const DIFF_TIME: Duration = Duration::from_millis(200);

/// The change of a tool's definition since it was allowed, in rows as those of
/// [`question_text`](super::question_text).
pub fn change_text(changed: &Changed, shown: Shown, columns: Option<usize>) -> String {
    let (Some(before), Some(now)) = (&changed.before, &changed.now) else {
        return "├ its definition has changed since it was allowed; what it was then is not \
             known\n"
            .to_owned();
    };
    let text = rows(before.text(), now.text(), shown, columns);
    format!("├ its definition has changed since it was allowed:\n{text}")
}

fn rows(before: &str, now: &str, shown: Shown, columns: Option<usize>) -> String {
    // Lines, characters of the difference in one, and in all of one kind together.
    let (most, of_line, of_kind) = match shown {
        Shown::Short => (30, 400, usize::MAX),
        Shown::Form => (200, 2_000, 8_000),
        Shown::Whole => (usize::MAX, usize::MAX, usize::MAX),
    };
    let mut lines = lines(before, now);
    if lines.len() > most {
        // A server can have any number of other lines before these.
        lines.sort_by_key(|line| !line.says_what_it_does());
    }
    let more = lines.len().saturating_sub(most);
    lines.truncate(most);
    let mut text = String::new();
    for line in &lines {
        // Long lines of one kind take no room of the other.
        let kind = line.says_what_it_does();
        let alike = lines.iter().filter(|it| it.says_what_it_does() == kind);
        text += &quoted(&line.shown(of_line.min(of_kind / alike.count())), columns);
    }
    if more > 0 {
        text += &format!("├ and {more} more lines\n");
    }
    text
}

/// A line that is not in both definitions.
struct Line<'a> {
    sign: char,
    text: &'a str,
    /// The name of a member with its indentation. Empty for an element of a list.
    name: &'a str,
    /// The bytes that differ from the line that belongs to it: all, if there is none.
    differs: Range<usize>,
    is_alone: bool,
}

impl<'a> Line<'a> {
    fn new(sign: char, line: &'a str) -> Self {
        let text = line.trim_start();
        Self {
            sign,
            text,
            name: line.split_once(": ").map_or("", |(name, _)| name),
            differs: 0..text.len(),
            is_alone: true,
        }
    }

    /// True if it is the tool's own description, or the title in its annotations. The title of
    /// a schema looks the same.
    fn says_what_it_does(&self) -> bool {
        matches!(self.name, r#"  "description""# | r#"    "title""#)
    }

    /// The difference, with a little of the text around it; its head and tail, if it has more
    /// characters than this.
    fn shown(&self, most: usize) -> String {
        let part = |range: Range<usize>| self.text.get(range).unwrap_or_default();
        let (skipped, before) = last(part(0..self.differs.start), AROUND);
        let behind = part(self.differs.end..self.text.len());
        let shown: String = behind.chars().take(AROUND).collect();
        let name = if skipped {
            format!("{}: …", one_line(self.name, AROUND))
        } else {
            String::new()
        };
        let more = if shown.len() < behind.len() {
            "…"
        } else {
            ""
        };
        let differing = cut(part(self.differs.clone()), most);
        format!("{} {name}{before}{differing}{shown}{more}", self.sign)
    }
}

/// The last characters, at most so many, and whether the text has more.
fn last(text: &str, most: usize) -> (bool, &str) {
    match text.char_indices().rev().nth(most) {
        Some((at, first)) => (true, text.get(at + first.len_utf8()..).unwrap_or_default()),
        None => (false, text),
    }
}

/// The text, or its head and tail and the count of characters between them.
fn cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let tail = most / 3;
    let head: String = text.chars().take(most - tail).collect();
    let (_, tail) = last(text, tail);
    let left_out = count - most;
    format!("{head} … ({left_out} characters of the change are not shown) … {tail}")
}

/// The lines that are not in both texts, in the order of a comparison.
fn lines<'a>(before: &'a str, now: &'a str) -> Vec<Line<'a>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), now.lines().collect());
    let diff = TextDiff::configure()
        .timeout(DIFF_TIME)
        .diff_slices(&old, &new);
    let mut lines = Vec::new();
    for op in diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal) {
        let begin = lines.len();
        let deleted = old.get(op.old_range()).unwrap_or_default();
        let inserted = new.get(op.new_range()).unwrap_or_default();
        lines.extend(deleted.iter().map(|text| Line::new('-', text)));
        lines.extend(inserted.iter().map(|text| Line::new('+', text)));
        pair(lines.get_mut(begin..).unwrap_or_default());
    }
    // A server can put equal lines between two that belong together.
    pair(&mut lines);
    lines
}

/// Pairs each deleted line that is alone with the first inserted one of the same name.
fn pair(lines: &mut [Line<'_>]) {
    let mut deleted: HashMap<&str, VecDeque<usize>> = HashMap::new();
    let mut pairs = Vec::new();
    for (place, line) in lines.iter().enumerate().filter(|(_, line)| line.is_alone) {
        let alike = deleted.entry(line.name);
        match line.sign {
            '-' => alike.or_default().push_back(place),
            _ => pairs.extend(alike.or_default().pop_front().map(|other| (other, place))),
        }
    }
    for (old, new) in pairs {
        let text = |place: usize| lines.get(place).map_or("", |line| line.text);
        let (old_differs, new_differs) = differing(text(old), text(new));
        for (place, differs) in [(old, old_differs), (new, new_differs)] {
            if let Some(line) = lines.get_mut(place) {
                line.differs = differs;
                line.is_alone = false;
            }
        }
    }
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
    use serde_json::{Value, json};

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
    fn what_is_added_to_a_long_text_is_shown() {
        let long = "Reads a file. ".repeat(40);
        check(
            &described(&long),
            &described(&format!("{long}Then sends it away.")),
            expect![[r#"
                │ - "description": …le. Reads a file. Reads a file. Reads a file. Reads a file. ",
                │ + "description": …le. Reads a file. Reads a file. Reads a file. Reads a file. Then sends it away.",
            "#]],
        );
        check(
            &described(&format!("{long}ü{long}")),
            &described(&format!("{long}日本{long}")),
            expect![[r#"
                │ - "description": …le. Reads a file. Reads a file. Reads a file. Reads a file. üReads a file. Reads a file. Reads a file. Reads a file. Read…
                │ + "description": …le. Reads a file. Reads a file. Reads a file. Reads a file. 日本Reads a file. Reads a file. Reads a file. Reads a file. Read…
            "#]],
        );
    }

    #[test]
    fn what_is_cut_of_a_change_is_counted() {
        let before = described(&"a".repeat(1_000));
        let now = described(&format!(
            "b{}SENDS IT AWAY{}b",
            "a".repeat(998),
            "a".repeat(500)
        ));
        check(
            &before,
            &now,
            expect![[r#"
            │ - "description": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
            │ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa … (600 characters of the change are not shown) … aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
            │ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            │ + "description": "baaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
            │ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa … (1113 characters of the change are not shown) … aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
            │ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
        "#]],
        );
        let form = text(&before, &now, Shown::Form);
        let whole = text(&before, &now, Shown::Whole);
        assert_eq!(form, whole);
        assert!(
            whole.replace("\n│ ", "").contains("SENDS IT AWAY"),
            "{whole}"
        );
    }

    #[test]
    fn a_form_shows_no_more_than_its_share() {
        let before = json!({ "name": "text", "inputSchema": {} });
        let schema = |count: usize| {
            let members = (0..count).map(|n| (format!("a{n}"), json!("é".repeat(3_000))));
            json!({ "name": "text", "inputSchema": members.collect::<serde_json::Map<_, _>>() })
        };
        let shown = [1, 3, 4, 100, 250].map(|count| {
            let form = text(&before, &schema(count), Shown::Form);
            let ours: Vec<&str> = form.lines().filter(|line| line.starts_with('├')).collect();
            format!("{count}: {} {ours:?}", form.matches('é').count())
        });
        // The names count, too.
        expect![[r#"
            1: 1992 []
            3: 3973 []
            4: 4533 []
            100: 6711 []
            250: 5796 ["├ and 53 more lines"]"#]]
        .assert_eq(&shown.join("\n"));
    }

    /// A server can have as many long lines as it likes before the one that matters.
    #[test]
    fn long_lines_hide_no_short_ones() {
        let before = described("Reads a file.");
        for count in [1, 4, 100, 1_000] {
            let titles = (0..count).map(|n| (format!("a{n}"), json!("x".repeat(8_001))));
            let mut now = described("Reads a file. Then sends it away.");
            now["annotations"] = titles.collect::<serde_json::Map<_, _>>().into();
            let form = text(&before, &now, Shown::Form);
            let said = "│ + \"description\": \"Reads a file. Then sends it away.\",\n";
            assert!(form.contains(said), "{count}: {form}");
            assert!(form.len() < 32_000, "{count}: {}", form.len());
        }
    }

    /// A server can have as many lines as it likes come before those that say what it does.
    #[test]
    fn many_lines_hide_neither_description_nor_title() {
        let tool = |title: &str, letter: &str, hints: usize| {
            let mut tool = described(&letter.repeat(1_900));
            let hints = (0..hints).map(|n| (format!("a{n}"), json!("x".repeat(300))));
            tool["annotations"] = hints.collect::<serde_json::Map<_, _>>().into();
            tool["annotations"]["title"] = title.into();
            Definition::of(&tool)
        };
        let (before, now) = (tool("Reader", "a", 0), tool("Sender", "b", 300));
        let lines = |shown| {
            let text = rows(before.text(), now.text(), shown, Some(10_000));
            let lines = text.lines().map(str::to_owned);
            lines.collect::<Vec<_>>()
        };
        let titles = [r#"│ - "title": "Reader""#, r#"│ + "title": "Sender""#];
        let form = lines(Shown::Form);
        assert_eq!(form[..2], titles);
        let of =
            |sign, letter: &str| format!(r#"│ {sign} "description": "{}","#, letter.repeat(1_900));
        assert_eq!(form[2..4], [of('-', "a"), of('+', "b")]);
        // The others have their own share, names and all.
        let others: usize = form.iter().map(|line| line.matches('x').count()).sum();
        assert_eq!((form.len(), others), (201, 5_708));
        let short = lines(Shown::Short);
        assert_eq!(short[..2], titles);
        assert!(
            short[2].starts_with(r#"│ - "description": "aaa"#),
            "{short:?}"
        );
        assert!(
            short[3].starts_with(r#"│ + "description": "bbb"#),
            "{short:?}"
        );
    }

    /// A server can have the lines of a schema stand in a hint, before the description.
    #[test]
    fn lines_belong_together_whatever_stands_between_them() {
        let long = "Reads a file. ".repeat(40);
        let schema = json!({ "a": { "b": 1, "c": 2, "d": 3, "e": 4 } });
        let before = json!({ "description": long, "inputSchema": schema });
        let now = json!({
            "annotations": schema,
            "description": format!("{long}Then sends it away."),
            "inputSchema": {},
        });
        check(
            &before,
            &now,
            expect![[r#"
            │ - "description": …le. Reads a file. Reads a file. Reads a file. Reads a file. ",
            │ - "inputSchema": {
            │ + "annotations": {
            │ - }
            │ + },
            │ + "description": …le. Reads a file. Reads a file. Reads a file. Reads a file. Then sends it away.",
            │ + "inputSchema": {}
        "#]],
        );
    }

    #[test]
    fn elements_and_members_that_are_gone_are_shown() {
        let of = |names: Value, members: Value| json!({ "name": "text", "inputSchema": { "enum": names, "properties": members } });
        check(
            &of(json!(["read", "list"]), json!({ "a": 1, "b": { "c": 2 } })),
            &of(
                json!(["read", "remove", "list"]),
                json!({ "a": 2, "z": "new" }),
            ),
            expect![[r#"
                │ + "remove",
                │ - "a": 1,
                │ - "b": {
                │ - "c": 2
                │ - }
                │ + "a": 2,
                │ + "z": "new"
            "#]],
        );
    }
}
