//! Function names that no tool has: those of the host, and unknown ones with the server they
//! belong to and the message about them.

use callgate_policy::nearest;
use callgate_servers::{ServerState, Status};
use callgate_typegen::names::prefix;

use crate::harmless::one_line;

/// Unknown names of a run for which the nearest tool is searched. The search reads the
/// whole catalog, and a script can cause any number of them.
pub(crate) const MAX_SUGGESTIONS: u64 = 10;
/// Names of servers that a message lists.
const SHOWN_SERVERS: usize = 20;
/// Characters of a name that a message repeats; the name comes from a script.
const SHOWN_NAME: usize = 80;
/// The longest description taken from a server, in characters.
const MAX_DESCRIPTION: usize = 200;

/// A function of `mcp` that the host answers itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostFunction {
    SearchTools,
    GetToolDetails,
    Extract,
}

impl HostFunction {
    /// The function of this name. No server's tool has such a name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [Self::SearchTools, Self::GetToolDetails, Self::Extract];
        all.into_iter().find(|function| function.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SearchTools => "mcp.searchTools",
            Self::GetToolDetails => "mcp.getToolDetails",
            Self::Extract => "mcp.extract",
        }
    }
}

/// The servers' names, each with the prefix of the function names of its tools.
#[derive(Default)]
pub(crate) struct ServerNames {
    in_use: Vec<(String, String)>,
    /// The servers that the configuration disables.
    pub(crate) left_out: Vec<(String, String)>,
    /// Servers that it leaves out for a reason, which stands beside.
    reasons: Vec<(String, String)>,
}

impl ServerNames {
    pub(crate) fn new(
        in_use: impl Iterator<Item = String>,
        left_out: Vec<String>,
        reasons: Vec<(String, String)>,
    ) -> Self {
        Self {
            reasons,
            in_use: in_use.map(with_prefix).collect(),
            left_out: left_out.into_iter().map(with_prefix).collect(),
        }
    }

    /// All servers, also those that the configuration disables.
    pub(crate) fn all(&self) -> impl Iterator<Item = &(String, String)> {
        self.in_use.iter().chain(&self.left_out)
    }

    /// The prefix of the function names of a server's tools.
    pub(crate) fn prefix(&self, server: &str) -> Option<&str> {
        let (_, prefix) = self.all().find(|(name, _)| name == server)?;
        Some(prefix)
    }

    /// Why this server is left out, if it is not disabled.
    pub(crate) fn reason(&self, server: &str) -> Option<String> {
        let (_, reason) = self.reasons.iter().find(|(name, _)| name == server)?;
        Some(reason.clone())
    }

    /// True if a tool of this server would have this name.
    pub(crate) fn owns(&self, server: &str, function: &str) -> bool {
        self.prefix(server)
            .is_some_and(|prefix| function.starts_with(prefix))
    }

    /// The server that the configuration disables and that this name belongs to, if it
    /// belongs to no server in use.
    pub(crate) fn left_out_owner(&self, function: &str) -> Option<&str> {
        let owns = |(_, prefix): &&(String, String)| function.starts_with(prefix);
        let owner = self.left_out.iter().find(owns)?;
        let is_free = !self.in_use.iter().any(|server| owns(&server));
        is_free.then_some(&owner.0)
    }
}

/// A server's name, and the prefix of the function names of its tools.
pub(crate) fn with_prefix(server: String) -> (String, String) {
    let prefix = prefix(&server);
    (server, prefix)
}

/// The message for a name that is not a tool.
pub(crate) fn unknown_tool_message(function: &str, near: Option<&str>) -> String {
    let shown: String = function.chars().take(SHOWN_NAME).collect();
    format!("no tool is named {shown:?}{}", did_you_mean(near))
}

/// The message for a pattern that matches no tool.
pub(crate) fn unmatched_message(pattern: &str, near: Option<&str>) -> String {
    format!("no tool matches {pattern:?}{}", did_you_mean(near))
}

/// `; did you mean "x"?`, or nothing.
pub(crate) fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean {near:?}?"))
        .unwrap_or_default()
}

/// The message for a name of no server, with the names that there are.
pub(crate) fn no_server(name: &str, known: &[&str]) -> String {
    let near = nearest(name, known.iter().copied());
    let shown = known.iter().take(SHOWN_SERVERS);
    let mut list: Vec<String> = shown.map(|name| one_line(name, SHOWN_NAME)).collect();
    if known.len() > SHOWN_SERVERS {
        list.push(format!("{} more", known.len() - SHOWN_SERVERS));
    }
    let servers = if list.is_empty() {
        "there are none".to_owned()
    } else {
        format!("the servers: {}", list.join(", "))
    };
    format!(
        "no server is named {name:?}{}; {servers}",
        did_you_mean(near)
    )
}

/// The message for a name that belongs to a server without a list of tools.
pub(crate) fn unavailable_message(function: &str, server: &str, why: &str) -> String {
    let shown = one_line(function, SHOWN_NAME);
    format!("{shown} is not available: server {server:?} {why}")
}

/// The purpose of a server in one line: from the configuration, else from the server.
pub(crate) fn server_description(state: &ServerState) -> Option<String> {
    if state.description.is_some() {
        return state.description.clone();
    }
    let Status::Ready(ready) = &state.status else {
        return None;
    };
    let instructions = ready.instructions.as_deref().unwrap_or_default();
    let purpose = first_sentence(instructions).or(ready.title.as_deref())?;
    Some(one_line(purpose, MAX_DESCRIPTION))
}

/// The first sentence of a Markdown text, without headings.
fn first_sentence(text: &str) -> Option<&str> {
    let is_prose = |line: &&str| {
        line.contains(char::is_alphanumeric) && !line.starts_with(['#', '|', '<', '`'])
    };
    let line = text.lines().map(str::trim).find(is_prose)?;
    let line = line.trim_start_matches(['-', '*', '>', ' ']);
    let end = line.find(". ").map_or(line.len(), |end| end + 1);
    line.get(..end)
}

#[cfg(test)]
mod tests {
    use super::first_sentence;

    #[test]
    fn server_purpose_is_the_first_sentence() {
        for (text, expected) in [
            ("Reads files. Writes, too.", Some("Reads files.")),
            (
                "# Notes Server – Instructions\n\n## Purpose\nKeeps notes of v1.2 and later\nand more",
                Some("Keeps notes of v1.2 and later"),
            ),
            ("---\n<!-- x -->\n- Draws maps. Fast.", Some("Draws maps.")),
            ("```\n", None),
            ("# Title alone", None),
            ("", None),
        ] {
            assert_eq!(first_sentence(text), expected, "{text}");
        }
    }
}
