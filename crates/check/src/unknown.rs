//! Undeclared names, as the script spells them, and values of type `unknown`.

use crate::diagnostic::Unknown;
use crate::message::{self, Reported};
use crate::scan::{MAX_NAME, start, word};
use crate::script::Script;

/// Suffixes of the names of functions that call a tool by name.
const CALLS: [&str; 4] = ["tool", "call", "invoke", "execute"];
/// Maximum bytes of arguments that are searched for the tool's name.
const MAX_ARGUMENTS: usize = 200;
/// Maximum tools that a hint names.
const MAX_TOOLS: usize = 3;
/// Maximum variables that lead from a value to its call.
const MAX_STEPS: usize = 4;
/// Maximum bytes around a name that are searched for its declaration.
const MAX_LIST: usize = 300;
/// Maximum bytes of an expression that is searched for calls.
const MAX_VALUE: usize = 2000;

/// The undeclared name, if that is the error. `at` is the script from the place of the error on.
pub(crate) fn name(error: &Reported, at: &str) -> Option<Unknown> {
    if let Some(name) = message::unknown_name(error) {
        let (path, tool) = path(at)
            .filter(|(path, _)| path.starts_with(&name))
            .unwrap_or_else(|| (name.clone(), None));
        let tool = tool.unwrap_or_else(|| path.clone());
        return Some(Unknown { name, path, tool });
    }
    let reason = error.message_chain.first().unwrap_or(error);
    let property = message::missing_property(reason).filter(|_| is_of_mcp(reason))?;
    let (path, tool) = path(at.trim_start_matches("mcp")).unwrap_or_default();
    let name = format!("mcp.{property}");
    let path = match path.trim_start_matches('.') {
        "" => name.clone(),
        path => format!("mcp.{path}"),
    };
    let tool = tool.unwrap_or_else(|| path.clone());
    Some(Unknown { name, path, tool })
}

/// True if the error is that `mcp` lacks a property.
pub(crate) fn is_of_mcp(error: &Reported) -> bool {
    error.text.contains(" does not exist on type 'typeof mcp'.")
}

/// The dotted name at the start of a text, `a.b` for `a?.["b"](…)`, and the tool among its arguments
/// if its last word suggests a call of a tool.
fn path(text: &str) -> Option<(String, Option<String>)> {
    let (mut last, mut rest) = word(text).unwrap_or(("", text));
    let mut path = last.to_owned();
    while path.len() < MAX_NAME {
        rest = rest.trim_start();
        rest = rest.strip_prefix('?').unwrap_or(rest);
        let after = rest.strip_prefix('.').unwrap_or(rest);
        let step = match after.strip_prefix('[') {
            Some(inside) => string(inside).filter(|(_, rest)| rest.starts_with(']')),
            None if after.len() < rest.len() => word(after.trim_start()),
            None => None,
        };
        let Some((step, after)) = step else { break };
        path = format!("{path}.{step}");
        (last, rest) = (step, after.strip_prefix(']').unwrap_or(after));
    }
    let is_call = CALLS
        .iter()
        .any(|call| last.to_ascii_lowercase().ends_with(call));
    let arguments = rest.strip_prefix('(').filter(|_| is_call);
    let tool = arguments.and_then(|text| named(start(text, MAX_ARGUMENTS)));
    (!path.is_empty() && path.len() <= MAX_NAME).then_some((path, tool))
}

/// The tool that arguments name: the first string, with a second one right after it.
fn named(arguments: &str) -> Option<String> {
    let at = arguments.find(['"', '\''])?;
    let (first, rest) = string(arguments.get(at..)?)?;
    let second = rest
        .trim_start()
        .strip_prefix(',')
        .and_then(|rest| string(rest.trim_start()));
    Some(match second {
        Some((second, _)) => format!("{first}.{second}"),
        None => first.to_owned(),
    })
}

/// The content of the quotes at the start of a text, and the rest.
fn string(text: &str) -> Option<(&str, &str)> {
    let mark = text
        .chars()
        .next()
        .filter(|mark| matches!(mark, '"' | '\''))?;
    let (inside, rest) = text.get(1..)?.split_once(mark)?;
    let is_name = |c: char| c.is_alphanumeric() || "_$.-/:".contains(c);
    (!inside.is_empty() && inside.chars().all(is_name)).then_some((inside, rest))
}

/// The advice for an error about a value of type `unknown`, if the value is a tool's result.
pub(crate) fn result_hint(error: &Reported, at: &str, script: &Script) -> Option<String> {
    let is_unknown = |error: &Reported| {
        ["'unknown'", "'Promise<unknown>'"]
            .iter()
            .any(|ty| error.text.contains(ty))
    };
    // The error for a spread does not name the type.
    let is_spread = error.code == 2698;
    if !is_spread && !is_unknown(error) && !error.message_chain.iter().any(is_unknown) {
        return None;
    }
    let tools = untyped_tools(at, script);
    let hint = match tools.as_slice() {
        [] => return None,
        [tool] => format!("{tool} declares no result"),
        tools => format!("{} declare no result", tools.join(", ")),
    };
    let waited = if error.text.contains("'Promise<unknown>'") {
        "await it and "
    } else {
        ""
    };
    let hint = format!("{hint}; {waited}read it with mcp.text(result) or mcp.json(result)");
    Some(hint)
}

/// The tools without a declared result that a value can come from: the tool of its own call or of its
/// variable, or else all that the script calls. A variable of a different origin has no such tool, and
/// an argument of a function can come from anywhere.
fn untyped_tools<'s>(at: &'s str, script: &'s Script) -> Vec<&'s str> {
    let is_tool = |name: &&str| message::declared(name, &script.declarations).is_some();
    let is_untyped = |name: &&str| {
        let own = message::declared(name, &script.declarations);
        let is_untyped = own.map(|own| own.trim_end().ends_with("): Promise<unknown>;"));
        *name == "mcp.callTool" || is_untyped == Some(true)
    };
    let before = script.text.strip_suffix(at).unwrap_or_default();
    let mut variable = variable(at);
    let mut texts = Vec::new();
    while texts.len() < MAX_STEPS
        && let Some(name) = variable
        && let Some(origin) = origin(name, before)
    {
        let Origin::Value(value) = origin else {
            return Vec::new();
        };
        texts.push(value);
        variable = word(value.trim_start_matches("await ")).map(|(name, _)| name);
    }
    let has_origin = !texts.is_empty();
    // The call in the statement itself.
    texts.push(at.split([';', '\n']).next().unwrap_or_default());
    for text in texts {
        let found = calls(text);
        if let Some(tool) = found.iter().find(|name| is_untyped(name)) {
            return vec![tool];
        }
        if found.iter().any(is_tool) {
            return Vec::new();
        }
    }
    if has_origin {
        return Vec::new();
    }
    let mut tools = calls(&script.text);
    tools.retain(|name| is_untyped(name));
    tools.dedup();
    tools.truncate(MAX_TOOLS);
    tools
}

/// The variable at the start of a text, also as the value of a member.
fn variable(at: &str) -> Option<&str> {
    let value = at.trim_start_matches(['(', ' ']);
    let (name, rest) = word(value.trim_start_matches("await "))?;
    let member = rest.strip_prefix(": ").and_then(word);
    Some(member.map_or(name, |(name, _)| name))
}

/// The functions that an expression calls, without those whose results it reads with `mcp.json` or
/// `mcp.text`.
fn calls(text: &str) -> Vec<&str> {
    let before = text.match_indices('(').filter_map(|(at, _)| text.get(..at));
    let name_length = |before: &str| -> Option<usize> {
        let name = before.rsplit(|c: char| !is_part(c) && c != '.').next()?;
        let outside = before.strip_suffix(name)?.trim_end();
        let outside = outside.strip_suffix("await").unwrap_or(outside).trim_end();
        let is_read = ["mcp.json(", "mcp.text("]
            .iter()
            .any(|it| outside.ends_with(it));
        (!name.is_empty() && !is_read).then_some(name.len())
    };
    let names = before.filter_map(|before| before.get(before.len() - name_length(before)?..));
    names.collect()
}

/// The origin of a variable.
enum Origin<'s> {
    /// This expression, or an element of it.
    Value(&'s str),
    /// An argument of a function.
    Argument,
}

/// The nearest origin of a variable before its use.
fn origin<'s>(name: &str, before: &'s str) -> Option<Origin<'s>> {
    before.rmatch_indices(name).find_map(|(at, _)| {
        let (head, after) = (before.get(..at)?, before.get(at + name.len()..)?);
        let is_inside = |c: char| is_part(c) || c == '.';
        if head.ends_with(is_inside) || after.starts_with(is_part) {
            return None;
        }
        let head = head.get(head.ceil_char_boundary(head.len().saturating_sub(MAX_LIST))..)?;
        let near = start(after, MAX_LIST);
        if is_parameter(head, near) {
            return Some(Origin::Argument);
        }
        // Most names are not assigned to, which the near text shows.
        assigned(near)?;
        assigned(after).map(|value| Origin::Value(expression(value)))
    })
}

/// True if a name between these texts is a parameter of a function.
fn is_parameter(head: &str, after: &str) -> bool {
    let ty = after.trim_start_matches('?').strip_prefix(": unknown");
    let is_declared = ty.is_some_and(|rest| rest.trim_start_matches("[]").starts_with([',', ')']));
    if is_declared || after.trim_start().starts_with("=>") {
        return true;
    }
    let (Some((function, list)), Some((rest, end))) =
        (head.rsplit_once('('), after.split_once(')'))
    else {
        return false;
    };
    if list.contains([')', ';']) || rest.contains(['(', ';']) {
        return false;
    }
    let function = function.trim_end();
    let is_function = |text: &str| text.trim_end().ends_with("function");
    end.trim_start().starts_with("=>")
        || is_function(function)
        || is_function(function.trim_end_matches(is_part))
}

/// The text after `=` or `of` that follows a variable, its type, and others that are taken apart
/// with it.
fn assigned(after: &str) -> Option<&str> {
    let is_name = |c: char| is_part(c) || c == ',' || c == ' ';
    let apart = after.split_once([']', '}']);
    let apart = apart.filter(|(others, _)| others.chars().all(is_name));
    let text = apart.map_or(after, |(_, rest)| rest).trim_start();
    let text = match text.strip_prefix(':') {
        Some(ty) => ty.get(ty.find(['=', ';', '\n', ')'])?..)?,
        None => text,
    };
    let value = text
        .strip_prefix("of ")
        .or_else(|| text.strip_prefix('='))?;
    (!value.starts_with(['=', '>'])).then(|| value.trim_start())
}

/// The expression at the start of a text: up to the end of its line or statement, or of the brackets
/// around it.
fn expression(text: &str) -> &str {
    let text = start(text, MAX_VALUE);
    let mut open = 0_u32;
    let end = text.find(|c: char| match c {
        '(' | '[' | '{' => {
            open += 1;
            false
        }
        ')' | ']' | '}' if open > 0 => {
            open -= 1;
            false
        }
        ')' | ']' | '}' => true,
        ';' | '\n' => open == 0,
        _ => false,
    });
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// True for a character of an identifier.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn dotted_names_and_called_tools_are_found() {
        let check = |text: &str, name: &str, tool: Option<&str>| {
            let expected = Some((name.to_owned(), tool.map(str::to_owned)));
            assert_eq!(path(text), expected, "{text}");
        };
        check("fs", "fs", None);
        check("fs.read('a')", "fs.read", None);
        check("fs\n  ?.['read-file']?.({})", "fs.read-file", None);
        check("tools[\"a_b\"]()", "tools.a_b", None);
        check("tools[name]()", "tools", None);
        check("fs().read", "fs", None);
        check("client.callTool('a.b', {})", "client.callTool", Some("a.b"));
        check(
            "client.callTool({ name: 'a', arguments: {} })",
            "client.callTool",
            Some("a"),
        );
        check("call_tool(\"a/b\")", "call_tool", Some("a/b"));
        check("use_mcp_tool('a', 'b', {})", "use_mcp_tool", Some("a.b"));
        check("call({ text: 'what it says' })", "call", None);
        for text in ["", "(a)", "'a'.b", &"a.".repeat(1000)] {
            assert_eq!(path(text), None, "{text}");
        }
    }
}
