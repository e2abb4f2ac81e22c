//! The calls of one script run: decide, write the ledger, send, shape.

mod consult;
mod line;
mod made;

pub use consult::{Consultant, Unanswered};

use std::fmt;
use std::sync::Arc;

use callgate_policy::{Because, Decision, Verdict};
use line::{Opened, denied, fail, is_harmless, kept, late};
use made::{MAX_DECISIONS, Made, Making};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::broker::Broker;
use crate::caller::Caller;
use crate::dry_run::{DryRun, Withheld, WithheldCalls};
use crate::error::{CallError, code};
use crate::failure::Failure;
use crate::judge::Judge;
use crate::ledger::{Ledger, LedgerLine};
use crate::options::{CallOptions, Place};
use crate::outcome::Outcome;
use crate::output::{self, Checked, Mismatch};
use crate::review::Reviews;
use crate::room::Room;
use crate::ruling::Ruling;
use crate::setup::{Renew, RunSetup};
use crate::shape::{Shaped, shape};
use crate::target::Target;

/// One script run: its rules, what was granted in it, and its ledger. Clones
/// are the same run.
#[derive(Clone)]
pub struct Run {
    inner: Arc<Inner>,
}

struct Inner {
    broker: Broker,
    judge: Judge,
    reviews: Arc<Reviews>,
    dry_run: Option<Arc<DryRun>>,
    withheld: WithheldCalls,
    renew: Option<Renew>,
    ledger: Ledger,
    values: Room,
    caller: Option<Arc<dyn Caller>>,
}

impl Run {
    pub(crate) fn new(broker: Broker, setup: RunSetup) -> Self {
        let reviews = Arc::new(Reviews::new(
            Arc::clone(&setup.flows),
            setup.reviewers.clone(),
            setup.script.as_deref(),
            broker.servers().len() + usize::from(setup.consults),
        ));
        Self {
            inner: Arc::new(Inner {
                broker,
                reviews: Arc::clone(&reviews),
                dry_run: setup.dry_run.clone(),
                withheld: WithheldCalls::default(),
                renew: setup.renew.clone(),
                caller: setup.caller.clone(),
                ledger: Ledger::new(setup.journal.clone()),
                values: line::room(),
                judge: Judge::new(setup, reviews),
            }),
        }
    }

    /// Calls a tool, if it may be called.
    ///
    /// `arguments` is a JSON object, or null for an empty one. What comes back
    /// is the tool's `structuredContent`, else its text, else
    /// `{ "content": […] }`, else null. Dropping the future cancels the call.
    ///
    /// # Errors
    ///
    /// [`CallError`], each kind of which a script can catch.
    pub async fn call(
        &self,
        mut target: Target,
        arguments: Box<RawValue>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        let mut given = Arc::new(String::from(Box::<str>::from(arguments)));
        let mut time = None;
        let mut decisions = 0;
        let made = loop {
            let made = self.make(target, given, &options, time, &mut decisions);
            let mut made = match made.await? {
                Making::Made(made) => *made,
                Making::Withheld(answer) => return Ok(answer),
            };
            let (Some(renewed), Err((_, said))) = (made.renewed.take(), &made.result) else {
                break made;
            };
            if decisions >= MAX_DECISIONS {
                break made;
            }
            // Its line in the ledger says that it was to be made, and it was not: what is decided
            // about anew is another call.
            let outcome = Outcome::protocol_error(code::TOOL_CHANGED, said);
            made.entry.close(outcome, None);
            (target, given, time) = (renewed, made.text, Some(made.time));
        };
        let Made {
            target,
            entry,
            text,
            findings,
            time,
            result,
            ..
        } = made;
        let reviews = &self.inner.reviews;
        let harmless = is_harmless(&target.hints);
        let result = match result {
            Ok(result) => result,
            Err((Failure::Timeout(limit), _)) => {
                return Err(late(entry, target, time.whole(limit), harmless));
            }
            Err((Failure::Unfit(reason), _)) => {
                let code = code::INVALID_ARGUMENTS;
                return Err(fail(entry, &target, code, &reason, false));
            }
            Err((Failure::Refused(error), _)) => {
                // A script can read these, too.
                let said = serde_json::json!([&error.message, &error.data]).to_string();
                let refused = reviews.result(&target, &text, &findings, &said).await;
                if let Some(reason) = refused {
                    return Err(kept(entry, target, reason, &said));
                }
                reviews.learn(&target, entry.ordinal(), &said);
                let code = i64::from(error.code.0);
                entry.close(Outcome::protocol_error(code, &error.message), None);
                return Err(CallError::Protocol {
                    server: target.server,
                    function: target.function,
                    code,
                    message: error.message.into_owned(),
                    data: error
                        .data
                        .and_then(|data| serde_json::value::to_raw_value(&data).ok()),
                    retryable: harmless,
                });
            }
            Err((failure, said)) => {
                let code = match &failure {
                    Failure::TooLarge(_) => code::RESULT_TOO_LARGE,
                    Failure::Malformed(_) => code::MALFORMED_RESULT,
                    Failure::Input(_) => code::INPUT_REQUIRED,
                    Failure::Changed { .. } => code::TOOL_CHANGED,
                    _ => code::CONNECTION_CLOSED,
                };
                // It may quote what the server wrote before it ended.
                let quoted = Value::from(said.as_str()).to_string();
                let refused = reviews.result(&target, &text, &findings, &quoted).await;
                if let Some(reason) = refused {
                    return Err(kept(entry, target, reason, &quoted));
                }
                reviews.learn(&target, entry.ordinal(), &quoted);
                // What never left cannot be done twice.
                let retryable = harmless || !failure.was_sent();
                return Err(fail(entry, &target, code, &said, retryable));
            }
        };
        let shaped = shape(&result, target.output_schema.is_some());
        let said = match &shaped {
            Shaped::Value { value, .. } if !options.whole => Some(value.get()),
            Shaped::Value { .. } | Shaped::Failed { .. } => Some(result.get()),
            Shaped::InputRequired | Shaped::Malformed(_) => None,
        };
        if let Some(said) = said {
            let refused = reviews.result(&target, &text, &findings, said).await;
            if let Some(reason) = refused {
                return Err(kept(entry, target, reason, said));
            }
            reviews.learn(&target, entry.ordinal(), said);
        }
        match shaped {
            Shaped::Value { value, structured } => {
                let (value, checked) = output::check(&target, value, structured).await;
                let given = if options.whole { result } else { value };
                match checked {
                    Checked::Fits => {}
                    Checked::Unchecked(reason) => entry.unchecked(reason),
                    Checked::Mismatch(mismatch) => {
                        let Mismatch { message, .. } = &mismatch;
                        let outcome = Outcome::protocol_error(code::RESULT_MISMATCH, message);
                        entry.close(outcome, Some(given.get()));
                        return Err(CallError::Protocol {
                            server: target.server,
                            function: target.function,
                            code: code::RESULT_MISMATCH,
                            data: mismatch.data(&given),
                            message: mismatch.message,
                            retryable: harmless,
                        });
                    }
                }
                entry.close(Outcome::Ok, Some(given.get()));
                Ok(given)
            }
            Shaped::Failed { message, .. } if options.whole => {
                entry.close(Outcome::tool_error(&message), Some(result.get()));
                Ok(result)
            }
            Shaped::Failed {
                message,
                content,
                structured_content,
            } => {
                entry.close(Outcome::tool_error(&message), Some(result.get()));
                Err(CallError::Tool {
                    server: target.server,
                    function: target.function,
                    message,
                    content,
                    structured_content,
                    retryable: harmless,
                })
            }
            Shaped::InputRequired => {
                let message = "the tool wants input in a way that the protocol revision it \
                    speaks does not have";
                Err(fail(
                    entry,
                    &target,
                    code::INPUT_REQUIRED,
                    message,
                    harmless,
                ))
            }
            Shaped::Malformed(reason) => {
                let message = format!("the answer is malformed: {reason}");
                Err(fail(
                    entry,
                    &target,
                    code::MALFORMED_RESULT,
                    &message,
                    harmless,
                ))
            }
        }
    }

    /// Denies a call that its run may not make, whatever the rules say of it.
    pub fn refuse(
        &self,
        target: Target,
        arguments: Box<RawValue>,
        place: Option<Place>,
        because: String,
    ) -> CallError {
        let given = Arc::new(String::from(Box::<str>::from(arguments)));
        let ruling = Ruling::by_rules(Decision::new(Verdict::Deny, Because::Scope(because)));
        match self.open(&target, "arguments", given, place) {
            Ok(Opened { entry, .. }) => denied(entry, target, ruling),
            Err(error) => error,
        }
    }

    /// The run in a journal: 128 random bits, as 32 hexadecimal digits.
    pub fn id(&self) -> &str {
        self.inner.ledger.run()
    }

    /// The calls that a dry run did not make, in the order they were asked for.
    pub fn withheld(&self) -> Vec<Withheld> {
        self.inner.withheld.snapshot()
    }

    /// Every call of the run so far, in the order they were made.
    pub fn ledger(&self) -> Vec<LedgerLine> {
        self.inner.ledger.snapshot()
    }

    /// Has the journal's file take the lines of all calls, as far as it does: at the end of a
    /// run, before anybody reads the file. Elsewhere it takes them within a tenth of a second.
    pub fn write_out(&self) {
        self.inner.ledger.catch_up();
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("judge", &self.inner.judge)
            .finish_non_exhaustive()
    }
}
