//! Undeclared names, as the script spells them, and values of type `unknown`.

use crate::diagnostic::Unknown;
use crate::message::{self, Reported};
use crate::scan::{MAX_NAME, word};
use crate::script::Script;

/// Suffixes of the names of functions that call a tool by name.
const CALLS: [&str; 4] = ["tool", "call", "invoke", "execute"];
/// Maximum bytes of arguments that are searched for the tool's name.
const MAX_ARGUMENTS: usize = 200;
/// Maximum tools that a hint names.
const MAX_TOOLS: usize = 3;

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
    let tool =
        arguments.and_then(|text| named(text.get(..text.floor_char_boundary(MAX_ARGUMENTS))?));
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
/// variable, or else all that the script calls. The parameter of an arrow function can come from
/// anywhere.
fn untyped_tools<'s>(at: &'s str, script: &'s Script) -> Vec<&'s str> {
    let is_untyped = |name: &str| {
        let own = message::declared(name, &script.declarations);
        let is_untyped = own.map(|own| own.trim_end().ends_with("): Promise<unknown>;"));
        name == "mcp.callTool" || is_untyped == Some(true)
    };
    let calls = |text: &'s str| {
        let is_end = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '.'));
        let before = text.match_indices('(').filter_map(|(at, _)| text.get(..at));
        let names = before.filter_map(|before| before.rsplit(is_end).next());
        names.filter(|name| !name.is_empty()).collect::<Vec<_>>()
    };
    // The call in the statement itself, or the one whose result the variable got.
    let statement = at.split([';', '\n']).next().unwrap_or_default();
    let value = at.trim_start_matches(['(', ' ']);
    let variable = word(value.trim_start_matches("await "));
    let assigned = variable.and_then(|(name, _)| {
        let assignment = [format!("{name} = "), format!("{name}=")];
        let (_, value) = assignment
            .iter()
            .find_map(|it| script.text.split_once(it.as_str()))?;
        value.split([';', '\n']).next()
    });
    for text in [assigned, Some(statement)].into_iter().flatten() {
        let found = calls(text);
        if let Some(tool) = found.iter().find(|name| is_untyped(name)) {
            return vec![tool];
        }
        let is_tool = |name: &&str| message::declared(name, &script.declarations).is_some();
        if found.iter().any(is_tool) {
            return Vec::new();
        }
    }
    if variable.is_some_and(|(name, _)| is_parameter(name, &script.text)) {
        return Vec::new();
    }
    let mut tools = calls(&script.text);
    tools.retain(|name| is_untyped(name));
    tools.dedup();
    tools.truncate(MAX_TOOLS);
    tools
}

/// True if an arrow function of the script has a parameter of this name.
fn is_parameter(name: &str, script: &str) -> bool {
    script.match_indices("=>").any(|(at, _)| {
        let before = script.get(..at).unwrap_or_default().trim_end();
        let parameters = match before.strip_suffix(')') {
            Some(inside) => inside.rsplit_once('(').map_or(inside, |(_, list)| list),
            None => before
                .rsplit([' ', '(', ',', '=', '\n'])
                .next()
                .unwrap_or(before),
        };
        let mut names = parameters.split(',').filter_map(|it| word(it.trim_start()));
        names.any(|(parameter, _)| parameter == name)
    })
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
