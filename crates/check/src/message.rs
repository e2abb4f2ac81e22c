//! Shortens TypeScript's messages: cuts long types, drops advice about compiler settings, and joins a
//! chain of reasons into one line.

use serde::Deserialize;

use crate::scan::{one_line, start, without_comments, word};

/// Maximum bytes of a message.
const MAX_MESSAGE: usize = 700;
/// Maximum bytes of one type or name in a message.
const MAX_QUOTED: usize = 120;
/// Maximum bytes of the parameters of a wrongly called function.
const MAX_PARAMETERS: usize = 240;
/// Maximum reasons of a chain that are shown: the first, and the last ones. Those in between only
/// lead to the place step by step.
const MAX_REASONS: usize = 3;

/// Related notes with a remedy: "did you forget to use await", "an argument for … was not provided".
const SHOWN_NOTES: &[u32] = &[2773, 6210, 6236];
/// Prefixes of advice about compiler settings.
const ADVICE: [&str; 2] = ["Do you need to", "Try "];
/// An operand of arithmetic is no number.
const NOT_A_NUMBER: &[u32] = &[2362, 2363];
/// Parts of messages about one value that is used as a number.
const NUMERIC: &[&str] = &[
    " cannot be applied to type '",
    " be used as an index type",
    "'toFixed' does not exist",
    "'toPrecision' does not exist",
];
/// Too few or too many arguments.
const WRONG_COUNT: &[u32] = &[2554, 2555];

/// An error from TypeScript.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Reported {
    /// UTF-16 units from the start of the file.
    pub(crate) pos: u64,
    pub(crate) code: u32,
    pub(crate) category: u32,
    pub(crate) text: String,
    /// The reasons of the error, outermost first.
    pub(crate) message_chain: Vec<Reported>,
    pub(crate) related_information: Vec<Reported>,
}

/// The message for an error. `at` is the script from the place of the error on.
pub(crate) fn of(error: &Reported, at: &str, declarations: &str) -> String {
    if let Some(name) = unknown_name(error) {
        return unknown(&name, error);
    }
    let mut reasons: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(reason) = next {
        reasons.push(sentences(&reason.text));
        next = reason.message_chain.first();
    }
    if reasons.len() > MAX_REASONS {
        reasons.drain(1..reasons.len() - (MAX_REASONS - 1));
    }
    let mut message = reasons.join(": ");
    for note in &error.related_information {
        if SHOWN_NOTES.contains(&note.code) {
            message.push_str("; ");
            message.push_str(&sentences(&note.text));
        }
    }
    if WRONG_COUNT.contains(&error.code)
        && let Some(parameters) = parameters(at, declarations)
    {
        message.push_str(&format!("; it takes `({parameters})`"));
    }
    if let Some(instead) = crypto_hint(error) {
        message.push_str(": ");
        message.push_str(instead);
    }
    if let Some(hint) = number_hint(error) {
        message.push_str("; ");
        message.push_str(hint);
    }
    if let Some(member) = only_text(error) {
        message.push_str(&format!(
            "; its text is `result.{member}`, its lines are `result.{member}.split(\"\\n\")`"
        ));
    }
    shortened(&one_line(&message), MAX_MESSAGE)
}

/// Advice if the script uses a member of `crypto` that other runtimes have.
fn crypto_hint(error: &Reported) -> Option<&'static str> {
    let property = missing_property(error).filter(|_| error.text.contains("on type 'Crypto'."))?;
    callgate_script::replacement_for(&format!("crypto.{property}"))
}

/// The one text of an object that is used as a list.
fn only_text(error: &Reported) -> Option<&str> {
    if !error
        .text
        .contains(" must have a '[Symbol.iterator]()' method")
    {
        return None;
    }
    let types = quotes(&error.text);
    let members = types.first()?.strip_prefix('{')?.strip_suffix('}')?;
    if members.contains('{') {
        return None;
    }
    let members = members.split(';').map(str::trim);
    let mut texts = members.filter_map(|member| member.strip_suffix(": string"));
    let (name, rest) = word(texts.next()?)?;
    (rest.is_empty() && texts.next().is_none()).then_some(name)
}

/// Advice if a value of a different type is used as a number.
fn number_hint(error: &Reported) -> Option<&'static str> {
    let reasons = std::iter::successors(Some(error), |it| it.message_chain.first());
    let is_used = |ty: &str| {
        let mut reasons = reasons.clone();
        reasons.any(|reason| is_used_as_number(&reason.text, ty))
    };
    // This error does not say which type the operand has.
    if NOT_A_NUMBER.contains(&error.code) || is_used("Date") {
        return Some("date.getTime() is the number of a Date, and Number(text) that of a text");
    }
    is_used("bigint").then_some("Number(…) makes a number of a bigint, without digits beyond 2^53")
}

/// True if a message is about a value of the type `ty`, alone or in a union, in place of a number.
fn is_used_as_number(text: &str, ty: &str) -> bool {
    let types = quotes(text);
    let is = |at: usize, ty: &str| {
        // A union inside of an object type is not the type of the value.
        let union = types
            .get(at)
            .filter(|it| !it.contains(['{', '[', '(', '<']));
        union.is_some_and(|union| union.split(" | ").any(|member| member == ty))
    };
    let instead = |given: usize, needed: usize| is(given, ty) && is(needed, "number");
    if text.contains(" is not assignable to ") || text.contains(" have no overlap") {
        instead(0, 1)
    } else if text.contains(" cannot be applied to types '") {
        // The first name is the operator.
        instead(1, 2) || instead(2, 1)
    } else {
        NUMERIC.iter().any(|it| text.contains(it)) && (0..types.len()).any(|at| is(at, ty))
    }
}

/// The names and types in single quotes in a message.
fn quotes(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\'') {
        let (before, from) = rest.split_at(at);
        let begins = before.is_empty() || before.ends_with([' ', '(', '[']);
        rest = match quoted(from).filter(|_| begins) {
            Some((inside, after)) => {
                found.push(inside);
                after
            }
            None => from.get(1..).unwrap_or_default(),
        };
    }
    found
}

/// The property that a type lacks, if that is the error.
pub(crate) fn missing_property(error: &Reported) -> Option<&str> {
    let (property, rest) = error.text.strip_prefix("Property '")?.split_once('\'')?;
    rest.starts_with(" does not exist on type")
        .then_some(property)
}

/// The undeclared name, if that is the error.
pub(crate) fn unknown_name(error: &Reported) -> Option<String> {
    let rest = error.text.strip_prefix("Cannot find name '")?;
    let (name, _) = rest.split_once('\'')?;
    let is_name = !name.is_empty() && name.len() <= MAX_QUOTED;
    is_name.then(|| one_line(name))
}

fn unknown(name: &str, error: &Reported) -> String {
    let meant = error.text.split_once("Did you mean '");
    match meant.and_then(|(_, rest)| rest.split_once('\'')) {
        Some((meant, _)) => {
            let meant = shortened(&one_line(meant), MAX_QUOTED);
            format!("cannot find name `{name}`; did you mean `{meant}`?")
        }
        None => format!("cannot find name `{name}`: neither a tool nor the sandbox has this name"),
    }
}

/// The sentences of a message in lower case, without full stops and without advice about compiler
/// settings; quoted types are shortened and put in backquotes.
fn sentences(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.trim();
    let mut begins = true;
    while let Some(c) = rest.chars().next() {
        if begins && ADVICE.iter().any(|advice| rest.starts_with(advice)) {
            break;
        }
        if begins && !out.is_empty() {
            out.push_str("; ");
        }
        if c == '\''
            && (out.is_empty() || out.ends_with([' ', '(', '[']))
            && let Some((quoted, after)) = quoted(rest)
        {
            out.push_str(&format!("`{}`", shortened_type(quoted, MAX_QUOTED)));
            (rest, begins) = (after, false);
            continue;
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        let ends = matches!(c, '.' | '?') && (rest.is_empty() || rest.starts_with([' ', '\n']));
        match c {
            '.' if ends => {}
            c if begins => out.extend(c.to_lowercase()),
            c => out.push(c),
        }
        if ends {
            rest = rest.trim_start();
        }
        begins = ends;
    }
    out
}

/// The content of the single quotes at the start of a text, and the text after them. Strings in a
/// type have double quotes and any content.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let inside = text.get(1..)?;
    let mut in_string = false;
    let mut characters = inside.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' if in_string => drop(characters.next()),
            '"' => in_string = !in_string,
            '\'' if !in_string => {
                let after = inside.get(at + 1..)?;
                if after.is_empty()
                    || after.starts_with([' ', '.', ',', ';', ':', '?', ')', ']', '\n'])
                {
                    return Some((inside.get(..at)?, after)).filter(|_| at > 0);
                }
            }
            _ => {}
        }
    }
    None
}

/// A type of at most about `limit` bytes, cut between two of its parts.
fn shortened_type(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = start(text, limit);
    let between = head.rfind(['|', ';', ',']).filter(|at| *at > limit / 2);
    let head = between.map_or(head, |at| head.get(..=at).unwrap_or_default());
    let close = if text.starts_with('{') && text.ends_with('}') {
        " }"
    } else {
        ""
    };
    format!("{} …{close}", head.trim_end_matches([' ', '|', ',']))
}

/// The declaration of a tool after its name.
pub(crate) fn declared<'d>(name: &str, declarations: &'d str) -> Option<&'d str> {
    let (_, rest) = declarations.split_once(&format!("declare function {name}("))?;
    rest.split("\ndeclare function ").next()
}

/// The parameters of the tool whose name is the prefix of the text.
fn parameters(at: &str, declarations: &str) -> Option<String> {
    let (name, _) = word(at)?;
    let (parameters, _) = declared(name, declarations)?.split_once("): Promise<")?;
    // Every function has it, and it does not matter for a wrong input.
    let parameters = parameters
        .strip_suffix(", options?: CallOptions")
        .unwrap_or(parameters);
    let plain = without_comments(parameters);
    let line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let (name, ty) = line.split_once(": ")?;
    Some(format!("{name}: {}", shortened_type(ty, MAX_PARAMETERS)))
}

fn shortened(text: &str, limit: usize) -> String {
    let head = start(text, limit);
    let cut = if head.len() < text.len() { "…" } else { "" };
    format!("{head}{cut}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_hint_needs_a_number_as_target() {
        let check = |text: &str, ty: &str, expected: bool| {
            assert_eq!(is_used_as_number(text, ty), expected, "{text}");
        };
        for (given, needed, expected) in [
            ("bigint", "number", true),
            ("number | bigint", "number | undefined", true),
            ("string", "number | bigint", false),
            ("number", "bigint", false),
            ("number | bigint", "string", false),
            ("{ a: string | bigint | null; }", "number", false),
        ] {
            let assigned = format!("Type '{given}' is not assignable to type '{needed}'.");
            check(&assigned, "bigint", expected);
            let passed = format!(
                "Argument of type '{given}' is not assignable to parameter of type '{needed}'."
            );
            check(&passed, "bigint", expected);
        }
        let mixed = "Operator '+' cannot be applied to types 'number' and 'number | bigint'.";
        check(mixed, "bigint", true);
        check(mixed, "Date", false);
        let compared = "Operator '<' cannot be applied to types 'Date' and 'number'.";
        check(compared, "Date", true);
        check(
            "Operator '+' cannot be applied to type 'bigint'.",
            "bigint",
            true,
        );
        check(
            "Property 'toFixed' does not exist on type 'number | bigint'.",
            "bigint",
            true,
        );
        check(
            "Property 'length' does not exist on type 'bigint'.",
            "bigint",
            false,
        );
        check(
            "Type 'bigint' cannot be used as an index type.",
            "bigint",
            true,
        );
    }
}
