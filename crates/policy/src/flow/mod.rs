//! Data on its way from one server to another: finding it, and the rules over it.
//!
//! A [`Detector`] learns the results of one run and finds copies of them in arguments;
//! [`FlowRules`] decide a call with [`Finding`]s.

mod detector;
mod finding;
mod known;
mod normalize;
mod numbers;
mod owners;
mod rules;
#[cfg(test)]
mod tests;
mod unmatched;
mod windows;

pub use detector::Detector;
pub use finding::{Copied, Encoding, Finding, FlowRecord, MAX_PIECE, Seen, Side};
pub use rules::{FlowEnd, FlowRule, FlowRules};
