//! Internal crate of Callgate: Rules over tool calls, and the decision they give.
//!
//! Pure: no IO, no clock. A [`Rules`] value is built once from configuration and flags. A run has
//! [`Permissions`]: the rules, the grants, and their remaining uses. They decide every tool call,
//! and give a [`Decision`] with its reason. Deny rules come first, then grants, then ask rules,
//! then allow rules, whatever the order in which they were written. Without a matching rule a call
//! is allowed only if its tool says that it is read-only and its server is trusted; every other
//! call is asked about.

mod condition;
mod decision;
mod definition;
mod equality;
mod error;
mod facts;
pub mod flow;
mod grants;
mod name_pattern;
mod parse;
mod path_dots;
mod permissions;
mod pointer;
mod rule;
mod rule_match;
mod rules;
mod text_pattern;
mod tool_name;
mod unmatched;
mod verdict;

pub use condition::Condition;
pub use decision::{Because, Decision, Permission};
pub use definition::{Definition, DefinitionHash, NotAHash};
pub use error::RuleError;
pub use facts::{CallFacts, Hints, KnownTool};
pub use grants::{Grant, Inapplicable, Scope, SessionGrants};
pub use name_pattern::{Pattern, ServerPattern};
pub use permissions::{Count, Permissions};
pub use pointer::Pointer;
pub use rule::{Annotations, Effect, Rule};
pub use rules::{Rules, RulesBuilder};
pub use text_pattern::TextPattern;
pub use tool_name::{ToolName, UnlistedServer};
pub use unmatched::{KnownTools, Unmatched, listed_members};
pub use verdict::Verdict;
