//! Internal crate of Callgate: Rules over tool calls, and the decision they give.
//!
//! Pure: no IO, no clock. A [`Rules`] value is built once from configuration
//! and flags. A run has an [`Authority`]: the rules, what somebody granted, and
//! how much of both is used up. It is asked before every tool call and answers
//! with a [`Decision`] that says what happens and because of what. Deny rules
//! are asked first, then grants, then ask rules, then allow rules, whatever the
//! order in which they were written. Without a matching rule a call is allowed
//! only if its tool says that it is read-only and its server is trusted; every
//! other call is asked about.

mod authority;
mod condition;
mod decision;
mod definition;
mod dots;
mod equality;
mod facts;
mod fit;
pub mod flow;
mod grants;
mod index;
mod literals;
mod nearest;
mod other_names;
mod parse;
mod pattern;
mod pointer;
mod problem;
mod rule;
mod rules;
mod sense;
mod text;
mod twice;
mod unheeded;
mod unmatched;

pub use authority::Authority;
pub use condition::{Condition, Test};
pub use decision::{Because, Decision, Leave, Verdict};
pub use definition::{Definition, DefinitionHash, NotAHash};
pub use facts::{CallFacts, Hints, KnownTool};
pub use grants::{Grant, Scope, SessionGrants};
pub use nearest::nearest;
pub use other_names::OtherNames;
pub use pattern::{Pattern, PatternError, PatternErrorKind, ServerPattern};
pub use pointer::{Pointer, PointerError};
pub use problem::{RuleProblem, RuleProblemKind, Step};
pub use rule::{Annotations, Effect, Rule};
pub use rules::Rules;
pub use text::{Glob, TextError, WholeRegex};
pub use unheeded::Still;
pub use unmatched::{Unmatched, Why};
