//! The host code that answers a script's calls.

use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::value::RawValue;

use crate::wire::{ErrorClass, Thrown};

/// Answers the calls of scripts.
pub trait CallHandler: Send + Sync {
    /// The future is dropped when the script cancels the call, or when the run ends first. It must
    /// not block: the task that polls it also enforces the limits of the run.
    fn call(&self, call: ScriptCall) -> BoxFuture<'static, Result<Box<RawValue>, Thrown>>;

    /// Makes the error that the script catches for a call or an answer that is not passed on. The
    /// function must be quick. Default: an error of [`ErrorClass::Protocol`] without fields.
    fn undelivered(&self, _function: &str, _what: Undelivered, message: String) -> Thrown {
        Thrown {
            class: ErrorClass::Protocol,
            message,
            fields: "{}".into(),
        }
    }

    /// The time so far in which each call under way waited for approval: it does not count against
    /// [`Limits::run_time`](crate::Limits::run_time). The function must be quick. Default: none.
    fn approval_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Receives the kept output while the script runs, and if it is for standard error. The
    /// function must be quick.
    fn printed(&self, _text: &str, _is_error: bool) {}
}

/// The part of a call that is not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undelivered {
    /// The call: too many bytes of calls wait for an answer.
    Call,
    /// The answer: it is too large, or the script has too many bytes of answers to read.
    Answer,
}

/// A call of a script. All of it comes from the worker and is unchecked.
#[derive(Debug)]
pub struct ScriptCall {
    /// The function's name: any string of at most 4096 bytes.
    pub function: String,
    /// The input, which is valid JSON.
    pub input: Box<RawValue>,
    /// The time limit that the script gives the call, if any. The handler must keep it.
    pub timeout: Option<Duration>,
    /// Line and column of the call in the author's text, if the worker reports them. They may be
    /// any numbers.
    pub place: Option<(u32, u32)>,
}
