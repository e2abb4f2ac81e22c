//! Data on its way from one server to another: finding it, and the rules over it.
//!
//! A [`Detector`] learns the results of one run and finds copies of them in arguments;
//! [`FlowRules`] say what happens to a call with [`Finding`]s.

mod detector;
mod finding;
mod known;
mod lint;
mod normalize;
mod numbers;
mod owners;
mod rules;
#[cfg(test)]
mod tests;
mod windows;

pub use detector::Detector;
pub use finding::{Copied, Encoding, Finding, FlowRecord, MAX_PIECE, Seen, Side};
pub use lint::UnknownTools;
pub use rules::{FlowEnd, FlowReason, FlowRule, FlowRules, FlowWhy};
