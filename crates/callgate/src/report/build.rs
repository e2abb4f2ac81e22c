//! Reports from the ends of runs.

use std::time::Duration;

use callgate_gate::{LedgerLine, Outcome, Withheld};
use callgate_sandbox::{End, Ended, LeftTimer, ScriptException, WhichLimit};
use callgate_script::ScriptError;
use callgate_servers::Audience;
use callgate_text::{one_line, shown_duration, shown_size};
use serde_json::value::RawValue;

use super::emitted::Emitted;
use super::kept::{output, returned, whole};
use super::{
    Denial, ErrorKind, LimitHit, REPORT_VERSION, RunError, RunReport, Status, Unavailable, Warning,
    grouped,
};
use crate::position::Position;
use crate::run_request::RunRequest;
use crate::type_check::{CheckStatus, TypeCheck};

/// The limit of the reason why a server is not available, in characters.
const SHOWN_REASON: usize = 400;

impl RunRequest {
    /// The report of this request if it is cancelled before it runs.
    pub fn cancelled(&self) -> RunReport {
        let error = RunError::new(ErrorKind::Cancelled, "cancelled; nothing was run");
        failed(self, error)
    }
}

/// The report of a text that is not an acceptable script.
pub(crate) fn rejected(request: &RunRequest, error: &ScriptError) -> RunReport {
    let (line, column) = (error.line().unwrap_or(0), error.column().unwrap_or(0));
    let error = RunError {
        position: Position::find(&request.source, line, column),
        ..RunError::new(ErrorKind::Syntax, error.message())
    };
    failed(request, error)
}

/// The report of a script whose arguments or standard input are over this limit.
pub(crate) fn input_refused(request: &RunRequest, over: LimitHit) -> RunReport {
    let message = format!(
        "the script gets {} {} in mcp.{}, over the limit of {}; nothing was run",
        over.observed, over.unit, over.which, over.limit
    );
    let error = RunError {
        hint: (over.which == "args").then(|| "pass them on standard input, mcp.stdin".to_owned()),
        limit: Some(over),
        ..RunError::new(ErrorKind::Limit, message)
    };
    failed(request, error)
}

/// The report of a run that the configuration does not permit.
pub(crate) fn refused(request: &RunRequest, reason: &str) -> RunReport {
    let error = RunError::new(
        ErrorKind::Configuration,
        format!("{reason}; nothing was run"),
    );
    failed(request, error)
}

/// The report of a script that names a tool of a server that did not start.
pub(crate) fn missing_server(
    request: &RunRequest,
    name: &str,
    line: u32,
    column: u32,
    server: &Unavailable,
) -> RunReport {
    let message = format!(
        "{name} belongs to server {:?}, which is not available; nothing was run",
        server.server
    );
    // The operator's text has the whole reason as a warning.
    let is_caller = request.audience == Audience::Caller;
    let error = RunError {
        position: Position::find(&request.source, line, column),
        hint: is_caller.then(|| one_line(&server.reason, SHOWN_REASON)),
        ..RunError::new(ErrorKind::MissingServer, message)
    };
    failed(request, error)
}

/// The report of a script that the type check stops.
pub(crate) fn stopped_by_check(request: &RunRequest, check: TypeCheck) -> RunReport {
    let reason = check.reason.as_deref().unwrap_or_default();
    let error = if check.status != CheckStatus::Unchecked {
        let message = format!("{}; nothing was run", check.counted());
        let first = check.errors.first();
        RunError {
            position: first.and_then(|error| error.position.clone()),
            ..RunError::new(ErrorKind::Types, message)
        }
    } else if check.advice.is_some() {
        RunError {
            hint: check.advice.map(str::to_owned),
            ..RunError::new(ErrorKind::Unchecked, format!("{reason}; nothing was run"))
        }
    } else {
        let message =
            format!("the script must be type-checked and was not; nothing was run: {reason}");
        RunError::new(ErrorKind::Unchecked, message)
    };
    RunReport {
        check: Some(check),
        ..failed(request, error)
    }
}

/// The report of a script whose worker ended before reading it.
pub(crate) fn unread(request: &RunRequest, end: End) -> RunReport {
    failed(request, failure(end, request.audience))
}

/// The report of a script that ran. `hint` gives advice about an undefined name.
pub(crate) fn ended(
    request: &RunRequest,
    mut ended: Ended,
    calls: Vec<LedgerLine>,
    withheld: Option<Vec<Withheld>>,
    hint: impl FnOnce(&str) -> Option<String>,
) -> RunReport {
    let printed = ended.output.whole.take();
    let mut report = RunReport {
        output: output(ended.output, request.audience),
        emitted: emitted(&ended.emitted),
        warnings: left_timers(&ended.timers, &ended.end),
        sandbox: ended.jail,
        script_ms: millis(ended.script_time),
        denials: denials(&calls),
        calls,
        dry_run: withheld,
        ..empty(request)
    };
    let mut whole_value = None;
    match ended.end {
        End::Returned(value) => {
            (report.value, whole_value) = returned(value, request.audience);
        }
        End::Threw(exception) => {
            let error = threw(request, exception, &report.calls, hint);
            report.fail(error);
        }
        end => report.fail(failure(end, request.audience)),
    }
    report.whole = whole(&report, printed, whole_value);
    report
}

/// The error of a run without a value or an exception.
fn failure(end: End, audience: Audience) -> RunError {
    let (kind, message) = match end {
        End::Limit {
            which,
            limit,
            observed,
        } => return limit_error(which, limit, observed, audience),
        End::Cancelled => (ErrorKind::Cancelled, "the run was cancelled".to_owned()),
        End::NeverSettled => (
            ErrorKind::NeverSettled,
            "the script waits for a promise that nothing can settle: no call and no timer is left"
                .to_owned(),
        ),
        End::SystemCall { name } => {
            let name = name.as_deref().unwrap_or("of unknown name");
            tracing::error!(
                name,
                "ALERT: a worker tried a system call that it may not make"
            );
            let message = format!("the worker tried a system call that it may not make: {name}");
            (ErrorKind::SystemCall, message)
        }
        End::Crashed { reason } => {
            let message = format!("the worker process ended without a result: {reason}");
            (ErrorKind::Crashed, message)
        }
        End::NotStarted { reason } => {
            let message = format!("no worker process could be started: {reason}");
            (ErrorKind::Crashed, message)
        }
        // These ends need a script; without one they are crashes.
        other => (ErrorKind::Crashed, format!("{other:?}")),
    };
    RunError::new(kind, message)
}

impl RunError {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            name: None,
            message: message.into(),
            position: None,
            stack: String::new(),
            limit: None,
            hint: None,
        }
    }
}

fn empty(request: &RunRequest) -> RunReport {
    RunReport {
        version: REPORT_VERSION,
        script: request.name.clone(),
        audience: request.audience,
        ..RunReport::default()
    }
}

fn failed(request: &RunRequest, error: RunError) -> RunReport {
    let mut report = empty(request);
    report.fail(error);
    report
}

impl RunReport {
    /// Sets the error, and the status that follows from it.
    pub(super) fn fail(&mut self, error: RunError) {
        self.status = match error.kind {
            ErrorKind::Denied => Status::Denied,
            ErrorKind::DryRun => Status::DryRun,
            ErrorKind::Limit => Status::Limit,
            ErrorKind::MissingServer => Status::MissingServer,
            ErrorKind::Cancelled => Status::Cancelled,
            _ => Status::Failed,
        };
        self.error = Some(error);
    }
}

fn threw(
    request: &RunRequest,
    exception: ScriptException,
    calls: &[LedgerLine],
    hint: impl FnOnce(&str) -> Option<String>,
) -> RunError {
    // The class is the worker's claim; the ledger knows the outcomes of calls.
    let any = |is: fn(&Outcome) -> bool| calls.iter().any(|line| is(&line.outcome));
    let is_denied = |it: &Outcome| matches!(it, Outcome::Denied | Outcome::Kept { .. });
    let kind = match exception.name.as_str() {
        "McpDeniedError" if any(is_denied) => ErrorKind::Denied,
        "McpDryRunError" if any(|it| *it == Outcome::Withheld) => ErrorKind::DryRun,
        _ => ErrorKind::Exception,
    };
    if exception.name.is_empty() && exception.stack.is_empty() {
        let thrown = exception.message;
        let message = format!("the script threw a value that is not an Error: {thrown}");
        return RunError {
            hint: Some("throw an Error, which says where it comes from".to_owned()),
            ..RunError::new(kind, message)
        };
    }
    let undefined = (exception.name == "ReferenceError")
        .then(|| exception.message.strip_suffix(" is not defined"))
        .flatten();
    RunError {
        hint: undefined.and_then(|name| match callgate_script::replacement_for(name) {
            Some(instead) => Some(instead.to_owned()),
            None => hint(name),
        }),
        position: Position::find(&request.source, exception.line, exception.column),
        name: Some(exception.name).filter(|name| !name.is_empty()),
        stack: frames(&exception.stack),
        ..RunError::new(kind, exception.message)
    }
}

/// The frames of a stack and its causes, without the first line, which has class and message.
fn frames(stack: &str) -> String {
    let is_frame = |line: &&str| line.starts_with("at ") || line.starts_with("Caused by: ");
    let lines = stack.lines().skip(1).map(str::trim_start);
    let frames: Vec<&str> = lines.filter(is_frame).collect();
    frames.join("\n")
}

fn limit_error(which: WhichLimit, limit: u64, observed: u64, audience: Audience) -> RunError {
    let [time, max_time] = [observed, limit].map(|ms| shown_duration(Duration::from_millis(ms)));
    let max_size = shown_size(limit);
    // Each with the hints for the operator and for a caller.
    let (name, unit, message, [for_operator, for_caller]) = match which {
        WhichLimit::ScriptTime => (
            "timeout",
            "ms",
            format!("the script ran for {time}, over its limit of {max_time}"),
            [
                "waiting is not counted; raise the limit with --timeout or limits.timeout",
                "waiting is not counted; compute less per script, or split it into several",
            ],
        ),
        WhichLimit::WaitTime => (
            "waitTimeout",
            "ms",
            format!("the script waited for timers for {time}, over its limit of {max_time}"),
            [
                "a call ends such a wait; raise the limit with limits.waitTimeout",
                "a call ends such a wait; return, and go on in a later script",
            ],
        ),
        WhichLimit::RunTime => (
            "runTimeout",
            "ms",
            format!("the run took {time}, over its limit of {max_time}"),
            [
                "waiting for tools is counted, for approval it is not; raise the limit with \
                 limits.runTimeout",
                "waiting for tools is counted, for approval it is not; do less per script, or split \
                 it into several",
            ],
        ),
        WhichLimit::Memory => (
            "memory",
            "bytes",
            format!("the script reached its memory limit of {max_size}"),
            [
                "keep less at once, or raise the limit with --memory or limits.memory",
                "keep less at once: take data in parts, and drop what is not needed",
            ],
        ),
        WhichLimit::Calls => (
            "calls",
            "calls",
            format!("the script made {observed} calls, over its limit of {limit}"),
            ["ask for more in each call, or split the job into several scripts"; 2],
        ),
        WhichLimit::Entries => (
            "entries",
            "entries",
            format!(
                "the script made an array or a table of {observed} entries, over the {limit} that \
                 one can hold"
            ),
            ["work on the value in pieces"; 2],
        ),
    };
    let is_operator = audience == Audience::Operator;
    let hint = if is_operator {
        for_operator
    } else {
        for_caller
    };
    RunError {
        limit: Some(LimitHit {
            which: name.to_owned(),
            limit,
            observed,
            unit: unit.to_owned(),
        }),
        hint: Some(hint.to_owned()),
        ..RunError::new(ErrorKind::Limit, message)
    }
}

/// A warning for each timer that never fired.
fn left_timers(timers: &[LeftTimer], end: &End) -> Vec<Warning> {
    let warnings = timers.iter().map(|timer| {
        let line = Some(timer.line).filter(|line| *line > 0);
        let name = if timer.repeats {
            "setInterval"
        } else {
            "setTimeout"
        };
        let place = line.map_or(String::new(), |line| format!(" of line {line}"));
        let why = match end {
            End::Returned(_) if timer.repeats => {
                "was stopped when the script had returned: an interval does not keep a run going; \
                 await a promise that it resolves"
            }
            End::Returned(_) => "was dropped: it would fire after the run's time limit",
            _ => "had not fired when the run ended",
        };
        Warning {
            line,
            message: format!("{name}{place} {why}"),
        }
    });
    warnings.collect()
}

fn emitted(blocks: &[Box<RawValue>]) -> Vec<Emitted> {
    let read = blocks.iter().map(|block| Emitted::read(block));
    let warn = |reason: &String| tracing::warn!(reason, "a worker emitted an invalid block");
    read.filter_map(|block| block.inspect_err(warn).ok())
        .collect()
}

/// The denials among calls, grouped, in the order of the first of each group.
fn denials(calls: &[LedgerLine]) -> Vec<Denial> {
    let denied = calls.iter().filter(|call| call.outcome == Outcome::Denied);
    let groups = grouped(denied, |call| {
        (call.function.as_str(), call.line, call.decision.as_str())
    });
    let denials = groups.iter().filter_map(|group| {
        let first = group.first()?;
        Some(Denial {
            function: first.function.clone(),
            line: first.line,
            because: first.decision.clone(),
            advice: first.advice.clone(),
            count: group.len(),
        })
    });
    denials.collect()
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
