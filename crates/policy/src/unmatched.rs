//! Rules without effect; most are misspelt.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

use callgate_text::nearest;

use crate::facts::KnownTool;
use crate::pointer::Pointer;
use crate::rule::{Effect, Rank, Rule};
use crate::rule_match::{Match, hints_match, rule_match};
use crate::rules::Rules;
use crate::tool_name::{ToolName, UnlistedServer};

/// Keywords of a JSON Schema that may declare members that are not in `properties`.
const OPEN: [&str; 8] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "patternProperties",
    "dependentSchemas",
];

/// A rule, label or setting without effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// The rule, label or setting, in words.
    pub what: String,
    /// A sentence about it, for a person.
    pub message: String,
    /// True if it should forbid calls, and matches no tool.
    pub forbids: bool,
}

/// The tools that rules are compared with.
pub struct KnownTools<'a> {
    /// The tools of the servers that have listed theirs.
    pub tools: Vec<KnownTool<'a>>,
    /// Listed tools that no script can call, so that no rule has to deny them.
    pub uncallable: Vec<ToolName<'a>>,
    /// The servers whose tools are not known.
    pub unlisted: Vec<UnlistedServer<'a>>,
    /// Finds the advice about a pattern that matches no tool, which ends the sentence about it.
    pub advice: &'a dyn Fn(&str) -> String,
    /// The time, against which rules expire.
    pub now: Timestamp,
}

impl KnownTools<'_> {
    /// True if a pattern may match a tool of a server that has not listed its tools.
    pub fn may_come(&self, pattern: &str) -> bool {
        self.unlisted.iter().any(|it| it.may_match(pattern))
    }
}

impl Rules {
    /// The rules without effect on these tools. Rules that may be about a tool of an unlisted server
    /// are left out.
    #[doc(hidden)]
    pub fn unmatched(&self, known: &KnownTools<'_>) -> Vec<Unmatched> {
        let rules = self.as_slice().iter().enumerate();
        let unmatched = rules.filter_map(|(index, rule)| {
            let expired = rule.expires.filter(|expires| *expires <= known.now);
            let (message, has_tool) = match expired {
                Some(at) => (format!("decides nothing: it expired at {at}"), true),
                None => self.why_unmatched(index, rule, known)?,
            };
            let mut unlisted = known.unlisted.iter();
            if expired.is_none() && unlisted.any(|server| rule.may_be_about(server)) {
                return None;
            }
            let is_about =
                |tool: &ToolName<'_>| rule.matches_name(*tool) && rule.is_about_server(tool.server);
            let forbids =
                !has_tool && rule.effect == Effect::Deny && !known.uncallable.iter().any(is_about);
            Some(Unmatched {
                what: rule.to_string(),
                message: format!("{rule} {message}"),
                forbids,
            })
        });
        unmatched.collect()
    }

    /// Why a rule has no effect, and if it matches a tool. Then its other conditions hold for no
    /// call, or other rules decide before it.
    fn why_unmatched(
        &self,
        index: usize,
        rule: &Rule,
        known: &KnownTools<'_>,
    ) -> Option<(String, bool)> {
        let no_call = |message: &str| Some((message.to_owned(), true));
        let mut left: Vec<&KnownTool<'_>> = known
            .tools
            .iter()
            .filter(|tool| rule.matches_name(tool.facts.name))
            .collect();
        if left.is_empty() {
            let advice = (known.advice)(rule.pattern.as_str());
            return Some((format!("matches no tool{advice}"), false));
        }
        left.retain(|tool| rule.is_about_server(tool.facts.name.server));
        if left.is_empty() {
            let meant = nearest_server(rule, &known.tools)
                .map(|nearest| format!("; did you mean {nearest:?}?"))
                .unwrap_or_default();
            let message = format!("matches no tool of such a server{meant}");
            return Some((message, false));
        }
        left.retain(|it| rule.trusted.is_none_or(|wanted| wanted == it.facts.trusted));
        if left.is_empty() {
            return no_call("matches no tool: it is about the servers' trust");
        }
        let fits = |tool: &KnownTool<'_>, trusted: bool| {
            let hints = tool.facts.hints;
            hints_match(&rule.annotations, hints, trusted, rule.effect.widens())
        };
        let only_trust_lacks = left.iter().any(|tool| fits(tool, true));
        left.retain(|tool| fits(tool, tool.facts.trusted));
        if left.is_empty() {
            return no_call(if only_trust_lacks {
                "matches no tool: hints count only of servers marked \"trusted\""
            } else {
                "matches no tool with such hints"
            });
        }
        if rule.definition.is_some() {
            left.retain(|tool| rule.definition.as_ref() == tool.facts.definition);
            if left.is_empty() {
                return no_call("decides nothing: the tool has changed since the rule was written");
            }
        }
        if let Some(earlier) = self.taker(index, rule, &left) {
            return no_call(&format!("never decides: {earlier} comes first"));
        }
        undeclared_argument(rule, &left).map(|message| (message, true))
    }

    /// One of the rules that decide about each of the tools before `rule` does.
    fn taker(&self, index: usize, rule: &Rule, tools: &[&KnownTool<'_>]) -> Option<Arc<Rule>> {
        let is_earlier = |(other_index, other): &(usize, &Arc<Rule>)| {
            // Grants come first on purpose, and patterns of plain rules of one kind may overlap.
            (other.rank(), *other_index) < (rule.rank(), index)
                && other.rank() != Rank::Grant
                && (other.effect != rule.effect || rule.is_about_some_calls())
        };
        let mut earlier: Vec<_> = self
            .as_slice()
            .iter()
            .enumerate()
            .filter(is_earlier)
            .collect();
        earlier.sort_by_key(|(index, other)| (other.rank(), *index));
        let mut taker = None;
        for tool in tools {
            taker = Some(earlier.iter().find(|(_, other)| other.takes(tool))?.1);
        }
        taker.map(Arc::clone)
    }
}

impl Rule {
    fn is_about_server(&self, server: &str) -> bool {
        let wanted = self.server.as_ref();
        wanted.is_none_or(|wanted| wanted.matches(server))
    }

    fn may_be_about(&self, unlisted: &UnlistedServer<'_>) -> bool {
        unlisted.may_match(self.pattern.as_str()) && self.is_about_server(unlisted.server)
    }

    /// True if it may decide about some calls of a tool and not about others.
    fn is_about_some_calls(&self) -> bool {
        !self.arguments.is_empty() || self.max_calls.is_some() || self.expires.is_some()
    }

    /// True if it matches every call of a tool.
    fn takes(&self, tool: &KnownTool<'_>) -> bool {
        !self.is_about_some_calls()
            && self.definition.is_none()
            && rule_match(self, &tool.facts) == Match::Yes
    }
}

/// The server that a rule was most likely meant for, unless it has a pattern with stars.
fn nearest_server<'t>(rule: &Rule, tools: &[KnownTool<'t>]) -> Option<&'t str> {
    let name = rule.server.as_ref()?.as_str();
    let servers = tools.iter().map(|tool| tool.facts.name.server);
    nearest(name, servers).filter(|_| !name.contains('*'))
}

/// A message about an argument that the rule tests and none of these tools declares.
fn undeclared_argument(rule: &Rule, tools: &[&KnownTool<'_>]) -> Option<String> {
    rule.arguments.iter().find_map(|condition| {
        let undeclared = |tool: &&KnownTool<'_>| undeclared(&condition.at, tool.input_schema);
        if !tools.iter().all(|tool| undeclared(tool).is_some()) {
            return None;
        }
        let nearest = tools.iter().find_map(|tool| undeclared(tool)?);
        let meant = nearest.map(|nearest| format!("; did you mean {nearest}?"));
        Some(format!(
            "looks at {}, which no tool that it matches declares{}",
            condition.at.as_str(),
            meant.unwrap_or_default()
        ))
    })
}

/// `Some` if a schema declares its members, and not the one at this place: with the most similar
/// member, if there is one.
fn undeclared(at: &Pointer, schema: Option<&Value>) -> Option<Option<String>> {
    let mut schema = schema?;
    let mut before = String::new();
    for token in at.tokens() {
        let properties = listed_members(schema)?;
        let Some(next) = properties.get(&token) else {
            let near = nearest(&token, properties.keys().map(String::as_str));
            return Some(near.map(|near| format!("{before}/{}", escaped(near))));
        };
        before = format!("{before}/{}", escaped(&token));
        schema = next;
    }
    None
}

/// The members that a schema lists, unless it permits others, here or in a different part.
pub fn listed_members(schema: &Value) -> Option<&Map<String, Value>> {
    let more = schema.get("additionalProperties");
    let is_closed = more.is_none_or(|more| *more == Value::Bool(false));
    let is_open = || OPEN.iter().any(|key| schema.get(key).is_some());
    let listed = schema.get("properties")?.as_object()?;
    (is_closed && !is_open()).then_some(listed)
}

/// A name as a JSON pointer writes it.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
