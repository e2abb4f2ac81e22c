//! What a client comes again with: a `requestState` under a seal (MCP
//! 2026-07-28, "Multi Round-Trip Requests").

use std::io::Read as _;
use std::time::Duration;

use rmcp::model::{RequestStateCodec, RequestStateError, SealOptions};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Seals states, and opens those that it has sealed.
pub(crate) struct Seal {
    codec: RequestStateCodec,
}

/// What a `requestState` says. Anyone who has it can read it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ticket {
    /// The run's id.
    pub(crate) run: String,
    /// The numbers of what was put into the answer.
    pub(crate) wishes: Vec<u64>,
}

/// The request that a state is good for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum For<'a> {
    /// `run_script` with this code.
    Script(&'a str),
    /// `wait` for this run.
    Wait(&'a str),
    /// A call of a tool, told by its name and arguments.
    Call(&'a str),
    /// `search_tools` with these arguments.
    Search(&'a str),
}

/// Why a client that comes again is sent away. Nothing has changed then.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum Refused {
    #[error("the requestState is not one that this server gave for {0}")]
    Forged(&'static str),
    #[error(
        "the requestState was used before, or its run ended too long ago; the call can be made \
         anew, and then does again what that run did"
    )]
    Used,
    #[error(
        "the requestState is for questions that this client does not announce it can answer; come \
         again with the capabilities that the call was made with"
    )]
    Unannounced,
}

impl Seal {
    /// A seal of its own.
    ///
    /// # Errors
    ///
    /// If the system gives no random bytes for its key.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            codec: RequestStateCodec::try_new(random::<32>()?.to_vec())
                .map_err(std::io::Error::other)?,
        })
    }

    /// The state for this, good for so long; `None` if it cannot be written.
    pub(crate) fn close(
        &self,
        ticket: &Ticket,
        request: For<'_>,
        time: Duration,
    ) -> Option<String> {
        let bound = request.bound();
        let options = SealOptions::new().associated_data(&bound).ttl(time);
        self.codec.seal_json_with(ticket, &options).ok()
    }

    /// What the state says, if it is good for this request.
    ///
    /// # Errors
    ///
    /// [`Refused::Forged`], and [`Refused::Used`] when its time is over.
    pub(crate) fn open(&self, state: &str, request: For<'_>) -> Result<Ticket, Refused> {
        self.codec
            .open_json_with(state, &request.bound())
            .map_err(|error| match error {
                RequestStateError::Expired => Refused::Used,
                _ => Refused::Forged(match request {
                    For::Script(_) => "this script",
                    For::Wait(_) => "this run",
                    For::Call(_) => "this call",
                    For::Search(_) => "this search",
                }),
            })
    }
}

impl For<'_> {
    fn bound(self) -> Vec<u8> {
        let (tool, text) = match self {
            Self::Script(code) => ("run_script", code),
            Self::Wait(run) => ("wait", run),
            // No generated name has a space.
            Self::Call(call) => ("of a server", call),
            Self::Search(arguments) => ("search_tools", arguments),
        };
        let mut bound = format!("tools/call {tool} ").into_bytes();
        bound.extend_from_slice(&Sha256::digest(text.as_bytes()));
        bound
    }
}

/// # Errors
///
/// If the system gives no random bytes.
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> Ticket {
        Ticket {
            run: "r-1".to_owned(),
            wishes: vec![2, 3],
        }
    }

    #[test]
    fn a_state_is_good_for_its_request_alone() {
        let seals = [(); 2].map(|()| Seal::new().expect("random bytes"));
        let hour = Duration::from_secs(3600);
        let state = seals[0].close(&ticket(), For::Script("code"), hour);
        let state = state.expect("a state");
        let open = |seal: usize, state: &str, request| seals[seal].open(state, request);
        assert_eq!(open(0, &state, For::Script("code")), Ok(ticket()));
        let forged = Err(Refused::Forged("this script"));
        assert_eq!(open(1, &state, For::Script("code")), forged);
        assert_eq!(open(0, &state, For::Script("other")), forged);
        assert_eq!(open(0, "", For::Script("code")), forged);
        assert_eq!(
            open(0, &state.replace('.', ""), For::Script("code")),
            forged
        );
        assert_eq!(
            open(0, &state, For::Wait("code")),
            Err(Refused::Forged("this run"))
        );
        assert_eq!(
            open(0, &state, For::Search("code")),
            Err(Refused::Forged("this search"))
        );
    }

    #[test]
    fn a_state_expires() {
        let seal = Seal::new().expect("random bytes");
        let state = seal.close(&ticket(), For::Wait("r-1"), Duration::ZERO);
        let state = state.expect("a state");
        let opened = loop {
            match seal.open(&state, For::Wait("r-1")) {
                Ok(_) => std::thread::yield_now(),
                Err(refused) => break refused,
            }
        };
        assert_eq!(opened, Refused::Used);
    }
}
