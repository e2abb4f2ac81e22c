//! Function names that no tool has: those of the host, and unknown ones with the reason.

use callgate_servers::{ServerState, Status};
use callgate_text::nearest;
use callgate_text::one_line;
use callgate_typegen::names::prefix;

/// The number of unknown names of a run for which the nearest tool is searched. The search reads the
/// whole catalog, and a script can cause any number of unknown names.
pub(crate) const MAX_SUGGESTIONS: u64 = 10;
/// The number of servers that a message lists.
const SHOWN_SERVERS: usize = 20;
/// The characters that a message repeats of a name from a script.
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
    /// The servers that the configuration disables, or leaves out for a mistake.
    pub(crate) disabled: Vec<(String, String)>,
    /// The servers that it leaves out for a mistake, each with the reason.
    reasons: Vec<(String, String)>,
}

impl ServerNames {
    pub(crate) fn new(
        in_use: impl Iterator<Item = String>,
        disabled: Vec<String>,
        reasons: Vec<(String, String)>,
    ) -> Self {
        Self {
            reasons,
            in_use: in_use.map(with_prefix).collect(),
            disabled: disabled.into_iter().map(with_prefix).collect(),
        }
    }

    /// All servers, also those that the configuration disables.
    pub(crate) fn all(&self) -> impl Iterator<Item = &(String, String)> {
        self.in_use.iter().chain(&self.disabled)
    }

    /// The prefix of the function names of a server's tools.
    pub(crate) fn prefix(&self, server: &str) -> Option<&str> {
        let (_, prefix) = self.all().find(|(name, _)| name == server)?;
        Some(prefix)
    }

    /// Why the configuration leaves this server out.
    pub(crate) fn reason(&self, server: &str) -> Option<String> {
        let (_, reason) = self.reasons.iter().find(|(name, _)| name == server)?;
        Some(reason.clone())
    }

    /// True if a tool of this server would have this name.
    pub(crate) fn owns(&self, server: &str, function: &str) -> bool {
        self.prefix(server)
            .is_some_and(|prefix| function.starts_with(prefix))
    }

    /// The disabled server that this name belongs to, if it belongs to no server in use.
    pub(crate) fn disabled_owner(&self, function: &str) -> Option<&str> {
        let owns = |(_, prefix): &&(String, String)| function.starts_with(prefix);
        let owner = self.disabled.iter().find(owns)?;
        let is_free = !self.in_use.iter().any(|server| owns(&server));
        is_free.then_some(&owner.0)
    }
}

/// A server's name, and the prefix of the function names of its tools.
pub(crate) fn with_prefix(server: String) -> (String, String) {
    let prefix = prefix(&server);
    (server, prefix)
}

/// Why no tool that a run may call has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NameProblem {
    /// The tool's server did not start, so its tools are not known.
    NotListed { server: String },
    /// The tool's server is disabled, or left out for a mistake in the configuration.
    Disabled { server: String, is_left_out: bool },
    /// The run may not use the tool's server, as this sentence says.
    OutOfScope(String),
    /// Its server lists the tool, but the catalog has it under a different name or not at all, for
    /// this reason.
    Dropped(String),
    /// The list of the name's server is incomplete, for this reason.
    Incomplete {
        server: String,
        gaps: String,
        near: Option<String>,
    },
    /// No server is known to have such a tool.
    Unknown { near: Option<String> },
}

impl NameProblem {
    /// The message about the name. It repeats nothing of a server but names and problems of lists.
    pub(crate) fn message(&self, name: &str) -> String {
        let unknown = |near: &Option<String>| {
            let shown: String = name.chars().take(SHOWN_NAME).collect();
            format!(
                "no tool is named {shown:?}{}",
                did_you_mean(near.as_deref())
            )
        };
        let unavailable = |server: &str, why: &str| {
            let shown = one_line(name, SHOWN_NAME);
            format!("{shown} is not available: server {server:?} {why}")
        };
        match self {
            Self::NotListed { server } => unavailable(server, "did not start"),
            Self::Disabled {
                server,
                is_left_out: false,
            } => unavailable(server, "is disabled"),
            Self::Disabled { server, .. } => unavailable(
                server,
                "is disabled in the configuration, or left out for a mistake there",
            ),
            Self::OutOfScope(refusal) => refusal.clone(),
            Self::Dropped(reason) => format!("{}: {reason}", unknown(&None)),
            Self::Incomplete { server, gaps, near } => {
                let unknown = unknown(near);
                format!("{unknown}; the list of server {server:?} is not whole: {gaps}")
            }
            Self::Unknown { near } => unknown(near),
        }
    }
}

/// `; did you mean "x"?`, or nothing.
pub(crate) fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean {near:?}?"))
        .unwrap_or_default()
}

/// The message for a name of no server, with the names of the servers.
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

/// Words of sentences that are about the text itself or its reader, not about the server.
const ABOUT_TEXT: [&str; 6] = [
    "audience",
    "these instructions",
    "this document",
    "this guide",
    "you are ",
    "you must ",
];

/// The first sentence of a Markdown text, without headings; `None` if it is about the text itself.
fn first_sentence(text: &str) -> Option<&str> {
    let is_prose = |line: &&str| {
        line.contains(char::is_alphanumeric) && !line.starts_with(['#', '|', '<', '`'])
    };
    let line = text.lines().map(str::trim).find(is_prose)?;
    let line = line.trim_start_matches(['-', '*', '>', ' ']);
    let end = line.find(". ").map_or(line.len(), |end| end + 1);
    let sentence = line.get(..end)?;
    let lower = sentence.to_lowercase();
    let is_about_text = ABOUT_TEXT.iter().any(|words| lower.contains(words));
    (!is_about_text).then_some(sentence)
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
            ("Audience: models that call this server. It draws.", None),
            ("You must read this guide first", None),
            ("```\n", None),
            ("# Title alone", None),
            ("", None),
        ] {
            assert_eq!(first_sentence(text), expected, "{text}");
        }
    }
}
