//! Sealed `requestState`: what a client comes again with (MCP 2026-07-28, "Multi Round-Trip
//! Requests").

use std::fmt::Write as _;
use std::io::Read as _;
use std::time::Duration;

use rmcp::model::{RequestStateCodec, RequestStateError, SealOptions};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Makes tokens, and opens its own.
pub(crate) struct ResumeTokens {
    codec: RequestStateCodec,
}

/// The content of a `requestState`. A client can read it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResumeToken {
    /// The run's id.
    pub(crate) run: String,
    /// The numbers of the requests in the answer.
    pub(crate) requests: Vec<u64>,
}

/// The request that a token is good for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose<'a> {
    /// `run_script` with this code.
    Script(&'a str),
    /// `wait` for this run.
    Wait(&'a str),
    /// A call of a tool, by its name and arguments.
    Call(&'a str),
    /// `search_tools` with these arguments.
    Search(&'a str),
}

/// The reason why a token is refused. Nothing has changed then.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum ResumeError {
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

impl ResumeTokens {
    /// Tokens with a new key.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub(crate) fn new() -> std::io::Result<Self> {
        let codec = RequestStateCodec::try_new(random::<32>()?.to_vec());
        Ok(Self {
            codec: codec.map_err(std::io::Error::other)?,
        })
    }

    /// The `requestState`, good for this time; `None` if it cannot be written.
    pub(crate) fn seal(
        &self,
        token: &ResumeToken,
        purpose: Purpose<'_>,
        time: Duration,
    ) -> Option<String> {
        let bound = purpose.bytes();
        let options = SealOptions::new().associated_data(&bound).ttl(time);
        self.codec.seal_json_with(token, &options).ok()
    }

    /// The token, if it is good for this request.
    ///
    /// # Errors
    ///
    /// [`ResumeError::Forged`], and [`ResumeError::Used`] after its time.
    pub(crate) fn open(
        &self,
        state: &str,
        purpose: Purpose<'_>,
    ) -> Result<ResumeToken, ResumeError> {
        let opened = self.codec.open_json_with(state, &purpose.bytes());
        opened.map_err(|error| match error {
            RequestStateError::Expired => ResumeError::Used,
            _ => ResumeError::Forged(match purpose {
                Purpose::Script(_) => "this script",
                Purpose::Wait(_) => "this run",
                Purpose::Call(_) => "this call",
                Purpose::Search(_) => "this search",
            }),
        })
    }
}

impl Purpose<'_> {
    /// The bytes that a token is bound to.
    fn bytes(self) -> Vec<u8> {
        let (tool, text) = match self {
            Self::Script(code) => ("run_script", code),
            Self::Wait(run) => ("wait", run),
            // No generated name has a space.
            Self::Call(call) => ("of a server", call),
            Self::Search(arguments) => ("search_tools", arguments),
        };
        let mut bytes = format!("tools/call {tool} ").into_bytes();
        bytes.extend_from_slice(&Sha256::digest(text.as_bytes()));
        bytes
    }
}

/// 128 random bits as 32 hexadecimal digits.
///
/// # Errors
///
/// The system gives no random bytes.
pub(crate) fn random_hex() -> std::io::Result<String> {
    let mut hex = String::new();
    for byte in random::<16>()? {
        let _ = write!(hex, "{byte:02x}");
    }
    Ok(hex)
}

fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> ResumeToken {
        ResumeToken {
            run: "r-1".to_owned(),
            requests: vec![1, 2],
        }
    }

    #[test]
    fn a_token_is_good_for_its_own_request_alone() {
        let (ours, others) = (ResumeTokens::new(), ResumeTokens::new());
        let (ours, others) = (ours.expect("random bytes"), others.expect("random bytes"));
        let script = Purpose::Script("code");
        let state = ours
            .seal(&token(), script, Duration::from_secs(60))
            .expect("a state");
        assert_eq!(ours.open(&state, script), Ok(token()));
        for (tokens, state, purpose) in [
            (&others, state.as_str(), script),
            (&ours, &state, Purpose::Script("other")),
            (&ours, &state, Purpose::Wait("code")),
            (&ours, &state, Purpose::Search("code")),
            (&ours, "", script),
            (&ours, &state.replace('.', ""), script),
        ] {
            let opened = tokens.open(state, purpose);
            assert!(matches!(opened, Err(ResumeError::Forged(_))), "{opened:?}");
        }
        assert_ne!(random_hex().expect("bytes"), random_hex().expect("bytes"));
    }

    #[test]
    fn a_token_expires() {
        let tokens = ResumeTokens::new().expect("random bytes");
        let state = tokens.seal(&token(), Purpose::Wait("r-1"), Duration::ZERO);
        let state = state.expect("a state");
        let error = loop {
            match tokens.open(&state, Purpose::Wait("r-1")) {
                Ok(_) => std::thread::yield_now(),
                Err(error) => break error,
            }
        };
        assert_eq!(error, ResumeError::Used);
    }
}
