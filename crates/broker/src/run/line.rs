//! A call from what a script asks to what may be handed on, and the errors on the way: the
//! same for servers and for what is the host's own.

use std::sync::Arc;
use std::time::Duration;

use callgate_policy::Hints;

use super::Run;
use crate::error::{CallError, code};
use crate::integers;
use crate::ledger::{Entry, MAX_LINES};
use crate::options::Place;
use crate::outcome::Outcome;
use crate::room::Room;
use crate::ruling::Ruling;
use crate::target::Target;
use crate::values::{Held, Unread};
use crate::written::is_written;

/// The most levels that are read.
const MAX_LEVELS: u32 = 127;

/// The most values that are read for the calls of a run that are not decided about yet. So
/// many are what 2 MiB of text can have, at the least.
const MAX_VALUES: u32 = 1 << 20;

/// Digits of a number that a message shows.
const SHOWN_DIGITS: usize = 40;

/// A call with its line in the ledger, before anybody has looked at it.
pub(super) struct Opened {
    pub(super) entry: Entry,
    pub(super) arguments: Held,
    /// The same as JSON: what rules, the asker and whoever is called see, whatever the
    /// script's text was like. That text itself where it is written the same way.
    pub(super) text: Arc<String>,
}

impl Run {
    /// Opens a line for a call, with its arguments in it. `what` is what the script
    /// handed over.
    pub(super) fn open(
        &self,
        target: &Target,
        what: &str,
        given: Arc<String>,
        place: Option<Place>,
    ) -> Result<Opened, CallError> {
        let opened = self.inner.ledger.open(
            &target.function,
            &target.server,
            &target.tool,
            place.map(|place| place.line),
            given.len(),
        );
        let Some(mut entry) = opened else {
            let message = format!("a run may make {MAX_LINES} calls, and this one has");
            return Err(protocol(target, code::TOO_MANY_CALLS, message, false));
        };
        match parse(&self.inner.values, given, what) {
            Ok((arguments, text)) => {
                entry.takes(&text);
                Ok(Opened {
                    entry,
                    arguments,
                    text,
                })
            }
            Err(Unfit { message, passes }) => {
                let code = match passes {
                    true => code::TOO_MANY_CALLS,
                    false => code::INVALID_ARGUMENTS,
                };
                Err(fail(entry, target, code, &message, passes))
            }
        }
    }
}

/// Writes down that the call is made. Where that fails, it must not be.
pub(super) fn sending(
    mut entry: Entry,
    target: &Target,
    ruling: &Ruling,
) -> Result<Entry, CallError> {
    match entry.sending(ruling) {
        Ok(()) => Ok(entry),
        Err(error) => {
            let message = format!("{error}; no call is made that is not written down");
            Err(fail(entry, target, code::NOT_RECORDED, &message, true))
        }
    }
}

/// Closes the line of a call that is not let through.
pub(super) fn denied(entry: Entry, target: Target, ruling: Ruling) -> CallError {
    entry.denied(&ruling);
    CallError::Denied {
        server: target.server,
        function: target.function,
        ruling: Box::new(ruling),
    }
}

/// Closes the line of a call whose result the script may not have.
pub(super) fn kept(entry: Entry, target: Target, reason: String, result: &str) -> CallError {
    entry.close(Outcome::kept(&reason), Some(result));
    CallError::Kept {
        server: target.server,
        function: target.function,
        reason,
    }
}

/// Closes the line of a call that has no result.
pub(super) fn fail(
    entry: Entry,
    target: &Target,
    code: i64,
    message: &str,
    retryable: bool,
) -> CallError {
    entry.close(Outcome::protocol_error(code, message), None);
    protocol(target, code, message.to_owned(), retryable)
}

/// Closes the line of a call whose time is over.
pub(super) fn late(entry: Entry, target: Target, limit: Duration, retryable: bool) -> CallError {
    let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    entry.close(Outcome::TimedOut { limit_ms }, None);
    CallError::Timeout {
        server: target.server,
        function: target.function,
        limit,
        retryable,
    }
}

/// Whether it does no harm to make the call again, by the tool's own word: it is for the
/// script to decide about.
pub(super) fn is_harmless(hints: &Hints) -> bool {
    hints.read_only == Some(true) || hints.idempotent == Some(true)
}

fn protocol(target: &Target, code: i64, message: String, retryable: bool) -> CallError {
    CallError::Protocol {
        server: target.server.clone(),
        function: target.function.clone(),
        code,
        message,
        data: None,
        retryable,
    }
}

/// Room for what the calls of a run are given.
pub(super) fn room() -> Room {
    Room::new(MAX_VALUES)
}

/// Why a call is not made with what it is given.
struct Unfit {
    message: String,
    /// There may be room for it later.
    passes: bool,
}

impl From<String> for Unfit {
    fn from(message: String) -> Self {
        Self {
            message,
            passes: false,
        }
    }
}

/// What a call is given, as a value and as the text that everybody sees.
fn parse(room: &Room, given: Arc<String>, what: &str) -> Result<(Held, Arc<String>), Unfit> {
    let parsed = room.object_or_null(&given).map_err(|unread| match unread {
        Unread::TooMany { most } => Unfit::from(format!(
            "the {what} must have at most {most} values, and have more; give some of them as \
             text, or in parts"
        )),
        Unread::Full { most } => Unfit {
            message: format!(
                "the {what} of a run's calls that are not decided about yet must have at most \
                 {most} values together, and with these would have more; make fewer such calls \
                 at a time"
            ),
            passes: true,
        },
        Unread::Unfit(error) => unfit(what, &error).into(),
    })?;
    if is_written(&parsed, &given) {
        return Ok((parsed, given));
    }
    if let Some(number) = integers::inexact(&given) {
        let shown: String = number.chars().take(SHOWN_DIGITS).collect();
        let more = if shown.len() < number.len() {
            "…"
        } else {
            ""
        };
        let message = format!(
            "the {what} have an integer that would not be kept exactly: {shown}{more}; give it as \
             text, or with an exponent"
        );
        return Err(message.into());
    }
    let text = serde_json::to_string(&*parsed).map_err(|error| unfit(what, &error))?;
    Ok((parsed, Arc::new(text)))
}

/// What is wrong with what was handed over.
fn unfit(what: &str, error: &serde_json::Error) -> String {
    // A parser's word for it, and a place in a text that nobody has seen.
    match error.to_string().starts_with("recursion limit exceeded") {
        true => format!(
            "the {what} must be nested at most {MAX_LEVELS} levels deep; give what is deeper as \
             text, or in parts"
        ),
        false => format!("the {what} must be one JSON object: {error}"),
    }
}
