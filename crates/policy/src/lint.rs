//! Warnings about rules that can decide nothing, which mostly are misspelt.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::facts::KnownTool;
use crate::nearest::{nearest, nearest_tool};
use crate::pointer::Pointer;
use crate::rule::{Effect, Rank, Rule};
use crate::rule_match::hints_match;
use crate::rules::Rules;

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

/// A rule that can decide nothing. Its `Display` is a warning for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// The rule.
    pub rule: Arc<Rule>,
    /// Why that is so.
    pub why: Why,
    /// The end of the sentence about the rule.
    message: String,
}

/// Why a rule decides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// No function matches its pattern.
    NoTool,
    /// Functions match, but their servers do not.
    NoServer,
    /// It has expired.
    Expired,
    /// Something else that it says of calls is true of none, or other rules decide before it.
    NoCall,
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.rule, self.message)
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| {
        format!("; did you mean {nearest:?}?")
    })
}

impl Unmatched {
    /// True if the rule should forbid something, and matches no tool.
    pub fn forbids(&self) -> bool {
        let no_tool = matches!(self.why, Why::NoTool | Why::NoServer);
        self.rule.effect == Effect::Deny && no_tool
    }

    /// True if it may decide about tools of this server, of which none is known yet:
    /// their names begin so, if that is known.
    pub fn may_be_about(&self, server: &str, prefix: Option<&str>) -> bool {
        let rule = &self.rule;
        self.why != Why::Expired
            && prefix.is_none_or(|prefix| rule.pattern.may_match_with(prefix))
            && rule.server.as_ref().is_none_or(|s| s.matches(server))
    }
}

impl Rules {
    /// The rules that can decide nothing about these tools at this time.
    pub fn unmatched<'a>(
        &self,
        tools: impl IntoIterator<Item = KnownTool<'a>>,
        now: Timestamp,
    ) -> Vec<Unmatched> {
        let tools: Vec<KnownTool<'a>> = tools.into_iter().collect();
        let rules = self.as_slice().iter().enumerate();
        let unmatched = rules.filter_map(|(index, rule)| {
            let (why, message) = self.why_unmatched(index, rule, &tools, now)?;
            let rule = Arc::clone(rule);
            Some(Unmatched { rule, why, message })
        });
        unmatched.collect()
    }

    fn why_unmatched(
        &self,
        index: usize,
        rule: &Rule,
        tools: &[KnownTool<'_>],
        now: Timestamp,
    ) -> Option<(Why, String)> {
        let no_call = |message: &str| Some((Why::NoCall, message.to_owned()));
        if let Some(at) = rule.expires.filter(|expires| *expires <= now) {
            return Some((Why::Expired, format!("decides nothing: it expired at {at}")));
        }
        let mut left: Vec<&KnownTool<'_>> = tools
            .iter()
            .filter(|tool| rule.means(tool.function, tool.other_names))
            .collect();
        if left.is_empty() {
            let renamed = tools
                .iter()
                .find(|tool| rule.has_lost(tool.function, tool.other_names));
            let tools = || tools.iter().map(|tool| (tool.function, tool.server));
            let nearest = renamed.map(|tool| tool.function.to_owned());
            let nearest = nearest.or_else(|| nearest_tool(rule.pattern.as_str(), tools));
            let meant = match nearest {
                Some(near) if rule.pattern.as_str().contains('*') && !near.contains('*') => {
                    format!("; the nearest is {near:?}")
                }
                nearest => did_you_mean(nearest.as_deref()),
            };
            return Some((Why::NoTool, format!("matches no tool{meant}")));
        }
        left.retain(|tool| rule.server.as_ref().is_none_or(|s| s.matches(tool.server)));
        if left.is_empty() {
            let meant = did_you_mean(nearest_server(rule, tools));
            return Some((
                Why::NoServer,
                format!("matches no tool of such a server{meant}"),
            ));
        }
        left.retain(|tool| rule.trusted.is_none_or(|trusted| trusted == tool.trusted));
        if left.is_empty() {
            return no_call("matches no tool: it is about the servers' trust");
        }
        let fits = |tool: &KnownTool<'_>, trusted: bool| {
            hints_match(&rule.annotations, tool.hints, trusted, rule.effect.widens())
        };
        let for_want_of_trust = left.iter().any(|tool| fits(tool, true));
        left.retain(|tool| fits(tool, tool.trusted));
        if left.is_empty() {
            return no_call(if for_want_of_trust {
                "matches no tool: hints count only of servers marked \"trusted\""
            } else {
                "matches no tool with such hints"
            });
        }
        if rule.definition.is_some() {
            left.retain(|tool| rule.definition.as_ref() == tool.definition);
            if left.is_empty() {
                return no_call(
                    "decides nothing: the tool is not what it was when the rule was written",
                );
            }
        }
        if let Some(earlier) = self.taker(index, rule, &left) {
            return no_call(&format!("never decides: {earlier} comes first"));
        }
        undeclared_argument(rule, &left).map(|message| (Why::NoCall, message))
    }

    /// One of the rules that decide about each of the tools before `rule` is asked.
    fn taker(&self, index: usize, rule: &Rule, tools: &[&KnownTool<'_>]) -> Option<Arc<Rule>> {
        let is_earlier = |(other_index, other): &(usize, &Arc<Rule>)| {
            // A grant is there to come before other rules, and two plain rules of one kind may
            // overlap, as patterns do.
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
    /// True if it may decide about some calls of a tool and not about others.
    fn is_about_some_calls(&self) -> bool {
        !self.arguments.is_empty() || self.max_calls.is_some() || self.expires.is_some()
    }

    /// True if it matches every call of a tool.
    fn takes(&self, tool: &KnownTool<'_>) -> bool {
        let widens = self.effect.widens();
        !self.is_about_some_calls()
            && self.definition.is_none()
            && self.means(tool.function, tool.other_names)
            && self.server.as_ref().is_none_or(|s| s.matches(tool.server))
            && self.trusted.is_none_or(|trusted| trusted == tool.trusted)
            && hints_match(&self.annotations, tool.hints, tool.trusted, widens)
    }
}

/// The server that a rule was most likely meant for. A pattern with stars is not a name.
fn nearest_server<'t>(rule: &Rule, tools: &[KnownTool<'t>]) -> Option<&'t str> {
    let name = rule.server.as_ref()?.as_str();
    let servers = tools.iter().map(|tool| tool.server);
    nearest(name, servers).filter(|_| !name.contains('*'))
}

/// An argument that a rule tests and none of these tools declares.
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

/// The most similar member, if there is one, where a schema declares other members than the one
/// at this place. `None` where the schema leaves it open.
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

/// The members that a schema lists, unless it permits others, here or in another part.
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
