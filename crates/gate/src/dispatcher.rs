//! The calls of one run, from the arguments to the result.

use std::sync::Arc;
use std::time::Duration;

use callgate_catalog::{Tool, ToolDefinition};
use callgate_policy::{Because, Decision, Verdict};
use callgate_schema::Fit;
use callgate_servers::{CallFailure, Caller, FailureKind, Servers, ToolCall};
use parking_lot::Mutex;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::authority::Authority;
use crate::dry_run::{DryRun, Withheld, WithheldCalls, made_up};
use crate::error::{CallError, CallErrorKind, code};
use crate::ledger::{Ledger, LedgerLine, OpenLine, Outcome};
use crate::output_check::check_output;
use crate::pending_call::PendingCall;
use crate::ruling::Ruling;
use crate::server_answer::ServerAnswer;
use crate::setup::{CallOptions, Setup};

/// Makes the calls of one run, and has its rules, grants and ledger.
pub struct Dispatcher {
    servers: Servers,
    pub(crate) authority: Authority,
    pub(crate) ledger: Arc<Ledger>,
    dry_run: Option<Arc<DryRun>>,
    /// True if a dry run makes results up, so that a script goes on.
    makes_up: bool,
    withheld: Mutex<WithheldCalls>,
    caller: Option<Arc<dyn Caller>>,
}

/// The second question about a call that was allowed and not sent.
struct Again {
    /// The tool as its server lists it now.
    tool: Tool,
    /// The reason, unless the change of the tool is one.
    reason: Option<String>,
}

impl Dispatcher {
    /// Starts the ledger of a run.
    pub fn new(servers: Servers, setup: Setup) -> Self {
        let options = &setup.options;
        let sources = servers.list().len() + usize::from(options.consults);
        Self {
            servers,
            ledger: Ledger::new(&setup),
            dry_run: options.dry_run.clone(),
            makes_up: !options.one_call,
            withheld: Mutex::default(),
            caller: setup.people.caller.clone(),
            authority: Authority::new(setup, sources),
        }
    }

    /// Calls a tool, if the call is allowed.
    ///
    /// `arguments` is a JSON object, or null for an empty one. The result is the tool's
    /// `structuredContent`, else its one text, else `{ "content": […] }`, else null. Dropping the
    /// future cancels the call.
    /// If an answer allows the call, and it cannot be sent, its question is asked again once: the
    /// tool changed, its server is gone, or its login expired.
    /// The error: [`CallError`], of which a script can catch each kind. If the tool changed after
    /// the decision, it has [`code::TOOL_CHANGED`].
    pub async fn call(
        &self,
        tool: &Tool,
        arguments: Box<RawValue>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        let mut again: Option<Again> = None;
        // The arguments of the first answer in place of the script's.
        let mut edited: Option<Arguments> = None;
        loop {
            let tool = again.as_ref().map_or(tool, |again| &again.tool);
            let mut entry = self.ledger.open(tool, &arguments, options.line)?;
            let mut arguments = entry.parse(&arguments, "arguments")?;
            if let Some(edited) = edited.take() {
                entry.edited(&edited);
                arguments = edited;
            }
            let is_trusted = self.servers.is_trusted(&tool.definition.server);
            let dry_run = self.dry_run.as_deref();
            let mut call = PendingCall {
                tool,
                ordinal: entry.ordinal(),
                flows: self.authority.flows.find(tool, &arguments).await,
                arguments,
                line: options.line,
                is_trusted,
                is_sent: dry_run.is_none_or(|dry_run| dry_run.sends(tool, is_trusted)),
                unsent: again.as_ref().and_then(|again| again.reason.as_deref()),
            };
            let ruling = self.decide(&mut call, &mut entry).await;
            if let Some(answer) = self.answer_in_dry_run(&call, &mut entry, &ruling) {
                return answer;
            }
            if !ruling.allows() {
                return Err(entry.denied(ruling));
            }
            entry.sending()?;
            let sent = ToolCall {
                server: &tool.definition.server,
                tool: &tool.definition.name,
                definition: tool.definition.identity.hash(),
                arguments: call.arguments.text(),
                caller: self.caller.clone(),
                limit: time_left(&options),
            };
            let answer = self.servers.call(sent).await;
            let may_ask_again = again.is_none() && ruling.was_asked();
            let failure = match answer {
                Err(failure) if may_ask_again && !failure.sent => failure,
                answer => return self.finish(&call, entry, answer, &options).await,
            };
            let next = self.ask_again(&call, entry, failure, &options).await?;
            edited = ruling.details.is_edited.then_some(call.arguments);
            again = Some(next);
        }
    }

    /// Closes the line of a call that was not sent, for a second question about it. The error: its
    /// server does not list the tool now, or a reviewer withholds the failure.
    async fn ask_again(
        &self,
        call: &PendingCall<'_>,
        entry: OpenLine,
        failure: CallFailure,
        options: &CallOptions,
    ) -> Result<Again, CallError> {
        let has_changed = failure.kind == FailureKind::ToolChanged;
        let error = self.fail(call, entry, failure, options).await;
        let (server, name) = (&call.tool.definition.server, &call.tool.definition.name);
        let listed = self.servers.listed_tool(server, name);
        let definition = listed.and_then(|listed| ToolDefinition::parse(server, &listed).ok());
        match (definition, &error.kind) {
            (Some(definition), CallErrorKind::Protocol { message, .. }) => {
                let tool = Tool {
                    definition: Arc::new(definition),
                    ..call.tool.clone()
                };
                let lines: Vec<&str> = message.lines().map(str::trim).collect();
                Ok(Again {
                    tool,
                    reason: (!has_changed).then(|| lines.join(" ")),
                })
            }
            _ => Err(error),
        }
    }

    /// Decides a call, and notes the decision with the arguments that it is about.
    pub(crate) async fn decide(&self, call: &mut PendingCall<'_>, entry: &mut OpenLine) -> Ruling {
        entry.found(&call.flows);
        let ruling = self.authority.decide(call, &self.ledger).await;
        if ruling.details.is_edited {
            entry.edited(&call.arguments);
            entry.found(&call.flows);
        }
        entry.decided(&ruling);
        ruling
    }

    /// Denies a call outside the run's scope. The rules are not asked.
    pub fn refuse(
        &self,
        tool: &Tool,
        arguments: Box<RawValue>,
        line: Option<u32>,
        reason: String,
    ) -> CallError {
        let refused = || {
            let mut entry = self.ledger.open(tool, &arguments, line)?;
            entry.parse(&arguments, "arguments")?;
            let decision = Decision::new(Verdict::Deny, Because::Scope(reason));
            let ruling = Ruling::by_rules(decision);
            entry.decided(&ruling);
            Ok(entry.denied(ruling))
        };
        refused().unwrap_or_else(|error| error)
    }

    /// Counts an open call of the script until the value is dropped.
    pub fn open_call(&self) -> impl Sized {
        self.authority.approvals.open()
    }

    /// The time so far in which each open call waited for approval.
    pub fn approval_time(&self) -> Duration {
        self.authority.approvals.time()
    }

    /// The run's id.
    pub fn id(&self) -> &str {
        self.ledger.run()
    }

    /// Ends the run with a status of its report. `script_ms`: the milliseconds that count against
    /// the script-time limit, if there is a script.
    pub fn end(&self, status: &'static str, script_ms: Option<u64>) {
        self.ledger.end(status, script_ms);
    }

    /// The calls that a dry run did not send, in order.
    pub fn withheld(&self) -> Vec<Withheld> {
        self.withheld.lock().calls.clone()
    }

    /// Every call of the run so far, in order.
    pub fn lines(&self) -> Vec<LedgerLine> {
        self.ledger.lines()
    }

    /// Answers a call that a dry run does not send and that no rule denies.
    fn answer_in_dry_run(
        &self,
        call: &PendingCall<'_>,
        entry: &mut OpenLine,
        ruling: &Ruling,
    ) -> Option<Result<Box<RawValue>, CallError>> {
        let dry_run = self.dry_run.as_deref().filter(|_| !call.is_sent)?;
        if ruling.decision.verdict == Verdict::Deny {
            return None;
        }
        let decision = ruling.decision.to_string();
        let recorded = dry_run.recorded.get(&call.tool.function);
        entry.answered_in_dry_run(&decision, recorded.map(|recorded| recorded.get()));
        let made_up = match recorded {
            None if self.makes_up => made_up(call.tool),
            _ => None,
        };
        let mut withheld = self.withheld.lock();
        withheld.add(call, &decision, recorded.is_some(), made_up.is_some());
        drop(withheld);
        let answer = recorded.cloned().or(made_up);
        Some(answer.ok_or_else(|| entry.error(CallErrorKind::DryRun { decision })))
    }

    /// Turns the server's answer into the script's result, and closes the ledger's line.
    async fn finish(
        &self,
        call: &PendingCall<'_>,
        mut entry: OpenLine,
        answer: Result<Box<RawValue>, CallFailure>,
        options: &CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        let tool = call.tool;
        let result = match answer {
            Ok(result) => result,
            Err(failure) => return Err(self.fail(call, entry, failure, options).await),
        };
        match ServerAnswer::of(&result, tool.definition.output_schema.as_ref()) {
            ServerAnswer::Value {
                value,
                is_structured,
            } => {
                let read = if options.whole { &result } else { &value };
                self.release(call, &mut entry, read.get()).await?;
                let (value, fit) = check_output(tool, value).await;
                let given = if options.whole { result } else { value };
                match fit {
                    Fit::Fits => {}
                    Fit::Unknown(reason) => entry.unchecked(reason),
                    Fit::Wrong { problems } => {
                        return Err(entry.schema_mismatch(&problems, is_structured, &given));
                    }
                }
                entry.close(Outcome::Ok, Some(given.get()));
                Ok(given)
            }
            ServerAnswer::Failed {
                message,
                content,
                structured_content,
            } => {
                self.release(call, &mut entry, result.get()).await?;
                entry.close(Outcome::tool_error(&message), Some(result.get()));
                if options.whole {
                    return Ok(result);
                }
                Err(entry.error(CallErrorKind::Tool {
                    message,
                    content,
                    structured_content,
                    retryable: false,
                }))
            }
            ServerAnswer::InputRequired => {
                let message = "the tool asks for input in a way that its protocol revision does \
                               not have";
                Err(entry.fail(code::INPUT_REQUIRED, message.to_owned(), false))
            }
            ServerAnswer::Malformed(reason) => {
                let message = format!("the answer is malformed: {reason}");
                // It may quote the server.
                self.release(call, &mut entry, &message).await?;
                Err(entry.fail(code::MALFORMED_RESULT, message, false))
            }
        }
    }

    /// The error of a call that the server did not answer with a result.
    async fn fail(
        &self,
        call: &PendingCall<'_>,
        mut entry: OpenLine,
        failure: CallFailure,
        options: &CallOptions,
    ) -> CallError {
        let reads_only = call.tool.definition.hints.read_only == Some(true);
        // A script can read the error, which may quote the server.
        let read = match &failure.kind {
            FailureKind::Timeout(_) if failure.unused.is_empty() => None,
            FailureKind::Refused(error) => Some(json!([error.message, error.data])),
            _ => Some(Value::from(failure.to(self.authority.audience))),
        };
        if let Some(read) = read
            && let Err(kept) = self.release(call, &mut entry, &read.to_string()).await
        {
            return kept;
        }
        let (code, data) = match &failure.kind {
            FailureKind::Timeout(limit) => {
                // The limit as the caller set it, with the time before the call.
                let asked = options
                    .timeout
                    .filter(|_| time_left(options) == Some(*limit));
                let unused = failure.unused.into_string();
                return entry.timed_out(asked.unwrap_or(*limit), unused, reads_only);
            }
            FailureKind::Refused(error) => (i64::from(error.code.0), error.data.as_ref()),
            FailureKind::ToolChanged => (code::TOOL_CHANGED, None),
            FailureKind::TooLarge(_) => (code::RESULT_TOO_LARGE, None),
            FailureKind::Malformed => (code::MALFORMED_RESULT, None),
            FailureKind::Input => (code::INPUT_REQUIRED, None),
            FailureKind::Lost(_) => (code::CONNECTION_CLOSED, None),
        };
        let data = data.and_then(|data| to_raw_value(data).ok());
        let message = match &failure.kind {
            FailureKind::Refused(error) => error.message.to_string(),
            _ => failure.to(self.authority.audience),
        };
        let retryable = match &failure.kind {
            FailureKind::Lost(_) => reads_only || !failure.sent,
            FailureKind::ToolChanged => !failure.sent,
            // The server has answered, and would answer the same call in the same way.
            _ => false,
        };
        entry.fail_with(code, message, retryable, data, None)
    }

    /// Lets the script read a text: reviewers see it first, and later flows of it are found.
    pub(crate) async fn release(
        &self,
        call: &PendingCall<'_>,
        entry: &mut OpenLine,
        text: &str,
    ) -> Result<(), CallError> {
        let reviewers = &self.authority.reviewers;
        if let Some(reason) = reviewers.review_result(call.reviewed(), text).await {
            return Err(entry.withheld_by_reviewer(reason, text));
        }
        self.authority.flows.learn(call.tool, entry.ordinal(), text);
        Ok(())
    }
}

/// The time limit of a call without the time that passed before it.
fn time_left(options: &CallOptions) -> Option<Duration> {
    let limit = options.timeout?;
    Some(limit.saturating_sub(options.waited))
}
