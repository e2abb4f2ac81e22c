//! Whether one rule matches one call.

use serde_json::Value;

use crate::condition::Condition;
use crate::equality::Judged;
use crate::facts::{CallFacts, Hints};
use crate::rule::{Annotations, Rule};

/// How a rule, or a grant, fits a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It matches.
    Yes,
    /// It does not.
    No,
    /// It would, if the arguments are what it wants; they are not known.
    Depends,
    /// It would, but it has expired.
    Expired,
    /// It would, but it is for another definition of the tool.
    OtherDefinition,
}

/// Whether `rule` matches a call to a tool of whose names its pattern matches one.
/// `arguments` is what [`fits_arguments`] says.
pub(crate) fn fit(rule: &Rule, facts: &CallFacts<'_>, arguments: Fit) -> Fit {
    let widens = rule.effect.widens();
    let expired = rule.expires.is_some_and(|expires| expires <= facts.now);
    if expired && !widens
        || rule.trusted.is_some_and(|trusted| trusted != facts.trusted)
        || !fits_hints(&rule.annotations, facts.hints, facts.trusted, widens)
        || rule
            .server
            .as_ref()
            .is_some_and(|server| !server.matches(facts.server))
    {
        return Fit::No;
    }
    if arguments == Fit::No {
        Fit::No
    } else if expired {
        Fit::Expired
    } else if rule.definition.is_some() && rule.definition.as_ref() != facts.definition {
        Fit::OtherDefinition
    } else {
        arguments
    }
}

/// Whether arguments are as all conditions want them. Doubt speaks against
/// what would let a call through, and for what would hold it up.
pub(crate) fn fits_arguments(
    conditions: &[Condition],
    arguments: Option<&Value>,
    widens: bool,
) -> Fit {
    let Some(arguments) = arguments else {
        return match conditions {
            [] => Fit::Yes,
            _ => Fit::Depends,
        };
    };
    let fits = conditions
        .iter()
        .all(|condition| match condition.judge(arguments) {
            Judged::Holds => true,
            Judged::Fails => false,
            Judged::Unclear => !widens,
        });
    if fits { Fit::Yes } else { Fit::No }
}

/// Whether a tool's hints are as a rule wants them.
pub(crate) fn fits_hints(wanted: &Annotations, hints: Hints, trusted: bool, widens: bool) -> bool {
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
