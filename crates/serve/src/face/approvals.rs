//! The functions that need approval, for a client whose user cannot be asked.

use callgate::Gate;

use super::texts::cut;
use crate::config::ServeConfig;
use crate::runs::Client;

/// The limit of a list of functions, in bytes.
const MAX_LIST: usize = 600;

/// True if somebody can be asked: the client's user or, if the client is not asked, perhaps the
/// gate's asker.
pub(crate) fn can_ask(options: &ServeConfig, client: &Client) -> bool {
    client.capabilities.form || !options.asks
}

/// The functions that need approval where nobody can be asked, so that their calls fail.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    asked: Vec<String>,
    allowed: Vec<String>,
    /// The arguments with which calls are allowed, with the functions of which this is so.
    only_with: Vec<(String, Vec<String>)>,
}

impl Approvals {
    /// Those of the functions that need approval; none if somebody can be asked.
    pub(crate) fn of(gate: &Gate, functions: &[&str], can_ask: bool) -> Self {
        let mut approvals = Self::default();
        if can_ask {
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
            } else if gate.view().asks(function) {
                approvals.asked.push(name);
            } else if !gate.view().denies(function) {
                approvals.allowed.push(name);
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
        let needs = "NEED APPROVAL, and here nobody can be asked, so these fail:";
        let (asked, allowed) = (self.asked.join(", "), self.allowed.join(", "));
        if asked.is_empty() {
            String::new()
        } else if asked.len() <= MAX_LIST {
            format!("{needs} {asked}.\n")
        } else if !allowed.is_empty() && allowed.len() <= MAX_LIST {
            format!(
                "ALLOWED without approval: {allowed}. The others need approval, and here nobody \
                 can be asked, so they fail.\n"
            )
        } else {
            let (count, all) = (self.asked.len(), self.asked.len() + self.allowed.len());
            format!("{needs} {count} of {all} functions; search_tools names them.\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(prefix: &str, count: usize) -> Vec<String> {
        (0..count).map(|at| format!("{prefix}_{at}")).collect()
    }

    #[test]
    fn shorter_list_of_functions_is_shown() {
        for (asked, allowed, expected) in [
            (0, 3, ""),
            (2, 900, "so these fail: ask_0, ask_1.\n"),
            (900, 2, "ALLOWED without approval: allow_0, allow_1. "),
            (900, 900, "so these fail: 900 of 1800 functions; "),
            (900, 0, "so these fail: 900 of 900 functions; "),
        ] {
            let approvals = Approvals {
                asked: names("ask", asked),
                allowed: names("allow", allowed),
                only_with: Vec::new(),
            };
            let lines = approvals.lines();
            assert!(lines.contains(expected), "{lines}");
            assert_eq!(lines.is_empty(), asked == 0, "{lines}");
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
}
