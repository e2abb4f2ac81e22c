//! Puts a rule into the text of a configuration file, leaving everything else
//! of the text as it is: comments, layout, line ends.

use jsonc_parser::ast::{Object, ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, parse_to_ast, parse_to_serde_value};

use super::sections::SYNTAX;

/// The text with `rules` (each a JSON value in one line) at the end of
/// `permissions`, `allow`.
///
/// # Errors
///
/// What is wrong with the text, as a clause about the file.
pub(super) fn with_rules(text: &str, rules: &[String]) -> Result<String, String> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let edited = edit(body, rules)?;
    check(body, &edited, rules)?;
    Ok(format!("{mark}{edited}"))
}

fn edit(text: &str, rules: &[String]) -> Result<String, String> {
    let collect = CollectOptions {
        tokens: true,
        ..CollectOptions::default()
    };
    let parsed = parse_to_ast(text, &collect, &SYNTAX).map_err(|error| error.to_string())?;
    let Some(Value::Object(top)) = &parsed.value else {
        return Err("it holds no object".to_owned());
    };
    let layout = Layout::of(text, top, parsed.tokens.as_deref().unwrap_or_default());
    let Some(permissions) = find(top, "permissions")? else {
        let lines = layout.indent.is_some();
        let allow = layout.list(rules, 2, lines);
        let value = layout.object("allow", &allow, 1, lines);
        return Ok(layout.append(top, &[format!("\"permissions\": {value}")]));
    };
    let Value::Object(permissions) = &permissions.value else {
        return Err("its \"permissions\" are no object".to_owned());
    };
    match find(permissions, "allow")?.map(|property| &property.value) {
        None => {
            let lines = layout.in_lines(permissions);
            let list = layout.list(rules, layout.depth(permissions.range), lines);
            Ok(layout.append(permissions, &[format!("\"allow\": {list}")]))
        }
        Some(Value::Array(allow)) => Ok(layout.append(allow, rules)),
        Some(_) => Err("its \"allow\" is no list".to_owned()),
    }
}

/// The property of this name. One that stands twice means nothing.
fn find<'o, 't>(object: &'o Object<'t>, name: &str) -> Result<Option<&'o ObjectProp<'t>>, String> {
    let mut found = object
        .properties
        .iter()
        .filter(|property| property.name.as_str() == name);
    let first = found.next();
    match found.next() {
        None => Ok(first),
        Some(_) => Err(format!("key \"{name}\" stands twice in it")),
    }
}

/// That the new text says what the old one said, and the rules: whatever the
/// layout was like, nothing else may have changed.
fn check(before: &str, after: &str, rules: &[String]) -> Result<(), String> {
    let read = |text: &str| -> Result<serde_json::Value, String> {
        parse_to_serde_value(text, &SYNTAX).map_err(|error| error.to_string())
    };
    let mut expected = read(before)?;
    let rules: Result<Vec<serde_json::Value>, _> = rules
        .iter()
        .map(|rule| serde_json::from_str(rule))
        .collect();
    let rules = rules.map_err(|error| error.to_string())?;
    let odd = || "its layout is one that no rule can be put into".to_owned();
    let permissions = expected
        .as_object_mut()
        .ok_or_else(odd)?
        .entry("permissions")
        .or_insert_with(|| serde_json::Value::Object(serde_json::Map::new()));
    permissions
        .as_object_mut()
        .ok_or_else(odd)?
        .entry("allow")
        .or_insert_with(|| serde_json::Value::Array(Vec::new()))
        .as_array_mut()
        .ok_or_else(odd)?
        .extend(rules);
    match read(after)? == expected {
        true => Ok(()),
        false => Err(odd()),
    }
}

/// A list or an object that gets something more at its end.
trait Container {
    fn range(&self) -> Range;
    fn last(&self) -> Option<Range>;
}

impl Container for Object<'_> {
    fn range(&self) -> Range {
        self.range
    }

    fn last(&self) -> Option<Range> {
        self.properties.last().map(Ranged::range)
    }
}

impl Container for jsonc_parser::ast::Array<'_> {
    fn range(&self) -> Range {
        self.range
    }

    fn last(&self) -> Option<Range> {
        self.elements.last().map(Ranged::range)
    }
}

/// How the file is written.
struct Layout<'a> {
    text: &'a str,
    tokens: &'a [TokenAndRange<'a>],
    newline: &'static str,
    /// One level of indentation; `None` if the file is written in one line.
    indent: Option<String>,
}

impl<'a> Layout<'a> {
    fn of(text: &'a str, top: &Object<'_>, tokens: &'a [TokenAndRange<'a>]) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let first = top.properties.first().map(|first| first.range.start);
        let indent = match first.map(|first| (first, own_line(text, first))) {
            // Where nothing is indented, a level is as wide as nothing.
            Some((_, Some(indent))) => Some(indent.to_owned()),
            Some((_, None)) => None,
            None => Some("  ".to_owned()),
        };
        Self {
            text,
            tokens,
            newline,
            indent,
        }
    }

    /// How deep what stands in a container is indented, in levels.
    fn depth(&self, container: Range) -> usize {
        let before = self
            .tokens
            .iter()
            .take_while(|t| t.range.end <= container.start);
        let depth = before.fold(0_usize, |depth, token| match token.token {
            Token::OpenBrace | Token::OpenBracket => depth + 1,
            Token::CloseBrace | Token::CloseBracket => depth.saturating_sub(1),
            _ => depth,
        });
        depth + 1
    }

    /// Whether what stands in a container stands on lines of its own.
    fn in_lines(&self, container: &impl Container) -> bool {
        self.indent.is_some()
            && container
                .last()
                .is_none_or(|last| own_line(self.text, last.start).is_some())
    }

    /// The text with `items` at the end of a container.
    fn append(&self, container: &impl Container, items: &[String]) -> String {
        let Range { start, end } = container.range();
        let close = end.saturating_sub(1);
        let Some(last) = container.last() else {
            return self.fill(start + 1, close, items, self.depth(container.range()));
        };
        let comma = self.tokens.iter().find(|token| {
            token.token == Token::Comma && (last.end..close).contains(&token.range.start)
        });
        let trailing = comma.is_some();
        // On lines of their own, if the last of the others is on one.
        let on_lines = own_line(self.text, last.start).zip(own_line(self.text, close));
        let mut out = self.text.to_owned();
        match on_lines {
            Some((indent, closing)) => {
                let separator = format!(",{}{indent}", self.newline);
                let more = if trailing { "," } else { "" };
                let lines = format!("{indent}{}{more}{}", items.join(&separator), self.newline);
                out.insert_str(close - closing.len(), &lines);
                if !trailing {
                    out.insert(last.end, ',');
                }
            }
            None => match comma {
                Some(comma) => out.insert_str(comma.range.end, &format!(" {},", items.join(", "))),
                None => out.insert_str(last.end, &format!(", {}", items.join(", "))),
            },
        }
        out
    }

    /// The text with `items` in an empty container between `open` and `close`.
    fn fill(&self, open: usize, close: usize, items: &[String], depth: usize) -> String {
        let mut out = self.text.to_owned();
        let inner = self.text.get(open..close).unwrap_or_default();
        match &self.indent {
            Some(unit) if own_line(self.text, close).is_some() => {
                let closing = own_line(self.text, close).unwrap_or_default();
                let indent = format!("{closing}{unit}");
                let separator = format!(",{}{indent}", self.newline);
                let lines = format!("{indent}{}{}", items.join(&separator), self.newline);
                out.insert_str(close - closing.len(), &lines);
            }
            Some(unit)
                if inner.trim().is_empty() && items.iter().any(|item| item.contains('\n')) =>
            {
                let (indent, closing) = (unit.repeat(depth), unit.repeat(depth.saturating_sub(1)));
                let separator = format!(",{}{indent}", self.newline);
                let lines = items.join(&separator);
                let filled = format!("{0}{indent}{lines}{0}{closing}", self.newline);
                out.replace_range(open..close, &filled);
            }
            _ if inner.trim().is_empty() => out.replace_range(open..close, &items.join(", ")),
            // A comment: it stays before what is put in.
            _ => out.insert_str(close, &items.join(", ")),
        }
        out
    }

    /// A list, as the value of a property that is `depth` levels deep.
    fn list(&self, items: &[String], depth: usize, lines: bool) -> String {
        match self.indent.as_ref().filter(|_| lines) {
            None => format!("[{}]", items.join(", ")),
            Some(unit) => {
                let inner = unit.repeat(depth + 1);
                let separator = format!(",{}{inner}", self.newline);
                format!(
                    "[{0}{inner}{1}{0}{2}]",
                    self.newline,
                    items.join(&separator),
                    unit.repeat(depth)
                )
            }
        }
    }

    /// An object of one property, as the value of one `depth` levels deep.
    fn object(&self, key: &str, value: &str, depth: usize, lines: bool) -> String {
        match self.indent.as_ref().filter(|_| lines) {
            None => format!("{{ \"{key}\": {value} }}"),
            Some(unit) => format!(
                "{{{0}{1}\"{key}\": {value}{0}{2}}}",
                self.newline,
                unit.repeat(depth + 1),
                unit.repeat(depth)
            ),
        }
    }
}

/// The white space before `at`, if nothing else is before it on its line.
fn own_line(text: &str, at: usize) -> Option<&str> {
    let before = text.get(..at)?;
    let line = before.rfind('\n')? + 1;
    let lead = before.get(line..)?;
    lead.chars().all(|c| c == ' ' || c == '\t').then_some(lead)
}
