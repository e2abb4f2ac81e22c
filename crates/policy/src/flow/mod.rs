//! Data on its way from one server to another: what counts as such, how it is
//! found, and the rules over it.
//!
//! [`Flows`] learns the results of one run and looks for pieces of them in
//! arguments; [`FlowRules`] say what happens to a call with [`Finding`]s.
//!
//! Finding has to be cheap where there is nothing to find. Of a text that was
//! learnt, every piece of twelve bytes is in a filter of bits; of arguments,
//! one piece in five is looked up there (in long ones, one in thirteen or twenty-one), so
//! that a copy of sixteen bytes (or twenty-four, or thirty-two) is met for sure. Only then the
//! neighbours are looked at, and a table that is made when it is first needed
//! tells whose the piece is and where it was learnt; from there on the two texts
//! are compared as they are. Behind a piece the look goes on; within it, only where several
//! sources have the same, and what a server said itself first is its own. What has no
//! escapes is looked at where it is, and escapes, base64 and numbers are looked for many
//! bytes at a time. Long texts are searched in sections that no piece goes beyond, so that
//! several threads can take part in an [`Inspection`].

mod arguments;
mod encoded;
mod filters;
mod finding;
mod flows;
mod foresight;
mod grams;
mod hits;
mod index;
mod inspection;
mod kinds;
mod known;
mod normal;
mod numbers;
mod parts;
mod probe;
mod rules;
mod scan;
mod shared;
mod tables;
#[cfg(test)]
mod tests;
mod unmatched;

pub use finding::{Copied, Encoding, Finding, FlowRecord, MAX_PIECE, Seen, Side};
pub use flows::Flows;
pub use inspection::Inspection;
pub use rules::{FlowEnd, FlowReason, FlowRule, FlowRules, FlowWhy};
pub use unmatched::UnknownTools;
