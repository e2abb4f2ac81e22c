//! Internal crate of Callgate: Rules over tool calls, and the decision they give.
//!
//! Pure: no IO, no clock. A [`Rules`] value is built once from configuration
//! and flags. A run has [`Permissions`]: the rules, the grants, and
//! the uses that are left of both. They are asked before every tool call and answer
//! with a [`Decision`] that says what happens and because of what. Deny rules
//! are asked first, then grants, then ask rules, then allow rules, whatever the
//! order in which they were written. Without a matching rule a call is allowed
//! only if its tool says that it is read-only and its server is trusted; every
//! other call is asked about.

mod condition;
mod decision;
mod definition;
mod equality;
mod facts;
pub mod flow;
mod grants;
mod lint;
mod name_pattern;
mod nearest;
mod other_names;
mod parse;
mod path_dots;
mod permissions;
mod pointer;
mod problem;
mod rule;
mod rule_match;
mod rules;
mod text_pattern;
mod verdict;

pub use condition::Condition;
pub use decision::{Because, Decision, Permission};
pub use definition::{Definition, DefinitionHash, NotAHash};
pub use facts::{CallFacts, Hints, KnownTool};
pub use grants::{Grant, Scope, SessionGrants};
pub use lint::{Unmatched, Why, listed_members};
pub use name_pattern::{Pattern, PatternError, ServerPattern};
pub use nearest::{nearest, nearest_tool};
pub use other_names::OtherNames;
pub use parse::RuleError;
pub use permissions::{Count, Permissions};
pub use pointer::Pointer;
pub use problem::Finding;
pub use rule::{Annotations, Effect, Rule};
pub use rules::{Rules, RulesBuilder};
pub use text_pattern::TextPattern;
pub use verdict::Verdict;
