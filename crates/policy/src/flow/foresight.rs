//! What rules over flows may have to say of two tools, before there is any data.

use super::finding::Side;
use super::rules::FlowRules;
use crate::decision::Verdict;

impl FlowRules {
    /// What may become of data of one tool on its way to another, in a sentence: the
    /// strictest that there is. `None` where all of it passes.
    pub fn foresee(&self, from: &Side, to: &Side) -> Option<String> {
        if from.server == to.server {
            return None;
        }
        let (source, target) = (self.labelled(from), self.labelled(to));
        let find = |action: Verdict| {
            let mut rules = self.iter().filter(|rule| rule.action == action);
            rules.find(|rule| rule.is_between(&source, &target))
        };
        // One for much data alone leaves the rest as it is.
        let passes = || {
            self.iter().any(|rule| {
                rule.action == Verdict::Allow
                    && rule.min_bytes.is_none()
                    && rule.is_between(&source, &target)
            })
        };
        let (from, to) = (&from.function, &to.function);
        let (what, why) = if let Some(rule) = find(Verdict::Deny) {
            ("denied", rule.to_string())
        } else if let Some(rule) = find(Verdict::Ask) {
            ("asked about", rule.to_string())
        } else if passes() {
            return None;
        } else {
            let label = source.label_not_on(&target)?;
            let why = format!("{from} is labelled {label:?} and {to} is not");
            ("asked about", why)
        };
        Some(format!(
            "data of {from} may be {what} on its way to {to}: {why}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::{FlowEnd, FlowRule};
    use super::*;

    fn foreseen(from: &str, to: &str) -> Option<String> {
        let mut rules = FlowRules::default();
        for (from, to, min_bytes, action) in [
            ("fs*", "mail", None, Verdict::Allow),
            ("fs", "mail_*", Some(30), Verdict::Ask),
            ("fs_list", "label:outside", Some(30), Verdict::Deny),
            ("crm", "wiki", None, Verdict::Allow),
            ("crm", "log", Some(30), Verdict::Allow),
        ] {
            rules.push(FlowRule {
                from: FlowEnd::parse(from).expect("an end"),
                to: FlowEnd::parse(to).expect("an end"),
                min_bytes,
                action,
            });
        }
        rules.label_server("crm", "private");
        rules.label_server("archive", "private");
        rules.label_server("mail", "outside");
        let side = |function: &str| {
            let (server, tool) = function.split_once('_').expect("server_tool");
            Side::new(function, server, tool)
        };
        rules.foresee(&side(from), &side(to))
    }

    #[test]
    fn the_strictest_that_may_be_said_is_told() {
        for (from, to, said) in [
            (
                "fs_list",
                "mail_send",
                "data of fs_list may be denied on its way to mail_send: \
                 the rule from \"fs_list\" to \"label:outside\" in flows",
            ),
            (
                "fs_read",
                "mail_send",
                "data of fs_read may be asked about on its way to mail_send: \
                 the rule from \"fs\" to \"mail_*\" in flows",
            ),
            (
                "crm_get",
                "log_add",
                "data of crm_get may be asked about on its way to log_add: \
                 crm_get is labelled \"private\" and log_add is not",
            ),
        ] {
            assert_eq!(foreseen(from, to).as_deref(), Some(said));
        }
    }

    #[test]
    fn nothing_is_said_of_data_that_passes() {
        for (from, to) in [
            // By a rule, for want of one, among equal labels, and within a server.
            ("crm_get", "wiki_add"),
            ("fs_read", "log_add"),
            ("crm_get", "archive_put"),
            ("crm_get", "crm_put"),
        ] {
            assert_eq!(foreseen(from, to), None, "{from} {to}");
        }
    }
}
