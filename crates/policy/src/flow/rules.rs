//! What happens to a call that carries another server's data.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::finding::{Finding, FlowRecord, Names, Side};
use crate::decision::{Because, Decision, Verdict};
use crate::pattern::{Pattern, ServerPattern};

/// The rules over flows, and the labels they speak of. Empty rules are the
/// default: they let every flow pass.
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

    /// Puts a label on the tools whose generated names match.
    pub fn label_tools(&mut self, pattern: Pattern, label: &str) {
        self.tools.push((pattern, label.to_owned()));
    }

    /// Whether there is no rule and no label, so that nothing is asked about or stopped.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.servers.is_empty() && self.tools.is_empty()
    }

    /// The rules in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &FlowRule> {
        self.rules.iter()
    }

    /// A tool with its labels.
    pub(super) fn labelled<'a>(&'a self, side: &'a Side) -> Labelled<'a> {
        let servers = self.servers.iter();
        let of_server = servers
            .filter(|(server, _)| *server == side.server)
            .map(|(_, label)| label.as_str());
        let of_tool = |by: Names| {
            let tools = self.tools.iter();
            tools
                .filter(move |(pattern, _)| side.is_named(by, pattern.as_str()))
                .map(|(_, label)| label.as_str())
        };
        let labels: BTreeSet<&str> = of_server.chain(of_tool(Names::Function)).collect();
        let more = of_tool(Names::All).filter(|label| !labels.contains(label));
        Labelled {
            more: more.collect(),
            labels,
            side,
        }
    }

    /// Decides one flow: the first matching rule that denies, else that asks,
    /// else that allows. Without any, it is asked about if a label of where it
    /// comes from is not on where it goes, and allowed if there is none.
    pub fn decide(&self, finding: &Finding) -> Decision {
        let (verdict, why) = self.matching(finding);
        let reason = FlowReason {
            why,
            flow: finding.record(),
            summary: finding.to_string(),
        };
        Decision::new(verdict, Because::Flow(Box::new(reason)))
    }

    /// The verdict of that decision alone, which costs less.
    pub fn verdict(&self, finding: &Finding) -> Verdict {
        self.matching(finding).0
    }

    fn matching(&self, finding: &Finding) -> (Verdict, FlowWhy) {
        let (from, to) = (self.labelled(&finding.from), self.labelled(&finding.to));
        for action in [Verdict::Deny, Verdict::Ask, Verdict::Allow] {
            let matches = |rule: &&FlowRule| {
                rule.action == action
                    && rule.is_between(&from, &to)
                    && rule.is_enough(finding.bytes())
            };
            if let Some(rule) = self.rules.iter().find(matches) {
                return (action, FlowWhy::Rule(rule.clone()));
            }
        }
        match from.label_not_on(&to) {
            Some(label) => (Verdict::Ask, FlowWhy::Label(label.to_owned())),
            None => (Verdict::Allow, FlowWhy::NoRule),
        }
    }

    /// The strictest decision about all that was found; `None` if all of it may
    /// pass.
    pub fn review<'a>(&self, findings: impl IntoIterator<Item = &'a Finding>) -> Option<Decision> {
        let mut asked = None;
        for finding in findings {
            match self.verdict(finding) {
                Verdict::Deny => return Some(self.decide(finding)),
                Verdict::Ask => asked = asked.or(Some(finding)),
                Verdict::Allow => {}
            }
        }
        asked.map(|finding| self.decide(finding))
    }

    /// Whether there may be a flow to this tool that is not let pass without a word.
    pub fn may_stop(&self, to: &Side) -> bool {
        let to = self.labelled(to);
        let mut stops = self
            .rules
            .iter()
            .filter(|rule| rule.action != Verdict::Allow);
        let of_servers = self.servers.iter().map(|(_, label)| label);
        let of_tools = self.tools.iter().map(|(_, label)| label);
        stops.any(|rule| rule.to.matches(&to, rule.goes_by()))
            || of_servers
                .chain(of_tools)
                .any(|label| !to.labels.contains(label.as_str()))
    }
}

/// A tool with its labels, its server's among them.
pub(super) struct Labelled<'a> {
    side: &'a Side,
    /// By the function's name alone.
    labels: BTreeSet<&'a str>,
    /// Those that it has by its other names alone.
    more: BTreeSet<&'a str>,
}

impl<'a> Labelled<'a> {
    fn has(&self, label: &str, by: Names) -> bool {
        self.labels.contains(label) || by == Names::All && self.more.contains(label)
    }

    /// A label of this tool that keeps its data from the other: what may be private is, and
    /// nothing goes where it only may belong.
    pub(super) fn label_not_on(&self, to: &Self) -> Option<&'a str> {
        let mut labels = self.labels.union(&self.more);
        labels.find(|label| !to.labels.contains(*label)).copied()
    }
}

/// One rule over flows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FlowRule {
    /// Where the data comes from.
    pub from: FlowEnd,
    /// Where it would go.
    pub to: FlowEnd,
    /// The least data, in bytes, that the rule is about. Data that could not be
    /// measured is enough for a rule that denies or asks, and not for one that
    /// allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_bytes: Option<usize>,
    /// What happens to the call.
    pub action: Verdict,
}

impl FlowRule {
    /// The rule as it stands in `flows` of a configuration file.
    pub fn to_json(&self) -> Value {
        // There is nothing in it that could not be written.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Whether it is about data of one tool on its way to another.
    pub(super) fn is_between(&self, from: &Labelled<'_>, to: &Labelled<'_>) -> bool {
        self.from.matches(from, self.goes_by()) && self.to.matches(to, self.goes_by())
    }

    pub(super) fn goes_by(&self) -> Names {
        match self.action {
            Verdict::Allow => Names::Function,
            Verdict::Ask | Verdict::Deny => Names::All,
        }
    }

    fn is_enough(&self, bytes: Option<usize>) -> bool {
        match (self.min_bytes, bytes) {
            (None, _) => true,
            (Some(least), Some(bytes)) => bytes >= least,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowEnd {
    /// Servers and tools with this label.
    Label(String),
    /// Servers by name, and tools by generated name.
    Name(ServerPattern),
}

impl FlowEnd {
    /// Reads `label:NAME`, or a pattern over names. `None` if nothing is named.
    pub fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("label:") {
            Some(label) => (!label.is_empty()).then(|| Self::Label(label.to_owned())),
            None => ServerPattern::new(text).map(Self::Name),
        }
    }

    pub(super) fn matches(&self, tool: &Labelled<'_>, by: Names) -> bool {
        match self {
            Self::Label(label) => tool.has(label, by),
            Self::Name(pattern) => {
                pattern.matches(&tool.side.server) || tool.side.is_named(by, pattern.as_str())
            }
        }
    }
}

impl fmt::Display for FlowEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(label) => write!(f, "\"label:{label}\""),
            Self::Name(pattern) => pattern.fmt(f),
        }
    }
}

impl Serialize for FlowEnd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Label(label) => serializer.serialize_str(&format!("label:{label}")),
            Self::Name(pattern) => serializer.serialize_str(pattern.as_str()),
        }
    }
}

/// What a decision about a flow rests on. Its `Display` has none of the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FlowReason {
    /// The rule, or what stands in for one.
    pub why: FlowWhy,
    /// The flow, without the data.
    pub flow: FlowRecord,
    /// The flow in words, without the data.
    #[serde(skip)]
    pub summary: String,
}

/// Why a flow was decided so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum FlowWhy {
    /// A rule matched.
    Rule(FlowRule),
    /// No rule matched, and where it would go lacks this label.
    Label(String),
    /// No rule matched, and no label is in the way.
    NoRule,
}

impl fmt::Display for FlowReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = &self.summary;
        match &self.why {
            FlowWhy::Rule(rule) => write!(f, "{rule}: {summary}"),
            FlowWhy::Label(label) => {
                let to = &self.flow.to;
                let from = &self.flow.from;
                write!(f, "{from} is labelled {label:?} and {to} is not: {summary}")
            }
            FlowWhy::NoRule => write!(f, "no rule over flows is in the way: {summary}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::OtherNames;
    use crate::flow::Flows;

    fn side(function: &str) -> Side {
        let (server, tool) = function.split_once('_').expect("server_tool");
        Side::new(function, server, tool)
    }

    fn rule(from: &str, to: &str, min_bytes: Option<usize>, action: Verdict) -> FlowRule {
        FlowRule {
            from: FlowEnd::parse(from).expect("an end"),
            to: FlowEnd::parse(to).expect("an end"),
            min_bytes,
            action,
        }
    }

    fn rules() -> FlowRules {
        let mut rules = FlowRules::default();
        rules.push(rule("fs*", "*", None, Verdict::Allow));
        rules.push(rule("fs", "mail_*", Some(30), Verdict::Ask));
        rules.push(rule("fs_list", "label:outside", Some(30), Verdict::Deny));
        rules.label_server("crm", "private");
        rules.label_server("mail", "outside");
        rules.label_tools(Pattern::new("archive_*").expect("pattern"), "private");
        rules.label_tools(Pattern::new("log_secret").expect("pattern"), "secret");
        rules
    }

    /// What is decided about a text of the length given on its way.
    #[track_caller]
    fn check(from: &str, to: &str, length: usize, expected: Expect) {
        let text: String = ('a'..='z').cycle().step_by(7).take(length).collect();
        let mut flows = Flows::default();
        flows.learn(side(from), 1, &format!("{text:?}"));
        let findings = flows.inspect(&side(to), &format!("{text:?}"), "");
        let [finding] = findings.as_slice() else {
            panic!("{findings:?}");
        };
        let decision = rules().decide(finding);
        assert_eq!(
            rules().review(&findings).is_some(),
            decision.verdict != Verdict::Allow
        );
        expected.assert_eq(&format!("{:?}: {decision}", decision.verdict));
    }

    #[test]
    fn deny_comes_before_ask_and_ask_before_allow() {
        check(
            "fs_read",
            "mail_send",
            20,
            expect![[
                r#"Allow: allowed by the rule from "fs*" to "*" in flows: 20 bytes of fs.read (call 1) go to mail.send"#
            ]],
        );
        check(
            "fs_read",
            "mail_send",
            30,
            expect![[
                r#"Ask: needs approval by the rule from "fs" to "mail_*" in flows: 30 bytes of fs.read (call 1) go to mail.send"#
            ]],
        );
        check(
            "fs_list",
            "mail_send",
            30,
            expect![[
                r#"Deny: denied by the rule from "fs_list" to "label:outside" in flows: 30 bytes of fs.list (call 1) go to mail.send"#
            ]],
        );
        check(
            "fs_list",
            "log_add",
            30,
            expect![[
                r#"Allow: allowed by the rule from "fs*" to "*" in flows: 30 bytes of fs.list (call 1) go to log.add"#
            ]],
        );
    }

    #[test]
    fn labelled_data_stays_among_its_like_without_a_rule() {
        check(
            "crm_get",
            "log_add",
            20,
            expect![[
                r#"Ask: needs approval: crm_get is labelled "private" and log_add is not: 20 bytes of crm.get (call 1) go to log.add"#
            ]],
        );
        check(
            "crm_get",
            "archive_put",
            20,
            expect![
                "Allow: allowed: no rule over flows is in the way: 20 bytes of crm.get (call 1) go to archive.put"
            ],
        );
        check(
            "log_secret",
            "crm_get",
            20,
            expect![[
                r#"Ask: needs approval: log_secret is labelled "secret" and crm_get is not: 20 bytes of log.secret (call 1) go to crm.get"#
            ]],
        );
        check(
            "log_read",
            "crm_get",
            20,
            expect![
                "Allow: allowed: no rule over flows is in the way: 20 bytes of log.read (call 1) go to crm.get"
            ],
        );
    }

    #[test]
    fn where_flows_may_be_stopped() {
        let stops =
            |rules: &FlowRules| ["crm_put", "mail_send"].map(|to| rules.may_stop(&side(to)));
        let mut rules = FlowRules::default();
        rules.push(rule("*", "*", None, Verdict::Allow));
        assert_eq!(stops(&rules), [false, false]);
        rules.push(rule("wiki", "mail_*", Some(1_000_000), Verdict::Ask));
        assert_eq!(stops(&rules), [false, true]);
        rules.push(rule("wiki", "crm", None, Verdict::Deny));
        assert_eq!(stops(&rules), [true, true]);
        for label_crm in [
            |rules: &mut FlowRules| rules.label_server("crm", "private"),
            |rules: &mut FlowRules| {
                rules.label_tools(Pattern::new("crm_*").expect("a pattern"), "private");
            },
        ] {
            let mut rules = FlowRules::default();
            label_crm(&mut rules);
            assert_eq!(stops(&rules), [false, true]);
            rules.label_server("mail", "secret");
            assert_eq!(stops(&rules), [true, true]);
        }
    }

    /// Tools that have another name than they would have with nobody beside them.
    #[test]
    fn what_holds_data_up_goes_by_the_natural_name_too() {
        check_other_names("_box_put");
    }

    /// Tools that had a suffix when others were beside them.
    #[test]
    fn what_holds_data_up_goes_by_the_suffixed_name_too() {
        check_other_names("_$box_put_01234567");
    }

    #[track_caller]
    fn check_other_names(end: &str) {
        let named = |server: &str| {
            let natural = format!("{server}_box_put");
            let suffixed = format!("{server}_$box_put_0123456789abcdef");
            let names = Arc::new(OtherNames::new(Some(&natural), &suffixed));
            Side::new(&format!("{server}_$box_put"), server, "box_put").or_named(Some(&names))
        };
        let (crm, mail) = (named("crm"), named("mail"));
        let text = "what a customer has said";
        let mut flows = Flows::default();
        flows.learn(crm.clone(), 1, &format!("{text:?}"));
        let findings = flows.inspect(&mail, &format!("{text:?}"), "");
        let check = |build: &dyn Fn(&mut FlowRules), verdict: Verdict| {
            let mut rules = FlowRules::default();
            build(&mut rules);
            assert_eq!(rules.verdict(&findings[0]), verdict, "{rules:?}");
            assert_eq!(
                rules.may_stop(&mail),
                verdict != Verdict::Allow,
                "{rules:?}"
            );
            let foreseen = rules.foresee(&crm, &mail).is_some();
            assert_eq!(foreseen, verdict != Verdict::Allow, "{rules:?}");
        };
        let pattern = |text: &str| Pattern::new(text).expect("a pattern");
        let (from, to) = (&*format!("crm{end}"), &*format!("mail{end}"));
        check(
            &|rules| rules.push(rule(from, "*", None, Verdict::Ask)),
            Verdict::Ask,
        );
        check(
            &|rules| rules.push(rule("*", to, None, Verdict::Deny)),
            Verdict::Deny,
        );
        check(
            &|rules| rules.label_tools(pattern(from), "private"),
            Verdict::Ask,
        );
        check(
            &|rules| {
                rules.label_tools(pattern(to), "outside");
                rules.push(rule("crm", "label:outside", None, Verdict::Deny));
            },
            Verdict::Deny,
        );
        // What would let it pass does not: neither a rule nor a label where it goes.
        check(
            &|rules| {
                rules.label_server("crm", "private");
                rules.label_tools(pattern(to), "private");
                rules.push(rule(from, "mail", None, Verdict::Allow));
                rules.push(rule("crm", to, None, Verdict::Allow));
                rules.push(rule("crm", "label:private", None, Verdict::Allow));
            },
            Verdict::Ask,
        );
        check(
            &|rules| {
                rules.label_server("crm", "private");
                rules.label_tools(pattern("mail_$*"), "private");
            },
            Verdict::Allow,
        );

        let mut rules = FlowRules::default();
        rules.push(rule(from, "*", None, Verdict::Deny));
        rules.push(rule("*", to, None, Verdict::Allow));
        rules.label_tools(pattern(from), "private");
        assert_eq!(
            rules.unmatched(&[crm.clone(), mail.clone()], &[]),
            [format!(
                "the rule from \"*\" to \"{to}\" in flows matches nothing: to \"{to}\": there is \
                 no such server or tool"
            )]
        );
    }

    #[test]
    fn a_rule_is_written_as_it_stands_in_a_configuration() {
        let rule = rule("label:outside", "mail_*", Some(30), Verdict::Ask);
        let written = json!({
            "from": "label:outside", "to": "mail_*", "minBytes": 30, "action": "ask",
        });
        assert_eq!(rule.to_json(), written);
        let rule = FlowRule {
            min_bytes: None,
            ..rule
        };
        let written = json!({ "from": "label:outside", "to": "mail_*", "action": "ask" });
        assert_eq!(rule.to_json(), written);
    }
}
