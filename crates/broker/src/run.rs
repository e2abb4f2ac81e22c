//! The calls of one script run: decide, write the ledger, send, shape.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use callgate_policy::{CallFacts, Decision, Rules, Verdict};
use futures::future::BoxFuture;
use rmcp::model::JsonObject;
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::Mutex;

use crate::broker::Broker;
use crate::connection::{Failure, too_large};
use crate::error::{CallError, code};
use crate::ledger::{Entry, Ledger, LedgerLine, MAX_LINES, Outcome};
use crate::shape::{Shaped, shape};

/// Somebody who can say yes or no to a call.
pub trait Asker: Send + Sync {
    /// Asks about one call. A run asks one question at a time. The future must
    /// not block its thread: the run and its limits wait on the same one.
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer>;
}

/// The asker for hosts without one: every question is answered with
/// [`Answer::Nobody`].
#[derive(Debug, Clone, Copy, Default)]
pub struct NobodyToAsk;

impl Asker for NobodyToAsk {
    fn ask<'a>(&'a self, _question: Question<'a>) -> BoxFuture<'a, Answer> {
        Box::pin(std::future::ready(Answer::Nobody))
    }
}

/// A call somebody is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The generated function name.
    pub function: &'a str,
    /// The server's name.
    pub server: &'a str,
    /// The tool's own name.
    pub tool: &'a str,
    /// The whole arguments, as JSON text. Written by a script: control
    /// characters are escaped, but it may be long and may mislead.
    pub arguments: &'a str,
    /// Why it is asked.
    pub decision: &'a Decision,
}

/// What somebody answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// This call may go.
    Once,
    /// This call and every later one of the same function in this run may go.
    Run,
    /// This call may not go.
    Deny,
    /// There is nobody to ask, so the call may not go.
    Nobody,
}

/// What was decided about a call, by rule and, where a rule says so, by asking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ruling {
    /// What the rules said.
    pub decision: Decision,
    /// What the asker said, or had said before with [`Answer::Run`]; `None` if
    /// the rules decided alone.
    pub answer: Option<Answer>,
}

impl Ruling {
    /// Whether the call may go.
    pub fn allows(&self) -> bool {
        match self.decision.verdict {
            Verdict::Allow => true,
            Verdict::Deny => false,
            Verdict::Ask => matches!(self.answer, Some(Answer::Once | Answer::Run)),
        }
    }
}

impl fmt::Display for Ruling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.decision.verdict, self.answer) {
            (Verdict::Ask, Some(Answer::Once)) => f.write_str("allowed once when asked"),
            (Verdict::Ask, Some(Answer::Run)) => f.write_str("allowed for this run when asked"),
            (Verdict::Ask, Some(Answer::Deny)) => f.write_str("denied when asked"),
            (Verdict::Ask, Some(Answer::Nobody) | None) => {
                write!(f, "{}, and there is nobody to ask", self.decision)
            }
            (Verdict::Allow | Verdict::Deny, _) => self.decision.fmt(f),
        }
    }
}

/// The tool a call goes to, as the catalog has it. Never taken from a script.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Target {
    /// The generated function name, which rules match.
    pub function: String,
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The tool's `readOnlyHint`.
    pub read_only_hint: bool,
    /// The tool's `idempotentHint`.
    pub idempotent_hint: bool,
    /// Whether the tool has an `outputSchema`: text is then read as JSON.
    pub has_output_schema: bool,
}

/// One script run: its rules, what was granted in it, and its ledger. Clones
/// are the same run.
#[derive(Clone)]
pub struct Run {
    inner: Arc<Inner>,
}

struct Inner {
    broker: Broker,
    rules: Arc<Rules>,
    asker: Arc<dyn Asker>,
    ledger: Ledger,
    /// The functions granted for this run. Held while somebody is asked, so
    /// that questions come one at a time and an answer serves those who wait.
    granted: Mutex<HashSet<String>>,
}

impl Run {
    pub(crate) fn new(broker: Broker, rules: Arc<Rules>, asker: Arc<dyn Asker>) -> Self {
        let granted = Mutex::default();
        Self {
            inner: Arc::new(Inner {
                broker,
                rules,
                asker,
                ledger: Ledger::new(),
                granted,
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
        target: Target,
        arguments: Box<RawValue>,
    ) -> Result<Box<RawValue>, CallError> {
        let protocol = |code, message: &str| CallError::Protocol {
            server: target.server.clone(),
            tool: target.tool.clone(),
            code,
            message: message.to_owned(),
            data: None,
        };
        let opened = self.inner.ledger.open(
            &target.function,
            &target.server,
            &target.tool,
            arguments.get().len(),
        );
        let Some(mut entry) = opened else {
            let message = format!("a run may make {MAX_LINES} calls, and this one has");
            return Err(protocol(code::TOO_MANY_CALLS, &message));
        };
        let fail = |entry: Entry, code, message: &str| {
            entry.close(Outcome::protocol_error(code, message), None);
            Err(protocol(code, message))
        };
        // Parsed and printed again, so that rules, the asker and the server all
        // see the same arguments, whatever the text was like.
        let parsed = parse_arguments(&arguments).and_then(|parsed| {
            let text = serde_json::to_string(&parsed).map_err(|error| error.to_string())?;
            Ok((parsed, text))
        });
        let (arguments, text) = match parsed {
            Ok(parsed) => parsed,
            Err(reason) => {
                let message = format!("the arguments must be one JSON object: {reason}");
                return fail(entry, code::INVALID_ARGUMENTS, &message);
            }
        };
        let Some(server) = self.inner.broker.find(&target.server) else {
            let message = format!("there is no server `{}`", target.server);
            return fail(entry, code::CONNECTION_CLOSED, &message);
        };

        let ruling = self.decide(&target, server.trusted(), &text).await;
        if !ruling.allows() {
            entry.denied(&ruling.to_string());
            return Err(CallError::Denied {
                server: target.server,
                tool: target.tool,
                function: target.function,
                ruling: Box::new(ruling),
            });
        }
        drop(text);
        entry.sending(&ruling.to_string());

        let connection = match server.connection() {
            Ok(connection) => connection,
            Err(error) => return fail(entry, code::CONNECTION_CLOSED, &error.to_string()),
        };
        let limit = server.call_timeout();
        let result = match connection.call(&target.tool, arguments, limit).await {
            Ok(result) => result,
            Err(Failure::Timeout(limit)) => {
                let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                entry.close(Outcome::TimedOut { limit_ms }, None);
                let (server, tool) = (target.server, target.tool);
                return Err(CallError::Timeout {
                    server,
                    tool,
                    limit,
                });
            }
            Err(Failure::Refused(error)) => {
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
                });
            }
            Err(Failure::Lost(reason)) => return fail(entry, code::CONNECTION_CLOSED, &reason),
            Err(Failure::TooLarge(limit)) => {
                return fail(entry, code::RESULT_TOO_LARGE, &too_large(limit));
            }
            Err(Failure::Malformed(reason)) => {
                let message = format!("the answer is malformed: {reason}");
                return fail(entry, code::MALFORMED_RESULT, &message);
            }
        };
        match shape(&result, target.has_output_schema) {
            Shaped::Value(value) => {
                entry.close(Outcome::Ok, Some(value.get().len()));
                Ok(value)
            }
            Shaped::Failed {
                message,
                content,
                structured_content,
            } => {
                entry.close(Outcome::tool_error(&message), Some(result.get().len()));
                Err(CallError::Tool {
                    server: target.server,
                    tool: target.tool,
                    message,
                    content,
                    structured_content,
                    retryable: target.read_only_hint || target.idempotent_hint,
                })
            }
            Shaped::InputRequired => fail(
                entry,
                code::INPUT_REQUIRED,
                "the tool wants input before it goes on, which is not supported yet",
            ),
            Shaped::Malformed(reason) => {
                let message = format!("the answer is malformed: {reason}");
                fail(entry, code::MALFORMED_RESULT, &message)
            }
        }
    }

    /// Every call of the run so far, in the order they were made.
    pub fn ledger(&self) -> Vec<LedgerLine> {
        self.inner.ledger.snapshot()
    }

    async fn decide(&self, target: &Target, trusted: bool, arguments: &str) -> Ruling {
        let decision = self.inner.rules.decide(&CallFacts {
            function: &target.function,
            server: &target.server,
            tool: &target.tool,
            read_only: target.read_only_hint,
            trusted,
            arguments: Some(arguments),
        });
        if decision.verdict != Verdict::Ask {
            return Ruling {
                decision,
                answer: None,
            };
        }
        let mut granted = self.inner.granted.lock().await;
        if granted.contains(&target.function) {
            return Ruling {
                decision,
                answer: Some(Answer::Run),
            };
        }
        let question = Question {
            function: &target.function,
            server: &target.server,
            tool: &target.tool,
            arguments,
            decision: &decision,
        };
        let answer = self.inner.asker.ask(question).await;
        if answer == Answer::Run {
            granted.insert(target.function.clone());
        }
        Ruling {
            decision,
            answer: Some(answer),
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("rules", &self.inner.rules)
            .finish_non_exhaustive()
    }
}

fn parse_arguments(arguments: &RawValue) -> Result<JsonObject, String> {
    let parsed: Result<Option<JsonObject>, _> = serde_json::from_str(arguments.get());
    parsed
        .map(Option::unwrap_or_default)
        .map_err(|error| error.to_string())
}
