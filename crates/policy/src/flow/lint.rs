//! Warnings about flow rules and labels that can match nothing.

use super::finding::{Names, Side};
use super::rules::{FlowEnd, FlowRule, FlowRules};
use crate::nearest::nearest_tool;
use crate::problem::Finding;
use crate::verdict::Verdict;

/// A server whose tools are not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownTools<'a> {
    /// The server.
    pub server: &'a str,
    /// The prefix of the generated names of its tools, if that is known.
    pub prefix: Option<&'a str>,
}

impl UnknownTools<'_> {
    /// True if a name that passes `fits` may be one of its tools.
    pub fn may_have(&self, fits: impl FnOnce(&str) -> bool) -> bool {
        self.prefix.is_none_or(fits)
    }
}

impl FlowRules {
    /// The rules and the labels of tools that can match nothing.
    pub fn unmatched(&self, tools: &[Side], unknown: &[UnknownTools<'_>]) -> Vec<Finding> {
        let may_be_about = |end: &FlowEnd| match end {
            FlowEnd::Label(label) => unknown.iter().any(|it| self.may_label(it, label)),
            FlowEnd::Name(pattern) => unknown.iter().any(|it| {
                pattern.matches(it.server) || it.may_have(|begin| pattern.may_match_with(begin))
            }),
        };
        let known = |end: &FlowEnd, by: Names| {
            tools.iter().any(|tool| self.is_end(end, tool, by)) || may_be_about(end)
        };
        let meant = |pattern: &str| {
            let names = || {
                tools
                    .iter()
                    .map(|it| (it.function.as_str(), it.server.as_str()))
            };
            let near = nearest_tool(pattern, names);
            near.map(|near| format!("; did you mean {near:?}?"))
                .unwrap_or_default()
        };
        let of_rule = |rule: &FlowRule| {
            let ends = [("from", &rule.from), ("to", &rule.to)];
            let (key, end) = ends
                .into_iter()
                .find(|(_, end)| !known(end, rule.goes_by()))?;
            let why = match end {
                FlowEnd::Label(_) => "no server or tool has this label".to_owned(),
                FlowEnd::Name(name) => {
                    format!("there is no such server or tool{}", meant(name.as_str()))
                }
            };
            Some(Finding {
                what: rule.to_string(),
                message: format!("{rule} matches nothing: {key} {end}: {why}"),
                forbids: rule.action == Verdict::Deny,
            })
        };
        let rules = self.rules.iter().filter_map(of_rule);
        let labels = self.tools.iter().filter_map(|(pattern, label)| {
            let is_on = |side: &Side| side.is_named(Names::All, pattern.as_str());
            let on_none = !tools.iter().any(is_on)
                && !unknown
                    .iter()
                    .any(|it| it.may_have(|begin| pattern.may_match_with(begin)));
            let forbids = |rule: &FlowRule| {
                let is_it = |end: &FlowEnd| matches!(end, FlowEnd::Label(it) if it == label);
                rule.action == Verdict::Deny && (is_it(&rule.from) || is_it(&rule.to))
            };
            let what = format!("label {label:?} of \"{pattern}\" in toolLabels");
            on_none.then(|| Finding {
                message: format!("{what} is on no tool{}", meant(pattern.as_str())),
                what,
                forbids: self.rules.iter().any(forbids),
            })
        });
        rules.chain(labels).collect()
    }

    /// True if one of a server's tools may have a label.
    fn may_label(&self, unknown: &UnknownTools<'_>, label: &str) -> bool {
        let mut servers = self.servers.iter();
        let mut tools = self.tools.iter();
        servers.any(|(server, given)| given == label && server == unknown.server)
            || tools.any(|(pattern, given)| {
                given == label && unknown.may_have(|begin| pattern.may_match_with(begin))
            })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::name_pattern::Pattern;

    fn rules() -> FlowRules {
        let end = |text: &str| FlowEnd::parse(text).expect("an end");
        let mut rules = FlowRules::default();
        for (from, to) in [
            ("fs*", "*"),
            ("fs", "mail_*"),
            ("fss", "mail"),
            ("fs_list", "label:outside"),
            ("crm", "log_put"),
            ("label:private", "label:secret"),
            ("label:secrt", "*"),
        ] {
            rules.push(FlowRule {
                from: end(from),
                to: end(to),
                min_bytes: None,
                action: Verdict::Deny,
            });
        }
        rules.label_server("crm", "private");
        rules.label_server("mail", "outside");
        for (pattern, label) in [("archive_*", "private"), ("log_secret", "secret")] {
            rules.label_tools(Pattern::new(pattern).expect("a pattern"), label);
        }
        rules
    }

    #[track_caller]
    fn check(unknown: &[UnknownTools<'_>], expected: Expect) {
        let tools = ["fs_read", "crm_get", "mail_send"].map(|function| {
            let (server, tool) = function.split_once('_').expect("server_tool");
            Side::new(function, server, tool)
        });
        let found = rules().unmatched(&tools, unknown);
        let lines: Vec<String> = found.into_iter().map(|it| it.message).collect();
        expected.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn flow_rules_without_match_are_reported() {
        check(
            &[],
            expect![[r#"
            the rule from "fss" to "mail" in flows matches nothing: from "fss": there is no such server or tool
            the rule from "fs_list" to "label:outside" in flows matches nothing: from "fs_list": there is no such server or tool
            the rule from "crm" to "log_put" in flows matches nothing: to "log_put": there is no such server or tool
            the rule from "label:private" to "label:secret" in flows matches nothing: to "label:secret": no server or tool has this label
            the rule from "label:secrt" to "*" in flows matches nothing: from "label:secrt": no server or tool has this label
            label "private" of "archive_*" in toolLabels is on no tool
            label "secret" of "log_secret" in toolLabels is on no tool"#]],
        );
    }

    #[test]
    fn rules_for_unknown_servers_are_not_reported() {
        let unknown = |server, prefix| UnknownTools { server, prefix };
        check(
            &[unknown("log", Some("log_"))],
            expect![[r#"
            the rule from "fss" to "mail" in flows matches nothing: from "fss": there is no such server or tool
            the rule from "fs_list" to "label:outside" in flows matches nothing: from "fs_list": there is no such server or tool
            the rule from "label:secrt" to "*" in flows matches nothing: from "label:secrt": no server or tool has this label
            label "private" of "archive_*" in toolLabels is on no tool"#]],
        );
        // Its tools may have any names.
        check(
            &[unknown("odd", None)],
            expect![[
                r#"the rule from "label:secrt" to "*" in flows matches nothing: from "label:secrt": no server or tool has this label"#
            ]],
        );
    }
}
