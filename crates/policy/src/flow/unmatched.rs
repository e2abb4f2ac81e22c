//! Flow rules and labels without effect.

use super::rules::{FlowEnd, FlowRule, FlowRules};
use crate::facts::KnownTool;
use crate::tool_name::matches;
use crate::unmatched::{KnownTools, Unmatched};
use crate::verdict::Verdict;

impl FlowRules {
    /// The rules without effect on these tools, and the labels on none of them. Those that may be
    /// about a tool of an unlisted server are left out.
    pub fn unmatched(&self, known: &KnownTools<'_>) -> Vec<Unmatched> {
        let of_rule = |rule: &FlowRule| {
            let ends = [("from", &rule.from), ("to", &rule.to)];
            let mut ends = ends.into_iter();
            let (key, end) = ends.find(|(_, end)| !self.may_be(end, rule.widens(), known))?;
            let why = match end.label() {
                Some(_) => "no server or tool has this label".to_owned(),
                None => format!("there is no such server or tool{}", (known.advice)(&end.0)),
            };
            Some(Unmatched {
                what: rule.to_string(),
                message: format!("{rule} matches nothing: {key} {end}: {why}"),
                forbids: rule.action == Verdict::Deny,
            })
        };
        let rules = self.rules.iter().filter_map(of_rule);
        let labels = self.tools.iter().filter(|(pattern, _)| {
            let mut tools = known.tools.iter();
            !tools.any(|tool| pattern.matches(tool.facts.name, false))
                && !known.may_come(pattern.as_str())
        });
        let labels = labels.map(|(pattern, label)| {
            let what = format!("label {label:?} of \"{pattern}\" in toolLabels");
            let advice = (known.advice)(pattern.as_str());
            let forbids = |rule: &FlowRule| {
                let is_it = |end: &FlowEnd| end.label() == Some(label.as_str());
                rule.action == Verdict::Deny && (is_it(&rule.from) || is_it(&rule.to))
            };
            Unmatched {
                message: format!("{what} is on no tool{advice}"),
                what,
                forbids: self.rules.iter().any(forbids),
            }
        });
        rules.chain(labels).collect()
    }

    /// True if an end of a rule is one of the tools, or may be one of an unlisted server.
    fn may_be(&self, end: &FlowEnd, widens: bool, known: &KnownTools<'_>) -> bool {
        let is_end = |tool: &KnownTool<'_>| self.is_end(end, tool.facts.name, widens);
        if known.tools.iter().any(is_end) {
            return true;
        }
        match end.label() {
            None => {
                let mut unlisted = known.unlisted.iter();
                unlisted.any(|it| matches(&end.0, it.server)) || known.may_come(&end.0)
            }
            Some(label) => {
                let is_unlisted = |name: &str| known.unlisted.iter().any(|it| it.server == name);
                let mut servers = self.servers.iter();
                let mut tools = self.tools.iter();
                servers.any(|(server, given)| given == label && is_unlisted(server))
                    || tools
                        .any(|(pattern, given)| given == label && known.may_come(pattern.as_str()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use jiff::Timestamp;

    use super::*;
    use crate::facts::{CallFacts, Hints};
    use crate::name_pattern::Pattern;
    use crate::tool_name::{ToolName, UnlistedServer};

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
    fn check(unlisted: &[UnlistedServer<'_>], expected: Expect) {
        let tools = ["fs_read", "crm_get", "mail_send"].map(|function| {
            let (server, tool) = function.split_once('_').expect("server_tool");
            let name = ToolName {
                function,
                aliases: &[],
                server,
                tool,
            };
            KnownTool {
                facts: CallFacts {
                    name,
                    hints: Hints::default(),
                    trusted: false,
                    definition: None,
                    arguments: None,
                    now: Timestamp::UNIX_EPOCH,
                },
                input_schema: None,
            }
        });
        let found = rules().unmatched(&KnownTools {
            tools: tools.to_vec(),
            uncallable: Vec::new(),
            unlisted: unlisted.to_vec(),
            advice: &|_| String::new(),
            now: Timestamp::UNIX_EPOCH,
        });
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
        let unlisted = |server, prefix| UnlistedServer { server, prefix };
        check(
            &[unlisted("log", Some("log_"))],
            expect![[r#"
            the rule from "fss" to "mail" in flows matches nothing: from "fss": there is no such server or tool
            the rule from "fs_list" to "label:outside" in flows matches nothing: from "fs_list": there is no such server or tool
            the rule from "label:secrt" to "*" in flows matches nothing: from "label:secrt": no server or tool has this label
            label "private" of "archive_*" in toolLabels is on no tool"#]],
        );
        // Its tools may have any names.
        check(
            &[unlisted("odd", None)],
            expect![[
                r#"the rule from "label:secrt" to "*" in flows matches nothing: from "label:secrt": no server or tool has this label"#
            ]],
        );
    }
}
