//! The open line of a call: each step of the call is noted, and its end closes the line.

use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_policy::Rule;
use callgate_policy::flow::Finding;
use callgate_text::one_line;
use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use super::call_line::LedgerLine;
use super::chain::digest;
use super::events::{CallEvent, LedgerEvent};
use super::outcome::{Outcome, cut};
use super::{Ledger, MAX_FLOWS, MAX_FLOWS_OF_LINE, millis};
use crate::arguments::Arguments;
use crate::error::{CallError, CallErrorKind, code};
use crate::ruling::Ruling;

/// The limit of a call's arguments in a report's text, in characters.
const SHOWN_ARGUMENTS: usize = 200;

/// The decision of a call that was given up first.
const UNDECIDED: &str = "undecided: it was given up first";

/// The end of the message of an error about arguments that the script did not write.
const EDITED: &str = "; the operator changed the arguments of this call";

/// The open line of a call. Dropping it before the call's end records that the call was cancelled.
pub(crate) struct OpenLine {
    ledger: Arc<Ledger>,
    index: usize,
    function: String,
    server: String,
    sent: Option<Instant>,
    arguments: Option<Arc<str>>,
    rule: Option<Rule>,
    is_edited: bool,
    is_closed: bool,
}

impl OpenLine {
    pub(super) fn new(ledger: Arc<Ledger>, index: usize, function: String, server: String) -> Self {
        Self {
            ledger,
            index,
            function,
            server,
            sent: None,
            arguments: None,
            rule: None,
            is_edited: false,
            is_closed: false,
        }
    }

    /// The call's number in the ledger, from 1.
    pub(crate) fn ordinal(&self) -> usize {
        self.index + 1
    }

    /// Parses the arguments, and notes them as they will be sent. `noun` names them in the error.
    pub(crate) fn parse(&mut self, given: &RawValue, noun: &str) -> Result<Arguments, CallError> {
        let parsed = Arguments::parse(given.get(), noun);
        let arguments =
            parsed.map_err(|message| self.fail(code::INVALID_ARGUMENTS, message, false))?;
        self.note(&arguments);
        Ok(arguments)
    }

    /// Notes arguments that an answer put in place of the script's.
    pub(crate) fn edited(&mut self, arguments: &Arguments) {
        self.is_edited = true;
        self.note(arguments);
    }

    fn note(&mut self, arguments: &Arguments) {
        let text = arguments.text();
        self.arguments = Some(Arc::clone(text));
        let (sha256, shown) = (digest(text), one_line(text, SHOWN_ARGUMENTS));
        self.change(|line| {
            line.arguments = shown;
            line.argument_bytes = text.len();
            line.argument_sha256 = Some(sha256);
            line.edited = self.is_edited;
        });
    }

    /// Notes the flows found in the arguments: the first ones, up to the limits.
    pub(crate) fn found(&mut self, flows: &[Finding]) {
        let mut lines = self.ledger.lines.lock();
        let kept: usize = lines.iter().map(|line| line.flows.len()).sum();
        let Some(line) = lines.get_mut(self.index) else {
            return;
        };
        let room = MAX_FLOWS.saturating_sub(kept).max(1);
        let first = flows.iter().take(room.min(MAX_FLOWS_OF_LINE));
        line.flows = first.map(Finding::record).collect();
        line.more_flows = flows.len() - line.flows.len();
    }

    pub(crate) fn decided(&mut self, ruling: &Ruling) {
        self.rule = ruling.rule().cloned();
        self.change(|line| {
            line.decision = ruling.to_string();
            line.answer = ruling.answer;
            line.answered_by.clone_from(&ruling.details.by);
            line.answered_via.clone_from(&ruling.details.via);
            line.answer_reason.clone_from(&ruling.details.reason);
        });
    }

    /// Records in all sinks that the call is about to be sent. If this fails, it must not be sent.
    pub(crate) fn sending(&mut self) -> Result<(), CallError> {
        if let Some(line) = self.change(|line| line.outcome = Outcome::InFlight) {
            let event = LedgerEvent::CallDecided(self.event(&line, None));
            let mut sinks = self.ledger.sinks.iter();
            let emitted = sinks.try_for_each(|sink| sink.event(&event));
            if let Err(error) = emitted {
                let message = format!("{error}; a call is made only when its line is written");
                return Err(self.fail(code::NOT_RECORDED, message, true));
            }
        }
        self.sent = Some(Instant::now());
        Ok(())
    }

    pub(crate) fn error(&self, mut kind: CallErrorKind) -> CallError {
        if self.is_edited {
            match &mut kind {
                CallErrorKind::Tool { message, .. } | CallErrorKind::Protocol { message, .. } => {
                    message.push_str(EDITED);
                }
                CallErrorKind::Timeout { unused, .. } => unused.push_str(EDITED),
                _ => {}
            }
        }
        CallError {
            server: self.server.clone(),
            function: self.function.clone(),
            kind,
        }
    }

    /// Notes the reason why the result was not checked against the tool's schema.
    pub(crate) fn unchecked(&mut self, reason: String) {
        self.change(|line| line.unchecked = Some(reason));
    }

    /// Closes the line of a call that was not allowed.
    pub(crate) fn denied(&mut self, ruling: Ruling) -> CallError {
        let advice = ruling.advice(&self.function);
        self.change(|line| line.advice = advice);
        self.close(Outcome::Denied, None);
        self.error(CallErrorKind::Denied(Box::new(ruling)))
    }

    /// Closes the line of a call that a dry run answers, perhaps with a recorded result.
    pub(crate) fn answered_in_dry_run(&mut self, decision: &str, recorded: Option<&str>) {
        self.change(|line| line.decision = decision.to_owned());
        let outcome = match recorded {
            Some(_) => Outcome::Recorded,
            None => Outcome::Withheld,
        };
        self.close(outcome, recorded);
    }

    /// Closes the line of a call whose result a reviewer withholds from the script.
    pub(crate) fn withheld_by_reviewer(&mut self, reason: String, result: &str) -> CallError {
        let said = cut(&reason);
        self.close(Outcome::Kept { reason: said }, Some(result));
        self.error(CallErrorKind::Kept { reason })
    }

    /// Closes the line of a call without an answer in time.
    pub(crate) fn timed_out(
        &mut self,
        limit: Duration,
        unused: String,
        retryable: bool,
    ) -> CallError {
        let limit_ms = millis(limit);
        self.close(Outcome::TimedOut { limit_ms }, None);
        self.error(CallErrorKind::Timeout {
            limit,
            unused,
            retryable,
        })
    }

    /// Closes the line of a call that has no valid result.
    pub(crate) fn fail(&mut self, code: i64, message: String, retryable: bool) -> CallError {
        self.fail_with(code, message, retryable, None, None)
    }

    /// Closes the line as [`Self::fail`], with data for the script, and with an invalid result.
    pub(crate) fn fail_with(
        &mut self,
        code: i64,
        message: String,
        retryable: bool,
        data: Option<Box<RawValue>>,
        result: Option<&str>,
    ) -> CallError {
        let said = cut(&message);
        self.close(
            Outcome::ProtocolError {
                code,
                message: said,
            },
            result,
        );
        self.error(CallErrorKind::Protocol {
            code,
            message,
            data,
            retryable,
        })
    }

    /// Closes the line of a call whose result does not match the tool's schema. `is_structured`: the
    /// result is `structuredContent`, as it must be if there is a schema.
    pub(crate) fn schema_mismatch(
        &mut self,
        problems: &[String],
        is_structured: bool,
        given: &RawValue,
    ) -> CallError {
        let what = if is_structured {
            "the call was made, and its result does not fit the tool's outputSchema"
        } else {
            "the call was made; the tool has an outputSchema and answered without \
             structuredContent, and what it answered does not fit"
        };
        let first = problems.first().map(|first| format!(": {first}"));
        let message = format!("{what}{}", first.unwrap_or_default());
        let problems = Value::from(problems);
        let data = format!(r#"{{"problems":{problems},"result":{given}}}"#);
        let data = RawValue::from_string(data).ok();
        self.fail_with(
            code::RESULT_MISMATCH,
            message,
            false,
            data,
            Some(given.get()),
        )
    }

    /// Closes the line with the call's outcome, and the JSON text of its result if it has one.
    pub(crate) fn close(&mut self, outcome: Outcome, result: Option<&str>) {
        self.is_closed = true;
        let took_ms = self.sent.map(|sent| millis(sent.elapsed()));
        let line = self.change(|line| {
            line.outcome = outcome;
            line.result_bytes = result.map(str::len);
            line.result_sha256 = result.map(digest);
            line.took_ms = took_ms;
        });
        if let Some(line) = &line {
            let event = LedgerEvent::CallEnded(self.event(line, result));
            self.ledger.emit_or_log(&event);
        }
    }

    fn event<'a>(&'a self, line: &'a LedgerLine, result: Option<&'a str>) -> CallEvent<'a> {
        CallEvent {
            run: &self.ledger.run,
            time: Timestamp::now(),
            line,
            was_sent: self.sent.is_some(),
            rule: self.rule.as_ref(),
            arguments: self.arguments.as_deref(),
            result,
        }
    }

    /// Changes the line, and returns the changed line.
    fn change(&self, change: impl FnOnce(&mut LedgerLine)) -> Option<LedgerLine> {
        let mut lines = self.ledger.lines.lock();
        let line = lines.get_mut(self.index)?;
        change(line);
        Some(line.clone())
    }
}

impl Drop for OpenLine {
    fn drop(&mut self) {
        if !self.is_closed {
            self.change(|line| {
                if line.decision.is_empty() {
                    line.decision = UNDECIDED.to_owned();
                }
            });
            self.close(Outcome::Cancelled, None);
        }
    }
}
