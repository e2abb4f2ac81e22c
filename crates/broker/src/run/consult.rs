//! Handing data to something that is no server, such as the host's model: under
//! the same rules, flows, reviewers and ledger as a call.

use callgate_policy::Hints;
use serde_json::value::RawValue;

use super::{Case, Outcome, Run, Target, parse_arguments};
use crate::error::{CallError, code};
use crate::ledger::MAX_LINES;
use crate::options::Place;
use serde_json::Value;

/// Something of the host's own that a script hands data to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consultant {
    /// What rules and the ledger know it by.
    pub function: String,
    /// What stands where a server's name stands.
    pub server: String,
    /// What stands where a tool's name stands.
    pub tool: String,
}

impl Run {
    /// Hands `input`, a JSON object, to something of the host's own, which
    /// `work` does if it may be done. Without a rule it may: whoever set it up
    /// said so.
    ///
    /// `work` gives the answer, or an error and what the ledger says of it.
    ///
    /// # Errors
    ///
    /// [`CallError`] where `work` was not begun, or its answer is kept back.
    pub async fn consult<E>(
        &self,
        consultant: &Consultant,
        input: &RawValue,
        place: Option<Place>,
        work: impl Future<Output = Result<Box<RawValue>, (E, String)>>,
    ) -> Result<Result<Box<RawValue>, E>, CallError> {
        let target = Target {
            function: consultant.function.clone(),
            server: consultant.server.clone(),
            tool: consultant.tool.clone(),
            hints: Hints {
                read_only: Some(true),
                ..Hints::default()
            },
            ..Target::default()
        };
        let protocol = |code, message: String| CallError::Protocol {
            server: target.server.clone(),
            tool: target.tool.clone(),
            code,
            message,
            data: None,
            retryable: false,
        };
        let opened = self.inner.ledger.open(
            &target.function,
            &target.server,
            &target.tool,
            place.map(|place| place.line),
            input.get().len(),
        );
        let Some(mut entry) = opened else {
            let message = format!("a run may make {MAX_LINES} calls, and this one has");
            return Err(protocol(code::TOO_MANY_CALLS, message));
        };
        let parsed = parse_arguments(input).and_then(|parsed| {
            let text = serde_json::to_string(&parsed).map_err(|error| error.to_string())?;
            Ok((Value::Object(parsed), text))
        });
        let (arguments, text) = match parsed {
            Ok(parsed) => parsed,
            Err(reason) => {
                let message = format!("the input must be one JSON object: {reason}");
                let outcome = Outcome::protocol_error(code::INVALID_ARGUMENTS, &message);
                entry.close(outcome, None);
                return Err(protocol(code::INVALID_ARGUMENTS, message));
            }
        };
        let findings = self.inner.reviews.arguments(&target, &text).await;
        entry.reviewed(&text, findings.records());
        let case = Case {
            target: &target,
            // It is the host's own.
            trusted: true,
            arguments: &arguments,
            text: &text,
            place,
            findings: &findings,
        };
        let ruling = self.inner.judge.decide(&case, &self.inner.ledger).await;
        if !ruling.allows() {
            entry.denied(&ruling);
            return Err(CallError::Denied {
                server: target.server,
                tool: target.tool,
                function: target.function,
                ruling: Box::new(ruling),
            });
        }
        if let Err(error) = entry.sending(&ruling) {
            let message = format!("{error}; nothing is handed on that is not written down");
            entry.close(Outcome::protocol_error(code::NOT_RECORDED, &message), None);
            return Err(protocol(code::NOT_RECORDED, message));
        }
        let answer = match work.await {
            Ok(answer) => answer,
            Err((error, said)) => {
                entry.close(Outcome::tool_error(&said), None);
                return Ok(Err(error));
            }
        };
        let reviews = &self.inner.reviews;
        let refused = reviews
            .result(&target, &text, &findings, answer.get())
            .await;
        if let Some(reason) = refused {
            entry.close(Outcome::kept(&reason), Some(answer.get()));
            return Err(CallError::Kept {
                server: target.server,
                tool: target.tool,
                function: target.function,
                reason,
            });
        }
        reviews.learn(&target, entry.ordinal(), answer.get());
        entry.close(Outcome::Ok, Some(answer.get()));
        Ok(Ok(answer))
    }
}
