//! The functions that need approval, for a client whose user cannot be asked.

use std::collections::HashSet;

use callgate::{Gate, ToolInfo};
use callgate_typegen::names::prefix;

use super::texts::{cut, line};
use crate::config::{ServeConfig, ToolMode};
use crate::runs::{Answerer, Client, Outside};

/// The limit of a list of functions, in bytes.
const MAX_LIST: usize = 600;

/// The people who can be asked to approve calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The client's user, a program or, if neither is asked, perhaps the gate's asker.
    Client,
    /// People outside of the client, while the run of a script waits.
    Outside(Answerer),
    #[default]
    Nobody,
}

impl Asked {
    /// Those whom a client's calls in a mode can ask.
    pub(crate) fn of(
        options: &ServeConfig,
        outside: &Outside,
        mode: ToolMode,
        client: &Client,
    ) -> Self {
        if !options.asks || client.capabilities.form && outside.asks_clients() {
            return Self::Client;
        }
        // Only the run of a script can go on without its request.
        let answerer = outside.answerer().filter(|_| mode == ToolMode::Code);
        match answerer {
            Some(answerer) => Self::Outside(answerer),
            // A program answers within the request.
            None if outside.asks_program() => Self::Client,
            None => Self::Nobody,
        }
    }

    fn clause(self) -> &'static str {
        match self {
            Self::Client | Self::Nobody => "and here nobody can be asked, so these fail",
            Self::Outside(Answerer::Terminal) => {
                "and a person is asked outside of this client, with `callgate questions`, while the \
                 run waits"
            }
            Self::Outside(Answerer::Operator) => {
                "and an operator of this server is asked while the run waits"
            }
        }
    }
}

/// The functions that need approval where the client's user cannot be asked.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    by: Asked,
    asked: Vec<String>,
    /// The arguments with which calls are allowed, with the functions of which this is so.
    only_with: Vec<(String, Vec<String>)>,
    /// All functions of each server; empty if only some are considered.
    servers: Vec<ServerApprovals>,
}

/// The functions of one server.
#[derive(Debug)]
struct ServerApprovals {
    server: String,
    asked: Vec<String>,
    /// Those that do not always need approval.
    others: Vec<String>,
}

impl Approvals {
    /// Those of all functions that can be called; none if the client's user can be asked.
    pub(crate) fn of_all(gate: &Gate, tools: &[ToolInfo], by: Asked) -> Self {
        let functions: Vec<&str> = tools.iter().map(|tool| tool.function.as_str()).collect();
        let mut approvals = Self::of(gate, &functions, by);
        let asked: HashSet<&String> = approvals.asked.iter().collect();
        // The tools of a server follow each other.
        let by_server = tools.chunk_by(|one, next| one.server == next.server);
        let servers = by_server.map(|tools| {
            let functions = tools.iter().map(|tool| tool.function.clone());
            let (asked, others) = functions.partition(|function| asked.contains(function));
            let server = tools.first().map(|tool| tool.server.clone());
            ServerApprovals {
                server: server.unwrap_or_default(),
                asked,
                others,
            }
        });
        let servers = servers.collect();
        approvals.servers = servers;
        approvals
    }

    /// Those of the functions that need approval; none if the client's user can be asked.
    pub(crate) fn of(gate: &Gate, functions: &[&str], by: Asked) -> Self {
        let mut approvals = Self {
            by,
            ..Self::default()
        };
        if by == Asked::Client {
            return approvals;
        }
        for function in functions {
            let name = (*function).to_owned();
            if let Some(arguments) = gate.view().allowed_arguments(function) {
                let mut groups = approvals.only_with.iter_mut();
                match groups.find(|(known, _)| *known == arguments) {
                    Some((_, same)) => same.push(name),
                    None => approvals.only_with.push((arguments, vec![name])),
                }
            } else if gate.view().rule_in_short(function) == Some("ask") {
                approvals.asked.push(name);
            }
        }
        approvals
    }

    /// A line about functions that need approval, and one about those that do not with certain
    /// arguments.
    pub(crate) fn lines(&self) -> String {
        let mut text = self.asked_line();
        if !self.only_with.is_empty() {
            let groups = self.only_with.iter();
            let groups = groups.map(|(arguments, functions)| {
                let functions = cut(functions, ", ", MAX_LIST);
                format!("{functions}: {arguments}")
            });
            let groups: Vec<String> = groups.collect();
            text += &format!("ONLY WITH: {}\n", cut(&groups, "; ", MAX_LIST));
        }
        text
    }

    fn asked_line(&self) -> String {
        if self.asked.is_empty() {
            return String::new();
        }
        let names = self.asked.join(", ");
        let by_server = self.by_server();
        // Names say more than patterns that are only a little shorter.
        let shown = if by_server.is_empty() {
            cut(&self.asked, ", ", MAX_LIST)
        } else if names.len() <= MAX_LIST.min(by_server.len() * 2) {
            names
        } else {
            by_server
        };
        format!("NEED APPROVAL, {}: {shown}.\n", self.by.clause())
    }

    /// The functions that need approval by server: whole servers, then parts of others, the
    /// shortest first, as far as there is room.
    fn by_server(&self) -> String {
        let is_whole = |server: &&ServerApprovals| server.others.is_empty();
        let asked = self.servers.iter().filter(|it| !it.asked.is_empty());
        let (whole, parts): (Vec<&ServerApprovals>, Vec<_>) = asked.partition(is_whole);
        let whole: Vec<String> = whole.iter().map(|server| line(&server.server)).collect();
        let whole = if whole.is_empty() {
            String::new()
        } else {
            format!("all of {}; ", cut(&whole, ", ", MAX_LIST))
        };
        let room = MAX_LIST.saturating_sub(whole.len());
        let mut parts: Vec<String> = parts.iter().map(|part| part.functions(room)).collect();
        parts.sort_by_key(String::len);
        let text = whole + &cut(&parts, "; ", room);
        text.trim_end_matches("; ").to_owned()
    }
}

impl ServerApprovals {
    /// The functions that need approval, or all but the others, whichever is shorter, in about this
    /// number of bytes.
    fn functions(&self, room: usize) -> String {
        let asked = cut(&self.patterns(&self.asked, &self.others), ", ", room);
        let others = self.patterns(&self.others, &self.asked).join(", ");
        let but = format!("all of {} but {others}", line(&self.server));
        if but.len() < asked.len() { but } else { asked }
    }

    /// Functions, with a pattern for those that begin with the same word, unless some of the
    /// `others` begin so, too.
    fn patterns(&self, functions: &[String], others: &[String]) -> Vec<String> {
        let server = prefix(&self.server).len();
        let mut shown: Vec<String> = Vec::new();
        for function in functions {
            let begin = begin(function, server);
            let begins = |it: &&String| it.starts_with(begin);
            let is_alone = functions.iter().filter(begins).count() < 2;
            let text = if is_alone || others.iter().any(|it| begins(&it)) {
                function.clone()
            } else {
                format!("{begin}*")
            };
            if !shown.contains(&text) {
                shown.push(text);
            }
        }
        shown
    }
}

/// The begin of a function's name up to the first word after the server's, which has this many
/// bytes: `office_list_` of `office_list_users`, `crm_get` of `crm_getUser`.
fn begin(function: &str, server: usize) -> &str {
    let own = function.get(server..).unwrap_or_default();
    let end = own.char_indices().skip(1).find_map(|(at, c)| {
        let end = if c == '_' { at + 1 } else { at };
        (c == '_' || c.is_ascii_uppercase()).then_some(server + end)
    });
    end.and_then(|end| function.get(..end)).unwrap_or(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(prefix: &str, count: usize) -> Vec<String> {
        (0..count).map(|at| format!("{prefix}_{at}")).collect()
    }

    fn server(name: &str, asked: &[&str], others: &[&str]) -> ServerApprovals {
        let functions = |own: &[&str]| own.iter().map(|own| format!("{name}_{own}")).collect();
        ServerApprovals {
            server: name.to_owned(),
            asked: functions(asked),
            others: functions(others),
        }
    }

    /// The approvals of these servers.
    fn of(servers: Vec<ServerApprovals>) -> Approvals {
        Approvals {
            asked: servers.iter().flat_map(|it| it.asked.clone()).collect(),
            servers,
            ..Approvals::default()
        }
    }

    #[test]
    fn long_list_of_functions_is_cut() {
        for (asked, expected) in [
            (0, ""),
            (2, "so these fail: ask_0, ask_1.\n"),
            (900, "so these fail: ask_0, ask_1, "),
        ] {
            let approvals = Approvals {
                asked: names("ask", asked),
                ..Approvals::default()
            };
            let lines = approvals.lines();
            assert!(lines.contains(expected), "{lines}");
            assert_eq!(lines.is_empty(), asked == 0, "{lines}");
            assert!(lines.len() < MAX_LIST + 100, "{lines}");
        }
        let only_with = vec![("to one of [\"a\"]".to_owned(), names("mail", 2))];
        let approvals = Approvals {
            only_with,
            ..Approvals::default()
        };
        assert_eq!(
            approvals.lines(),
            "ONLY WITH: mail_0, mail_1: to one of [\"a\"]\n"
        );
    }

    #[test]
    fn people_outside_are_named() {
        for (answerer, expected) in [
            (
                Answerer::Terminal,
                "NEED APPROVAL, and a person is asked outside of this client, with `callgate \
                 questions`, while the run waits: ask_0.\n",
            ),
            (
                Answerer::Operator,
                "NEED APPROVAL, and an operator of this server is asked while the run waits: ask_0.\n",
            ),
        ] {
            let approvals = Approvals {
                by: Asked::Outside(answerer),
                asked: names("ask", 1),
                ..Approvals::default()
            };
            assert_eq!(approvals.lines(), expected);
        }
    }

    #[test]
    fn many_functions_are_named_by_server_and_pattern() {
        let many: Vec<String> = (0..60).map(|at| format!("page{at:03}_x")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let drops = ["dropTable", "dropIndex", "alter"];
        for (servers, expected) in [
            (
                vec![
                    server("browser", &many, &[]),
                    server("desk", &many, &["get_a", "get_b", "list"]),
                    server("db", &drops, &many),
                    server("free", &[], &["see"]),
                ],
                "fail: all of browser; db_drop*, db_alter; all of desk but desk_get_*, desk_list.\n",
            ),
            (
                vec![server("cam", &many, &many), server("mic", &many, &[])],
                "cam_page037_x, cam_page038_x, and 21 more.\n",
            ),
        ] {
            let lines = of(servers).lines();
            assert!(lines.ends_with(expected), "{lines}");
        }
    }
}
