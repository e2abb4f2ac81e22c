//! The calls of one script run: decide, write the ledger, send, shape.

mod consult;
mod line;

pub use consult::Consultant;

use std::fmt;
use std::sync::Arc;

use callgate_policy::{Because, Decision, Definition, Verdict};
use line::{Opened, denied, fail, is_harmless, kept, sending};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::broker::Broker;
use crate::caller::Caller;
use crate::calls::Call;
use crate::dry_run::{DryRun, Withheld, WithheldCalls};
use crate::error::{CallError, code};
use crate::failure::Failure;
use crate::judge::{Case, Judge};
use crate::ledger::{Entry, Ledger, LedgerLine};
use crate::options::{CallOptions, Place};
use crate::outcome::Outcome;
use crate::output::{self, Checked, Mismatch};
use crate::review::{Findings, Reviews};
use crate::ruling::Ruling;
use crate::setup::{Renew, RunSetup};
use crate::shape::{Shaped, shape};
use crate::target::Target;

/// How often one call is decided about, as its tool changes meanwhile.
const MAX_DECISIONS: usize = 3;

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
                ledger: Ledger::new(setup.journal.clone(), setup.together),
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
        let harmless = is_harmless(&target.hints);
        let given = Arc::new(String::from(Box::<str>::from(arguments)));
        let look = self.inner.reviews.begin(&target, &given);
        let Opened {
            mut entry,
            arguments,
            text,
        } = self.open(&target, "arguments", given, options.place)?;
        let Some(server) = self.inner.broker.find(&target.server) else {
            let message = format!("there is no server `{}`", target.server);
            return Err(fail(
                entry,
                &target,
                code::CONNECTION_CLOSED,
                &message,
                false,
            ));
        };

        let reviews = &self.inner.reviews;
        // A journal has what a call carries in the line before it.
        let may_overlap = self.inner.dry_run.is_none() && !self.inner.ledger.has_journal();
        let mut findings = reviews.arguments(&target, &text, look, may_overlap).await;
        entry.carries(findings.records());
        let mut decisions = 0;
        let ruling = loop {
            let case = Case {
                target: &target,
                trusted: server.trusted(),
                arguments: &arguments,
                text: &text,
                place: options.place,
            };
            let judge = &self.inner.judge;
            let decision = judge.take(&case, &findings);
            let dry_run = self.inner.dry_run.as_deref();
            let ruling = match dry_run.filter(|dry_run| !dry_run.makes(&target, case.trusted)) {
                Some(dry_run) if decision.verdict != Verdict::Deny => {
                    return self.withhold(entry, dry_run, &case, &Ruling::by_rules(decision));
                }
                // Nobody is asked about a call that is not made.
                Some(_) => Ruling::by_rules(decision),
                None => {
                    if decision.verdict == Verdict::Ask {
                        self.look_to_the_end(&entry, &text, &mut findings).await;
                    }
                    let ledger = &self.inner.ledger;
                    judge.settle(&case, &findings, decision, ledger).await
                }
            };
            if !ruling.allows() {
                return Err(denied(entry, target, ruling));
            }
            // Whoever was asked may have thought about it for long.
            let definition = target.definition.as_deref().map(Definition::hash);
            let decided = definition.map(|definition| server.decided(definition));
            let still_is = decided.map_or(Ok(()), |decided| decided.still_is(&target.tool));
            let Err(changed) = still_is else {
                break ruling;
            };
            decisions += 1;
            target = match self.renewed(&target).await {
                Some(renewed) if decisions < MAX_DECISIONS => renewed,
                _ => {
                    entry.decided(&ruling);
                    let message = changed.to_string();
                    return Err(fail(entry, &target, code::TOOL_CHANGED, &message, true));
                }
            };
        };
        let entry = sending(entry, &target, &ruling).await?;

        let definition = target.definition.as_deref().map(Definition::hash);
        let call = Call {
            tool: &target.tool,
            arguments: &text,
            caller: self.inner.caller.clone().unwrap_or_else(|| server.caller()),
            patience: options.patience(server.patience()),
            decided: definition.map(|definition| server.decided(definition)),
        };
        let result = server.call(&call).await;
        self.look_to_the_end(&entry, &text, &mut findings).await;
        let result = match result {
            Ok(result) => result,
            Err((Failure::Timeout(limit), _)) => {
                let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                entry.close(Outcome::TimedOut { limit_ms }, None);
                let (server, tool) = (target.server, target.tool);
                return Err(CallError::Timeout {
                    server,
                    tool,
                    limit,
                    retryable: harmless,
                });
            }
            Err((Failure::Refused(error), _)) => {
                // A script can read these, too.
                let said = serde_json::json!([&error.message, &error.data]).to_string();
                let refused = reviews.result(&target, &text, &findings, &said).await;
                if let Some(reason) = refused {
                    return Err(kept(entry, target, reason, &said));
                }
                reviews.learn(&target, entry.ordinal(), &said).await;
                let code = i64::from(error.code.0);
                entry.close(Outcome::protocol_error(code, &error.message), None);
                return Err(CallError::Protocol {
                    server: target.server,
                    tool: target.tool,
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
                reviews.learn(&target, entry.ordinal(), &quoted).await;
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
            reviews.learn(&target, entry.ordinal(), said).await;
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
                            tool: target.tool,
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
                    tool: target.tool,
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
        let ruling = Ruling::by_rules(Decision {
            verdict: Verdict::Deny,
            because: Because::Scope(because),
        });
        match self.open(&target, "arguments", given, place) {
            Ok(Opened { entry, .. }) => denied(entry, target, ruling),
            Err(error) => error,
        }
    }

    /// The tool as it is by now.
    async fn renewed(&self, target: &Target) -> Option<Target> {
        let renewed = self.inner.renew.as_ref()?(&target.function).await?;
        (renewed.server == target.server && renewed.tool == target.tool).then_some(renewed)
    }

    /// Waits for a look that goes on, and notes what it found.
    async fn look_to_the_end(
        &self,
        entry: &Entry,
        arguments: &Arc<String>,
        findings: &mut Findings,
    ) {
        if self.inner.reviews.complete(arguments, findings).await {
            entry.carries(findings.records());
        }
    }

    /// Answers a call in its tool's place.
    fn withhold(
        &self,
        entry: Entry,
        dry_run: &DryRun,
        case: &Case<'_>,
        ruling: &Ruling,
    ) -> Result<Box<RawValue>, CallError> {
        let answer = dry_run.answer(&case.target.function);
        let decision = ruling.decision.to_string();
        self.inner
            .withheld
            .add(entry.ordinal(), case, &decision, answer.is_some());
        entry.withheld(ruling, answer.as_deref().map(RawValue::get));
        answer.ok_or_else(|| CallError::DryRun {
            server: case.target.server.clone(),
            tool: case.target.tool.clone(),
            function: case.target.function.clone(),
            decision,
        })
    }

    /// The run in a journal: 128 random bits, as 32 hexadecimal digits.
    pub fn id(&self) -> &str {
        self.inner.ledger.run()
    }

    /// The calls that a dry run did not make, in the order they were asked for.
    pub fn withheld(&self) -> Vec<Withheld> {
        self.inner.withheld.snapshot()
    }

    /// Writes the lines that have come together for the journal: to be called, if
    /// [`RunSetup::together`] is set, whenever all calls wait, and before anybody is told
    /// what came of one. True if a call can go on now.
    pub fn settle(&self) -> bool {
        self.inner.ledger.settle()
    }

    /// Every call of the run so far, in the order they were made. The journal has them
    /// when this returns.
    pub fn ledger(&self) -> Vec<LedgerLine> {
        self.settle();
        self.inner.ledger.snapshot()
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("judge", &self.inner.judge)
            .finish_non_exhaustive()
    }
}
