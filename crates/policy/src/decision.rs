//! The decision about one call: a verdict and its reason.

use std::fmt;
use std::sync::Arc;

use crate::flow::{Finding, FlowRule, FlowRules};
use crate::grants::{Grant, Inapplicable, Scope};
use crate::rule::{Effect, Rule};
use crate::verdict::Verdict;

/// The limit of rules whose conditions a reason names.
const MAX_SHOWN_RULES: usize = 3;

/// The answer to one tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The verdict about the call.
    pub verdict: Verdict,
    /// The reason for the verdict.
    pub because: Because,
    /// The ask rule that matches, if `because` is a permission that does not apply any more.
    pub asked_by: Option<Arc<Rule>>,
    /// The rule that denies the call for some arguments, whatever is granted, if the arguments are
    /// not known yet and the call is asked about for a different reason.
    pub may_deny: Option<Arc<Rule>>,
}

impl Decision {
    /// A decision for this reason alone.
    pub fn new(verdict: Verdict, because: Because) -> Self {
        Self {
            verdict,
            because,
            asked_by: None,
            may_deny: None,
        }
    }
}

impl FlowRules {
    /// Decides one flow, as [`FlowRules::verdict`] says.
    pub fn decide(&self, finding: &Finding) -> Decision {
        let rule = self.matching(finding).cloned();
        let reason = match &rule {
            Some(rule) => rule.to_string(),
            None => {
                let label = self.lacking_label(&finding.from, &finding.to);
                label.unwrap_or_else(|| "no rule over flows is in the way".to_owned())
            }
        };
        let because = Because::Flow(rule.map(Box::new), format!("{reason}: {finding}"));
        Decision::new(self.verdict(finding), because)
    }

    /// The strictest decision about all findings; `None` if all of them may pass.
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
}

/// The reason for a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// A rule matched.
    Rule(Arc<Rule>),
    /// It was granted.
    Grant(Arc<Grant>, Scope),
    /// A rule or grant would let it through, but does not apply any more.
    Inapplicable(Inapplicable, Permission),
    /// The arguments are not known yet, and this rule looks at them.
    Depends(Arc<Rule>),
    /// Another server's data is in the arguments: the rule over flows that matched, if one did, and
    /// the reason in words, without the data.
    Flow(Option<Box<FlowRule>>, String),
    /// A reviewer of the host decided so, for this reason.
    Reviewer(String),
    /// An answer allowed the call, but it could not be sent, for this reason.
    Unsent(String),
    /// The run may not use the tool's server at all, as this says.
    Scope(String),
    /// No rule matched; these rules allow the tool with other arguments.
    OtherArguments(Vec<Arc<Rule>>),
    /// No rule matched, the tool says that it is read-only, and its server is
    /// trusted.
    ReadOnlyHint,
    /// No rule matched, and the tool says that it is read-only, but its server is not trusted.
    UntrustedHint,
    /// No rule matched, and the tool does not say that it is read-only.
    NoRule,
}

/// A permission: a rule that allows, or a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// A rule.
    Rule(Arc<Rule>),
    /// A grant.
    Grant(Arc<Grant>, Scope),
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => rule.fmt(f),
            Self::Grant(_, Scope::Run) => f.write_str("the grant for this run"),
            Self::Grant(_, Scope::Session) => f.write_str("the grant for this session"),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Allow => "allowed",
            Verdict::Ask => "needs approval",
            Verdict::Deny => "denied",
        };
        match &self.because {
            Because::Rule(rule) => write!(f, "{verdict} by {rule}"),
            Because::Grant(grant, scope) => {
                let permission = Permission::Grant(Arc::clone(grant), *scope);
                write!(f, "{verdict} by {permission}")
            }
            Because::Inapplicable(why, permission) => {
                let why = match why {
                    Inapplicable::OtherDefinition => "is void: the server changed the tool",
                    Inapplicable::Spent => "is used up",
                    Inapplicable::Expired => "has expired",
                    Inapplicable::OtherName => "is void: it is for a different name of the tool",
                };
                f.write_str(verdict)?;
                if let Some(rule) = &self.asked_by {
                    write!(f, " by {rule}")?;
                }
                write!(f, ": {permission} {why}")
            }
            Because::Depends(rule) if rule.effect == Effect::Deny => {
                write!(f, "denied for some arguments, by {rule}")
            }
            Because::Depends(rule) => {
                write!(f, "{verdict}: it depends on the arguments, by {rule}")
            }
            Because::Flow(Some(_), reason) => write!(f, "{verdict} by {reason}"),
            Because::Flow(None, reason) => write!(f, "{verdict}: {reason}"),
            Because::Reviewer(reason) => write!(f, "{verdict} by a reviewer: {reason}"),
            Because::Unsent(reason) => {
                write!(f, "{verdict} again: it was allowed, but not sent: {reason}")
            }
            Because::Scope(reason) => write!(f, "{verdict}: {reason}"),
            Because::OtherArguments(rules) => {
                let shown = rules.iter().take(MAX_SHOWN_RULES);
                let shown: Vec<String> = shown.map(|rule| rule.permitted_arguments()).collect();
                write!(
                    f,
                    "{verdict}: it is allowed only where {}",
                    shown.join(", or ")
                )?;
                if rules.len() > MAX_SHOWN_RULES {
                    f.write_str(", or as other rules permit")?;
                }
                Ok(())
            }
            Because::ReadOnlyHint => {
                write!(f, "{verdict}: a read-only tool of a trusted server")
            }
            Because::UntrustedHint => write!(
                f,
                "{verdict}: no rule matches, and the server that calls this tool read-only is \
                 not marked trusted"
            ),
            Because::NoRule => write!(f, "{verdict}: no rule matches"),
        }?;
        match &self.may_deny {
            Some(rule) => write!(f, "; denied for some arguments, by {rule}"),
            None => Ok(()),
        }
    }
}
