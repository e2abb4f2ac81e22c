//! Internal crate of Callgate: Rules over tool calls, and the decision they give.
//!
//! Pure: no IO, no clock. A [`Rules`] value is built once from configuration
//! and flags; [`Rules::decide`] is asked before every tool call and answers
//! with a [`Decision`] that says what happens and because of what. Deny rules
//! are asked first, then ask rules, then allow rules, whatever the order in
//! which they were written. Without a matching rule a call is allowed only if
//! its tool says that it is read-only and its server is trusted; every other
//! call is asked about.

mod decision;
mod pattern;
mod rules;

pub use decision::{Because, Decision, Verdict};
pub use pattern::{Pattern, PatternError, PatternErrorKind};
pub use rules::{CallFacts, Effect, Rule, Rules, Unmatched};
