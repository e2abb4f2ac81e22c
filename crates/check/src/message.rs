//! Shortens TypeScript's messages: cuts long types, drops advice about compiler settings, and joins a
//! chain of reasons into one line.

use serde::Deserialize;

use crate::scan::{one_line, without_comments, word};

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
    if message.contains("bigint") {
        message.push_str("; Number(…) makes a number of a bigint, without digits beyond 2^53");
    }
    shortened(&one_line(&message), MAX_MESSAGE)
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
    let head = text
        .get(..text.floor_char_boundary(limit))
        .unwrap_or_default();
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
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = text
        .get(..text.floor_char_boundary(limit))
        .unwrap_or_default();
    format!("{head}…")
}
