//! One rule over calls.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::condition::Condition;
use crate::definition::DefinitionHash;
use crate::name_pattern::{Pattern, ServerPattern};
use crate::parse;
use crate::tool_name::ToolName;
use crate::verdict::Verdict;

/// One rule. It matches a call when all of its conditions hold.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Rule {
    /// The effect on the calls that it matches. A file says it by the list that has the rule; see
    /// [`Rule::with_effect`].
    #[serde(skip)]
    pub effect: Effect,
    /// The tools it matches; under a deny or ask rule, also by their [`ToolName::aliases`].
    #[serde(rename = "tool", deserialize_with = "parse::parsed")]
    #[schemars(
        with = "String",
        description = "Functions whose whole name this pattern matches, or tools as `server/tool`. `*` is any number of characters."
    )]
    pub pattern: Pattern,
    /// The servers whose tools it matches, by a pattern over their names. Default: all.
    #[serde(default, deserialize_with = "parse::parsed_some")]
    #[schemars(with = "Option<String>")]
    pub server: Option<ServerPattern>,
    /// True if the configuration must, or must not, mark the server as trusted.
    pub trusted: Option<bool>,
    /// The conditions on the arguments; all of them must hold. If a value cannot be judged (it is
    /// missing, or of another type), an allow rule or a grant does not match, and a deny or ask
    /// rule does.
    #[serde(default, deserialize_with = "parse::conditions")]
    pub arguments: Vec<Condition>,
    /// The conditions on the tool's hints.
    #[serde(default)]
    pub annotations: Annotations,
    /// The number of calls that an allow rule lets through in a run; of calls without a script, in
    /// a session.
    pub max_calls: Option<u32>,
    /// The time (RFC 3339) from which it is passed over.
    #[serde(default, deserialize_with = "parse::time")]
    #[schemars(with = "Option<String>")]
    pub expires: Option<Timestamp>,
    /// The only definition of the tool to which it applies. An allow rule with one is a person's
    /// answer, and comes before ask rules.
    #[serde(default, deserialize_with = "parse::parsed_some")]
    #[schemars(with = "Option<String>")]
    pub definition: Option<DefinitionHash>,
    /// The place where a person finds the rule, such as `permissions.deny` or `--allow`.
    #[serde(skip)]
    pub written_in: Cow<'static, str>,
}

/// The conditions of a rule on a tool's hints; `None` for no condition.
///
/// A hint that is absent has the protocol's default. Hints of a server that is
/// not trusted never let a call through: an allow rule with annotations matches
/// no tool of such a server, and a deny or ask rule matches if either the hint
/// or its default fits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Annotations {
    /// `readOnlyHint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// `destructiveHint`. A read-only tool of a trusted server is not
    /// destructive unless it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// `idempotentHint`. A read-only tool of a trusted server is idempotent
    /// unless it says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// `openWorldHint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl Annotations {
    /// True if it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn named(&self) -> [(&'static str, Option<bool>); 4] {
        [
            ("readOnly", self.read_only),
            ("destructive", self.destructive),
            ("idempotent", self.idempotent),
            ("openWorld", self.open_world),
        ]
    }
}

/// The effect of a rule on the calls that it matches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The call is sent.
    Allow,
    /// A person is asked.
    Ask,
    /// The call is sent, even where an ask rule matches: the answer was given
    /// beforehand, for one run.
    Grant,
    /// The call is not sent.
    #[default]
    Deny,
}

impl Effect {
    pub(crate) fn verdict(self) -> Verdict {
        match self {
            Self::Allow | Self::Grant => Verdict::Allow,
            Self::Ask => Verdict::Ask,
            Self::Deny => Verdict::Deny,
        }
    }

    /// The list of rules that have it.
    pub(crate) fn list(self) -> &'static str {
        match self {
            Self::Grant => "grants of this run",
            Self::Allow => "permissions.allow",
            Self::Ask => "permissions.ask",
            Self::Deny => "permissions.deny",
        }
    }

    /// True if it lets calls through, so that doubt speaks against it.
    pub(crate) fn widens(self) -> bool {
        self.verdict() == Verdict::Allow
    }
}

/// The order in which rules are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    Deny,
    /// Before the grants of the run and of the session, which come next.
    Grant,
    Ask,
    Allow,
}

impl Rule {
    /// A rule written in `permissions` of a configuration file.
    pub fn new(effect: Effect, pattern: Pattern) -> Self {
        Self {
            effect,
            pattern,
            server: None,
            trusted: None,
            arguments: Vec::new(),
            annotations: Annotations::default(),
            max_calls: None,
            expires: None,
            definition: None,
            written_in: effect.list().into(),
        }
    }

    /// The same rule, written elsewhere.
    #[must_use]
    pub fn written_in(mut self, place: impl Into<Cow<'static, str>>) -> Self {
        self.written_in = place.into();
        self
    }

    /// The rule as it stands in a list of a configuration file: a pattern, or
    /// an object where it says more. [`Rule::parse`] reads it.
    pub fn to_json(&self) -> Value {
        let annotations = (!self.annotations.is_empty()).then_some(self.annotations);
        let arguments = (!self.arguments.is_empty()).then_some(&self.arguments);
        let mut entry = json!({
            "tool": self.pattern.as_str(),
            "server": self.server.as_ref().map(ServerPattern::as_str),
            "trusted": self.trusted,
            "arguments": arguments,
            "annotations": annotations,
            "maxCalls": self.max_calls,
            "expires": self.expires.map(|expires| expires.to_string()),
            "definition": self.definition.map(|definition| definition.to_string()),
        });
        if let Some(members) = entry.as_object_mut() {
            members.retain(|_, member| !member.is_null());
            if members.len() == 1 {
                return self.pattern.as_str().into();
            }
        }
        entry
    }

    pub(crate) fn rank(&self) -> Rank {
        match self.effect {
            Effect::Deny => Rank::Deny,
            Effect::Grant => Rank::Grant,
            Effect::Ask => Rank::Ask,
            Effect::Allow if self.definition.is_some() => Rank::Grant,
            Effect::Allow => Rank::Allow,
        }
    }

    /// True if its pattern matches this tool.
    pub(crate) fn matches_name(&self, tool: ToolName<'_>) -> bool {
        self.pattern.matches(tool, self.effect.widens())
    }

    /// True if it lets no call of this tool through because its pattern matches only an alias.
    pub(crate) fn matches_alias(&self, tool: ToolName<'_>) -> bool {
        !self.matches_name(tool) && self.pattern.matches(tool, false)
    }

    /// True if it lets calls through and has a limit.
    pub(crate) fn is_limited(&self) -> bool {
        self.effect.widens()
            && (self.max_calls.is_some() || self.expires.is_some() || self.definition.is_some())
    }

    /// The number of calls that it lets through in a run or a session, if it counts them.
    pub(crate) fn counted(&self) -> Option<u32> {
        self.max_calls.filter(|_| self.effect.widens())
    }

    /// The arguments that it permits, in words.
    pub(crate) fn permitted_arguments(&self) -> String {
        let conditions: Vec<String> = self.arguments.iter().map(ToString::to_string).collect();
        conditions.join(" and ")
    }

    /// Its conditions besides the pattern, in words.
    fn clauses(&self) -> Vec<String> {
        let mut clauses = Vec::new();
        clauses.extend(self.server.iter().map(|server| format!("server {server}")));
        let trust = |trusted| if trusted { "trusted" } else { "not trusted" };
        clauses.extend(self.trusted.map(|trusted| trust(trusted).to_owned()));
        clauses.extend(self.arguments.iter().map(ToString::to_string));
        for (name, said) in self.annotations.named() {
            clauses.extend(said.map(|said| format!("{name}: {said}")));
        }
        clauses.extend(self.max_calls.map(|max| match max {
            1 => "1 call".to_owned(),
            max => format!("{max} calls"),
        }));
        clauses.extend(self.expires.map(|expires| format!("until {expires}")));
        if self.definition.is_some() {
            clauses.push("one definition".to_owned());
        }
        clauses
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule \"{}\"", self.pattern)?;
        let clauses = self.clauses();
        if !clauses.is_empty() {
            write!(f, " ({})", clauses.join(", "))?;
        }
        write!(f, " in {}", self.written_in)
    }
}
