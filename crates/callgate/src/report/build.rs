//! From the end of a run, in each crate's own words, to the report.

use std::time::Duration;

use std::sync::Arc;

use callgate_broker::{LedgerLine, Outcome, Withheld};
use callgate_sandbox::{Captured, End, Ended, ScriptException, WhichLimit};
use callgate_schema::read;
use callgate_script::ScriptError;
use serde_json::value::RawValue;

use super::{
    Emitted, ErrorKind, LimitHit, Output, Position, REPORT_VERSION, Returned, RunError, RunReport,
    Status, Unavailable, denials,
};
use crate::gate::Gate;
use crate::mended::mended;
use crate::type_check::{CheckStatus, TypeCheck};
use crate::{Limits, RunRequest};

/// What is said of a script that the caller ended.
const CANCELLED: &str = "the run was cancelled";
/// What is said of one that was given up before: in a run, or where it was only looked at.
const NOT_BEGUN: &str = "cancelled; nothing was run";

/// Characters of a source line that a position shows.
const SHOWN_LINE: usize = 160;

/// The report of a text that is no acceptable script.
pub(crate) fn rejected(request: &RunRequest, error: &ScriptError) -> RunReport {
    let position = position(
        &request.source,
        error.line().unwrap_or(0),
        error.column().unwrap_or(0),
    );
    failed(
        request,
        Status::Failed,
        RunError {
            position,
            ..RunError::new(ErrorKind::Syntax, error.message())
        },
    )
}

/// The report of a script that names tools of a server that did not start.
pub(crate) fn missing_server(
    request: &RunRequest,
    name: &str,
    line: u32,
    column: u32,
) -> RunReport {
    let message = format!("{name} belongs to a server that is not available; nothing was run");
    failed(
        request,
        Status::MissingServer,
        RunError {
            position: position(&request.source, line, column),
            ..RunError::new(ErrorKind::MissingServer, message)
        },
    )
}

/// The report of a script that its type check keeps from running.
pub(crate) fn unfit(request: &RunRequest, check: TypeCheck) -> RunReport {
    let reason = check.reason.as_deref().unwrap_or_default();
    let error = match (check.status, check.advice) {
        (CheckStatus::Unchecked, Some(advice)) => RunError {
            hint: Some(advice.to_owned()),
            ..RunError::new(ErrorKind::Unchecked, format!("{reason}; nothing was run"))
        },
        (CheckStatus::Unchecked, None) => {
            let message =
                format!("the script must be type-checked and was not; nothing was run: {reason}");
            RunError::new(ErrorKind::Unchecked, message)
        }
        _ => RunError {
            position: check.errors.first().and_then(|e| e.position.clone()),
            ..RunError::new(
                ErrorKind::Types,
                format!("{}; nothing was run", check.counted()),
            )
        },
    };
    RunReport {
        check: Some(check),
        ..failed(request, Status::Failed, error)
    }
}

/// The report of a script that was given up before it began.
pub(crate) fn cancelled(request: &RunRequest) -> RunReport {
    let error = RunError::new(ErrorKind::Cancelled, NOT_BEGUN);
    failed(request, Status::Cancelled, error)
}

/// The report of a script that ran.
pub(crate) fn ended(
    request: &RunRequest,
    limits: &Limits,
    ended: Ended,
    calls: Vec<LedgerLine>,
    withheld: Option<Vec<Withheld>>,
    gate: &Gate,
) -> RunReport {
    let mut report = empty(request);
    report.whole = whole(&ended.output, &ended.end);
    report.output = output(ended.output);
    report.emitted = emitted(&ended.emitted);
    report.sandbox = ended.jail;
    report.script_ms = millis(ended.script_time);
    report.denials = denials::gather(&calls);
    report.calls = calls;
    report.dry_run = withheld;
    let (status, error) = match ended.end {
        End::Returned(value) => {
            report.value = returned(value, limits);
            return report;
        }
        End::Threw(exception) => threw(request, exception, &report.calls, gate),
        End::Limit {
            which,
            limit,
            observed,
        } => (Status::Limit, limit_error(which, limit, observed)),
        End::NeverSettled => {
            let message = "the script waits for a promise that nothing can settle: no call and no \
                           timer is left";
            (
                Status::Failed,
                RunError::new(ErrorKind::NeverSettled, message),
            )
        }
        End::Cancelled => (
            Status::Cancelled,
            RunError::new(ErrorKind::Cancelled, CANCELLED),
        ),
        end => (Status::Failed, without_result(end)),
    };
    report.status = status;
    report.error = Some(error);
    report
}

/// The report of a script whose worker did not come to read it.
pub(crate) fn unread(request: &RunRequest, end: End) -> RunReport {
    match end {
        End::Limit {
            which,
            limit,
            observed,
        } => failed(request, Status::Limit, limit_error(which, limit, observed)),
        end => failed(request, Status::Failed, without_result(end)),
    }
}

/// The error of an end that is the worker's.
fn without_result(end: End) -> RunError {
    let message = match end {
        End::SystemCall { name } => return forbidden_system_call(name.as_deref()),
        End::Crashed { reason } => {
            format!("the worker process ended without a result: {reason}")
        }
        End::NotStarted { reason } => format!("no worker process could be started: {reason}"),
        // An end that is added later is at least no success.
        other => format!("{other:?}"),
    };
    RunError::new(ErrorKind::Crashed, message)
}

fn forbidden_system_call(name: Option<&str>) -> RunError {
    let name = name.unwrap_or("of unknown name");
    tracing::error!(
        name,
        "ALERT: a worker tried a system call that it may not make"
    );
    let message = format!("the worker tried a system call that it may not make: {name}");
    RunError::new(ErrorKind::SystemCall, message)
}

impl RunError {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
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
        status: Status::Completed,
        error: None,
        output: Output::default(),
        value: None,
        emitted: Vec::new(),
        whole: None,
        run: None,
        calls: Vec::new(),
        lookups: 0,
        denials: Vec::new(),
        dry_run: None,
        check: None,
        unavailable: Vec::<Unavailable>::new(),
        sandbox: None,
        script_ms: 0,
        total_ms: 0,
    }
}

fn failed(request: &RunRequest, status: Status, error: RunError) -> RunReport {
    RunReport {
        status,
        error: Some(error),
        ..empty(request)
    }
}

fn threw(
    request: &RunRequest,
    exception: ScriptException,
    calls: &[LedgerLine],
    gate: &Gate,
) -> (Status, RunError) {
    // The class is the worker's word; what became of a call is the ledger's.
    let any = |outcome| calls.iter().any(|line| line.outcome == outcome);
    let kept = |line: &LedgerLine| matches!(line.outcome, Outcome::Kept { .. });
    let (status, kind) = match exception.name.as_str() {
        "McpDeniedError" if any(Outcome::Denied) || calls.iter().any(kept) => {
            (Status::Denied, ErrorKind::Denied)
        }
        "McpDryRunError" if any(Outcome::Withheld) => (Status::DryRun, ErrorKind::DryRun),
        _ => (Status::Failed, ErrorKind::Exception),
    };
    if exception.name.is_empty() && exception.stack.is_empty() {
        let message = format!(
            "the script threw a value that is no Error: {}",
            exception.message
        );
        let error = RunError {
            hint: Some("throw an Error, which says where it comes from".to_owned()),
            ..RunError::new(kind, message)
        };
        return (status, error);
    }
    let undefined = (exception.name == "ReferenceError")
        .then(|| exception.message.strip_suffix(" is not defined"))
        .flatten();
    let error = RunError {
        hint: undefined.and_then(|name| match callgate_script::instead_of(name) {
            Some(instead) => Some(instead.to_owned()),
            None => gate.why_unknown(name, &request.scope),
        }),
        position: position(&request.source, exception.line, exception.column),
        name: Some(exception.name).filter(|name| !name.is_empty()),
        stack: frames(&exception.stack),
        ..RunError::new(kind, exception.message)
    };
    (status, error)
}

/// The frames of a stack, and what it says of causes, without its first line: class
/// and message stand elsewhere.
fn frames(stack: &str) -> String {
    let is_frame = |line: &&str| line.starts_with("at ") || line.starts_with("Caused by: ");
    let lines = stack.lines().skip(1).map(str::trim_start);
    let frames: Vec<&str> = lines.filter(is_frame).collect();
    frames.join("\n")
}

fn limit_error(which: WhichLimit, limit: u64, observed: u64) -> RunError {
    let (name, unit, message, hint) = match which {
        WhichLimit::ScriptTime => (
            "timeout",
            "ms",
            format!("the script ran for {observed} ms, over its limit of {limit} ms"),
            "waiting for tools is not counted; raise the limit with --timeout or limits.timeout, or \
             where the call set it, timeoutMs",
        ),
        WhichLimit::RunTime => (
            "runTimeout",
            "ms",
            format!("the run took {observed} ms, over its limit of {limit} ms"),
            "waiting for tools and answers is counted; raise the limit with limits.runTimeout",
        ),
        WhichLimit::Memory => (
            "memory",
            "bytes",
            format!("the script reached its memory limit of {limit} bytes"),
            "keep less at once, or raise the limit with --memory or limits.memory",
        ),
        WhichLimit::Calls => (
            "calls",
            "calls",
            format!("the script made {observed} calls, over its limit of {limit}"),
            "ask for more in each call, or split the job into several scripts",
        ),
        WhichLimit::Entries => (
            "entries",
            "entries",
            format!(
                "the script made an array or a table of {observed} entries, over the {limit} that one can hold"
            ),
            "work on the value in pieces",
        ),
        other => (
            "other",
            "",
            format!("the limit on {other} was passed: {observed}"),
            "use less",
        ),
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

/// The kept output. Where something was cut, its first line says so, and a line
/// between head and tail marks the place.
fn output(captured: Captured) -> Output {
    let Captured {
        head,
        tail,
        cut_bytes,
        ..
    } = captured;
    // The count of what was cut is the worker's word.
    let bytes = cut_bytes.saturating_add((head.len() + tail.len()) as u64);
    let text = match cut_bytes {
        0 => head + &tail,
        _ => cut(&head, &tail, cut_bytes, bytes, "printed"),
    };
    Output {
        text,
        bytes,
        cut_bytes,
    }
}

/// All that was printed and returned, where some of it is cut and all is there.
fn whole(printed: &callgate_sandbox::Captured, end: &End) -> Option<Arc<str>> {
    use callgate_sandbox::Returned as Worker;
    let value = match end {
        End::Returned(Worker::Cut { whole, .. }) => whole.as_deref(),
        _ => None,
    };
    if printed.whole.is_none() && value.is_none() {
        return None;
    }
    let mut whole = match &printed.whole {
        Some(whole) => whole.clone(),
        None => output(printed.clone()).text,
    };
    let value = match (value, end) {
        // A string as it is: a value that JSON cannot express is shown, and that
        // is no JSON string.
        (Some(value), _) => read(value).unwrap_or_else(|_| value.to_owned()),
        (None, End::Returned(Worker::Json(json))) => plain(json),
        (None, End::Returned(Worker::Shown(text))) => text.clone(),
        (
            None,
            End::Returned(Worker::Cut {
                head,
                tail,
                total_bytes,
                ..
            }),
        ) => {
            let hidden = total_bytes.saturating_sub((head.len() + tail.len()) as u64);
            cut(head, tail, hidden, *total_bytes, "returned")
        }
        _ => String::new(),
    };
    if !whole.is_empty() && !whole.ends_with('\n') {
        whole.push('\n');
    }
    whole.push_str(&value);
    Some(whole.into())
}

/// The blocks that are what they should be.
fn emitted(blocks: &[Box<RawValue>]) -> Vec<Emitted> {
    let read = blocks.iter().map(|block| Emitted::read(block));
    read.filter_map(|block| {
        block
            .inspect_err(|unfit| tracing::warn!(%unfit, "a worker emitted what no worker emits"))
            .ok()
    })
    .collect()
}

fn cut(head: &str, tail: &str, cut: u64, bytes: u64, what: &str) -> String {
    let gap = if head.ends_with('\n') { "" } else { "\n" };
    format!(
        "[{cut} of {bytes} bytes {what} are cut: the beginning and the end follow]\n{head}{gap}[…]\n{tail}"
    )
}

fn returned(value: callgate_sandbox::Returned, limits: &Limits) -> Option<Returned> {
    use callgate_sandbox::Returned as Worker;
    Some(match value {
        Worker::Undefined => return None,
        Worker::Json(json) => {
            let json = mended(json);
            let bytes = json.get().len() as u64;
            Returned {
                text: plain(&json),
                json: Some(json),
                bytes,
            }
        }
        Worker::Shown(text) => {
            let bytes = text.len() as u64;
            Returned {
                json: None,
                text: shortened(text, limits.output_bytes),
                bytes,
            }
        }
        Worker::Cut {
            head,
            tail,
            total_bytes,
            whole: _,
        } => {
            let hidden = total_bytes.saturating_sub((head.len() + tail.len()) as u64);
            let text = cut(&head, &tail, hidden, total_bytes, "returned");
            Returned {
                json: None,
                text,
                bytes: total_bytes,
            }
        }
    })
}

/// A string as it is, any other value as JSON.
fn plain(json: &RawValue) -> String {
    read(json.get()).unwrap_or_else(|_| json.get().to_owned())
}

fn shortened(mut text: String, limit: u64) -> String {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
        text.push('…');
    }
    text
}

/// The place in the author's text; `None` where it is not known.
pub(crate) fn position(source: &str, line: u32, column: u32) -> Option<Position> {
    let text = callgate_script::printable(callgate_script::line(source, line)?);
    // A caret under a shortened line would point to nothing.
    let shown = match text.char_indices().nth(SHOWN_LINE) {
        None => text,
        Some((end, _)) if (column as usize) < SHOWN_LINE => {
            format!("{}…", text.get(..end).unwrap_or_default())
        }
        Some(_) => String::new(),
    };
    Some(Position {
        line,
        column: column.max(1),
        source_line: shown,
    })
}

/// Whole milliseconds.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
