//! Repeated requests for a run (MCP 2026-07-28, "Multi Round-Trip Requests"). Their `requestState`
//! is the run's id, which cannot be guessed, and a number that grows with each round.

use sha2::{Digest as _, Sha256};

/// The request that starts a run, and that the client repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Purpose {
    /// The kind of request, in words.
    pub(crate) noun: &'static str,
    /// The hash of its code, call or query.
    hash: [u8; 32],
}

/// The refusal of a `requestState` without a run. A refusal changes nothing.
pub(crate) const NO_RUN: &str = "no run has this requestState: this server did not give it, or \
                                 its run ended too long ago; a new call without it does the work \
                                 of that run again";
/// The refusal of a client that cannot answer the run's questions.
pub(crate) const UNDECLARED: &str = "the run has questions that this client does not declare it can \
                                     answer; repeat the request with the capabilities of the first \
                                     one";

/// The refusal of a `requestState` that belongs to a different request.
pub(crate) fn other_request(noun: &str) -> String {
    format!("the requestState does not belong to {noun}")
}

impl Purpose {
    pub(crate) const SCRIPT: &str = "this script";
    pub(crate) const CALL: &str = "this call";
    pub(crate) const SEARCH: &str = "this search";

    pub(crate) fn new(noun: &'static str, text: &str) -> Self {
        let hash = Sha256::digest(text).into();
        Self { noun, hash }
    }
}

/// The `requestState` of a run in this round.
pub(crate) fn state(run: &str, round: u64) -> String {
    format!("{run}.{round}")
}

/// The run and the round in a `requestState`.
pub(crate) fn read(state: &str) -> Option<(&str, u64)> {
    let (run, round) = state.split_once('.')?;
    Some((run, round.parse().ok()?))
}
