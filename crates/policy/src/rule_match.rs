//! Matches one rule with one call.

use serde_json::Value;

use crate::condition::Condition;
use crate::equality::Judged;
use crate::facts::{CallFacts, Hints};
use crate::grants::Inapplicable;
use crate::rule::{Annotations, Rule};

/// The outcome of matching a rule with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    /// It matches.
    Yes,
    /// It does not match.
    No,
    /// It matches some arguments, and the arguments are not known.
    Depends,
    /// It would match, but does not apply any more.
    Inapplicable(Inapplicable),
}

/// Matches a rule with a call.
pub(crate) fn rule_match(rule: &Rule, facts: &CallFacts<'_>) -> Match {
    let widens = rule.effect.widens();
    let is_meant = rule.matches_name(facts.name);
    let matches_alias = || rule.is_limited() && rule.matches_alias(facts.name);
    let expired = rule.expires.is_some_and(|expires| expires <= facts.now);
    if !is_meant && !matches_alias()
        || expired && !widens
        || rule.trusted.is_some_and(|trusted| trusted != facts.trusted)
        || !hints_match(&rule.annotations, facts.hints, facts.trusted, widens)
        || rule
            .server
            .as_ref()
            .is_some_and(|server| !server.matches(facts.name.server))
    {
        return Match::No;
    }
    let arguments = arguments_match(&rule.arguments, facts.arguments, widens);
    if arguments == Match::No {
        Match::No
    } else if !is_meant {
        Match::Inapplicable(Inapplicable::OtherName)
    } else if expired {
        Match::Inapplicable(Inapplicable::Expired)
    } else if rule.definition.is_some() && rule.definition.as_ref() != facts.definition {
        Match::Inapplicable(Inapplicable::OtherDefinition)
    } else {
        arguments
    }
}

/// Matches arguments with all conditions. A value that cannot be judged fails those of a rule that
/// lets calls through, and passes those of a rule that restricts them.
fn arguments_match(conditions: &[Condition], arguments: Option<&Value>, widens: bool) -> Match {
    let Some(arguments) = arguments else {
        return match conditions {
            [] => Match::Yes,
            _ => Match::Depends,
        };
    };
    let passes = conditions
        .iter()
        .all(|condition| match condition.judge(arguments) {
            Judged::Holds => true,
            Judged::Fails => false,
            Judged::Unclear => !widens,
        });
    if passes { Match::Yes } else { Match::No }
}

/// True if a tool has the hints that a rule names.
pub(crate) fn hints_match(wanted: &Annotations, hints: Hints, trusted: bool, widens: bool) -> bool {
    if wanted.is_empty() {
        return true;
    }
    if widens && !trusted {
        return false;
    }
    let read_only = trusted && hints.read_only == Some(true);
    [
        (wanted.read_only, hints.read_only, false),
        // The protocol gives these two no meaning for a read-only tool.
        (wanted.destructive, hints.destructive, !read_only),
        (wanted.idempotent, hints.idempotent, read_only),
        (wanted.open_world, hints.open_world, true),
    ]
    .into_iter()
    .all(|(wanted, hint, default)| {
        let Some(wanted) = wanted else { return true };
        let said = hint.unwrap_or(default);
        // Without trust a hint may bring a rule to bear, never keep it away.
        said == wanted || !trusted && default == wanted
    })
}
