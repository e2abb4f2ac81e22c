//! Rules over data between servers.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::finding::{Finding, Side};
use crate::name_pattern::Pattern;
use crate::tool_name::{ToolName, matches};
use crate::verdict::Verdict;

/// The rules over flows, and their labels. Empty rules are the default: they let every flow pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FlowRules {
    pub(super) rules: Vec<FlowRule>,
    pub(super) servers: Vec<(String, String)>,
    pub(super) tools: Vec<(Pattern, String)>,
}

impl FlowRules {
    /// Adds a rule.
    pub fn push(&mut self, rule: FlowRule) {
        self.rules.push(rule);
    }

    /// Puts a label on all tools of a server.
    pub fn label_server(&mut self, server: &str, label: &str) {
        self.servers.push((server.to_owned(), label.to_owned()));
    }

    /// Puts a label on the tools that a pattern matches.
    pub fn label_tools(&mut self, pattern: Pattern, label: &str) {
        self.tools.push((pattern, label.to_owned()));
    }

    /// True without rules and labels: every flow passes.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.servers.is_empty() && self.tools.is_empty()
    }

    /// The rules and labels, as one value to compare or to hash.
    pub fn to_json(&self) -> Value {
        let tools = self.tools.iter();
        let tools: Vec<_> = tools
            .map(|(pattern, label)| (pattern.as_str(), label))
            .collect();
        json!({ "rules": self.rules, "servers": self.servers, "tools": tools })
    }

    /// The labels of a tool and of its server. `widens` says whether a label lets data pass.
    fn labels<'a>(&'a self, tool: ToolName<'_>, widens: bool) -> BTreeSet<&'a str> {
        let servers = self.servers.iter();
        let of_server = servers.filter(|(server, _)| *server == tool.server);
        let tools = self.tools.iter();
        let of_tool = tools.filter(|(pattern, _)| pattern.matches(tool, widens));
        let labels = of_server.map(|(_, label)| label.as_str());
        labels
            .chain(of_tool.map(|(_, label)| label.as_str()))
            .collect()
    }

    /// A clause about a label of one tool that the other lacks, so that its data may not go there
    /// unasked.
    pub(crate) fn lacking_label(&self, from: &Side, to: &Side) -> Option<String> {
        let on_target = self.labels(to.name(), true);
        let mut labels = self.labels(from.name(), false).into_iter();
        let label = labels.find(|label| !on_target.contains(label))?;
        let (from, to) = (&from.function, &to.function);
        Some(format!("{from} is labelled {label:?} and {to} is not"))
    }

    /// True if an end of a rule is this tool. `widens` says whether the rule lets data pass.
    pub(super) fn is_end(&self, end: &FlowEnd, tool: ToolName<'_>, widens: bool) -> bool {
        match end.label() {
            Some(label) => self.labels(tool, widens).contains(label),
            None => matches(&end.0, tool.server) || tool.is_matched(&end.0, widens),
        }
    }

    /// The rules with this action about data of `from` on its way to `to`.
    fn between(&self, action: Verdict, from: &Side, to: &Side) -> impl Iterator<Item = &FlowRule> {
        self.rules.iter().filter(move |rule| {
            rule.action == action
                && self.is_end(&rule.from, from.name(), rule.widens())
                && self.is_end(&rule.to, to.name(), rule.widens())
        })
    }

    /// Decides one flow: the first matching rule that denies, else that asks, else that allows.
    /// Without a matching rule, it is asked about if its source has a label that its target lacks,
    /// and allowed otherwise.
    pub fn verdict(&self, finding: &Finding) -> Verdict {
        match self.matching(finding) {
            Some(rule) => rule.action,
            None if self.lacking_label(&finding.from, &finding.to).is_some() => Verdict::Ask,
            None => Verdict::Allow,
        }
    }

    /// The rule that decides one flow.
    pub(crate) fn matching(&self, finding: &Finding) -> Option<&FlowRule> {
        let actions = [Verdict::Deny, Verdict::Ask, Verdict::Allow];
        actions.into_iter().find_map(|action| {
            let mut rules = self.between(action, &finding.from, &finding.to);
            rules.find(|rule| rule.is_enough(finding.bytes()))
        })
    }

    /// A sentence about the strictest verdict that data of `from` may get on its way to `to`; `None`
    /// if all of it passes.
    pub fn foresee(&self, from: &Side, to: &Side) -> Option<String> {
        if from.server == to.server {
            return None;
        }
        let first = |action| self.between(action, from, to).next();
        // A rule with a minimum size does not let smaller data pass.
        let mut allowing = self.between(Verdict::Allow, from, to);
        let (what, why) = if let Some(rule) = first(Verdict::Deny) {
            ("denied", rule.to_string())
        } else if let Some(rule) = first(Verdict::Ask) {
            ("asked about", rule.to_string())
        } else if allowing.any(|rule| rule.min_bytes.is_none()) {
            return None;
        } else {
            ("asked about", self.lacking_label(from, to)?)
        };
        let (from, to) = (&from.function, &to.function);
        Some(format!(
            "data of {from} may be {what} on its way to {to}: {why}"
        ))
    }
}

/// One rule over flows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FlowRule {
    /// Where the data comes from: a server's name, a tool's generated name, a pattern over either, or
    /// `label:NAME`.
    pub from: FlowEnd,
    /// Where the data would go, as `from`.
    pub to: FlowEnd,
    /// The minimum size of the data, in bytes. Data of unknown size is enough to deny or ask, not
    /// to allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_bytes: Option<usize>,
    /// The verdict about the call.
    pub action: Verdict,
}

impl FlowRule {
    /// The rule as it stands in `flows` of a configuration file.
    pub fn to_json(&self) -> Value {
        // There is nothing in it that could not be written.
        serde_json::to_value(self).unwrap_or_default()
    }

    pub(super) fn widens(&self) -> bool {
        self.action == Verdict::Allow
    }

    fn is_enough(&self, bytes: Option<usize>) -> bool {
        match (self.min_bytes, bytes) {
            (None, _) => true,
            (Some(min), Some(bytes)) => bytes >= min,
            (Some(_), None) => self.action != Verdict::Allow,
        }
    }
}

impl fmt::Display for FlowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the rule from {} to {} in flows", self.from, self.to)
    }
}

/// One end of a flow, as rules name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct FlowEnd(pub(super) String);

impl FlowEnd {
    /// Reads `label:NAME` for servers and tools with that label, or a pattern over the names of
    /// servers, and of tools by generated name or as `server/tool`. `None` if nothing is named.
    pub fn parse(text: &str) -> Option<Self> {
        (!matches!(text, "" | "label:")).then(|| Self(text.to_owned()))
    }

    /// The label; `None` for a pattern over names.
    pub(super) fn label(&self) -> Option<&str> {
        self.0.strip_prefix("label:")
    }
}

impl TryFrom<String> for FlowEnd {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("names nothing; write \"*\" for everything")
    }
}

impl fmt::Display for FlowEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

#[cfg(test)]
mod tests;
