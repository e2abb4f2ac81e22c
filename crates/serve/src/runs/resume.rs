//! Clients that come again for a run (MCP 2026-07-28, "Multi Round-Trip Requests"). Their
//! `requestState` is the run's id, which cannot be guessed, and a number that grows by round.

use sha2::{Digest as _, Sha256};

/// The request that begins a run. A client that comes again repeats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Purpose {
    /// The kind of request, in words.
    pub(crate) noun: &'static str,
    /// The hash of its code, or of what it calls or looks for.
    hash: [u8; 32],
}

/// The refusal of a `requestState` of no run. As with the others, nothing has changed then.
pub(crate) const NO_RUN: &str = "the requestState is of no run: this server did not give it, or \
                                 its run ended too long ago; the call can be made anew, and then \
                                 does again what that run did";
/// The refusal of a client that cannot answer what the run asks.
pub(crate) const UNANNOUNCED: &str = "the requestState is for questions that this client does not \
                                      announce it can answer; come again with the capabilities \
                                      that the call was made with";

/// The refusal of another request's `requestState`.
pub(crate) fn other_request(noun: &str) -> String {
    format!("the requestState is not one that this server gave for {noun}")
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
