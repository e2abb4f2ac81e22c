//! Reports from the ends of runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use callgate_gate::{LedgerLine, Outcome, Withheld};
use callgate_sandbox::{Captured, End, Ended, LeftTimer, ScriptException, WhichLimit};
use callgate_schema::{read, without_lone_surrogates};
use callgate_script::ScriptError;
use callgate_servers::Audience;
use callgate_text::{one_line, shown_duration, shown_size};
use serde_json::value::RawValue;

use super::emitted::Emitted;
use super::{
    Denial, ErrorKind, LimitHit, Output, REPORT_VERSION, Returned, RunError, RunReport, Status,
    Unavailable, Warning,
};
use crate::position::Position;
use crate::run_request::RunRequest;
use crate::type_check::{CheckStatus, TypeCheck};

/// The limit of the reason why a server is not available, in characters.
const SHOWN_REASON: usize = 400;
/// A model gets less of a text that is this many times as large as its limit.
const FAR_OVER: u64 = 10;
/// Bytes of the start and of the end of such a text.
const SHORT_PART: usize = 2 << 10;

impl RunRequest {
    /// The report of this request if it is cancelled before it runs.
    pub fn cancelled(&self) -> RunReport {
        let error = RunError::new(ErrorKind::Cancelled, "cancelled; nothing was run");
        failed(self, Status::Cancelled, error)
    }
}

/// The report of a text that is not an acceptable script.
pub(crate) fn rejected(request: &RunRequest, error: &ScriptError) -> RunReport {
    let (line, column) = (error.line().unwrap_or(0), error.column().unwrap_or(0));
    let error = RunError {
        position: Position::find(&request.source, line, column),
        ..RunError::new(ErrorKind::Syntax, error.message())
    };
    failed(request, Status::Failed, error)
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
    failed(request, Status::Limit, error)
}

/// The report of a run that the configuration does not permit.
pub(crate) fn refused(request: &RunRequest, reason: &str) -> RunReport {
    let error = RunError::new(
        ErrorKind::Configuration,
        format!("{reason}; nothing was run"),
    );
    failed(request, Status::Failed, error)
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
    failed(request, Status::MissingServer, error)
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
        ..failed(request, Status::Failed, error)
    }
}

/// The report of a script whose worker ended before reading it.
pub(crate) fn unread(request: &RunRequest, end: End) -> RunReport {
    let (status, error) = failure(end, request.audience);
    failed(request, status, error)
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
    let failure = match ended.end {
        End::Returned(value) => {
            (report.value, whole_value) = returned(value, request.audience);
            None
        }
        End::Threw(exception) => Some(threw(request, exception, &report.calls, hint)),
        end => Some(failure(end, request.audience)),
    };
    if let Some((status, error)) = failure {
        report.status = status;
        report.error = Some(error);
    }
    report.whole = whole(&report, printed, whole_value);
    report
}

/// The status and error of a run without a value or an exception.
fn failure(end: End, audience: Audience) -> (Status, RunError) {
    let (kind, message) = match end {
        End::Limit {
            which,
            limit,
            observed,
        } => return (Status::Limit, limit_error(which, limit, observed, audience)),
        End::Cancelled => {
            let error = RunError::new(ErrorKind::Cancelled, "the run was cancelled");
            return (Status::Cancelled, error);
        }
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
    (Status::Failed, RunError::new(kind, message))
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
        audience: request.audience,
        ..RunReport::default()
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
    hint: impl FnOnce(&str) -> Option<String>,
) -> (Status, RunError) {
    // The class is the worker's claim; the ledger knows the outcomes of calls.
    let any = |is: fn(&Outcome) -> bool| calls.iter().any(|line| is(&line.outcome));
    let is_denied = |it: &Outcome| matches!(it, Outcome::Denied | Outcome::Kept { .. });
    let (status, kind) = match exception.name.as_str() {
        "McpDeniedError" if any(is_denied) => (Status::Denied, ErrorKind::Denied),
        "McpDryRunError" if any(|it| *it == Outcome::Withheld) => {
            (Status::DryRun, ErrorKind::DryRun)
        }
        _ => (Status::Failed, ErrorKind::Exception),
    };
    if exception.name.is_empty() && exception.stack.is_empty() {
        let thrown = exception.message;
        let message = format!("the script threw a value that is not an Error: {thrown}");
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
        hint: undefined.and_then(|name| match callgate_script::replacement_for(name) {
            Some(instead) => Some(instead.to_owned()),
            None => hint(name),
        }),
        position: Position::find(&request.source, exception.line, exception.column),
        name: Some(exception.name).filter(|name| !name.is_empty()),
        stack: frames(&exception.stack),
        ..RunError::new(kind, exception.message)
    };
    (status, error)
}

/// The frames of a stack and its causes, without the first line, which has class and message.
fn frames(stack: &str) -> String {
    let is_frame = |line: &&str| line.starts_with("at ") || line.starts_with("Caused by: ");
    let lines = stack.lines().skip(1).map(str::trim_start);
    let frames: Vec<&str> = lines.filter(is_frame).collect();
    frames.join("\n")
}

fn limit_error(which: WhichLimit, limit: u64, observed: u64, audience: Audience) -> RunError {
    let is_operator = audience == Audience::Operator;
    let [time, max_time] = [observed, limit].map(|ms| shown_duration(Duration::from_millis(ms)));
    let max_size = shown_size(limit);
    let (name, unit, message, hint) = match which {
        WhichLimit::ScriptTime => (
            "timeout",
            "ms",
            format!("the script ran for {time}, over its limit of {max_time}"),
            if is_operator {
                "waiting is not counted; raise the limit with --timeout or limits.timeout"
            } else {
                "waiting is not counted; compute less per script, or split it into several"
            },
        ),
        WhichLimit::WaitTime => (
            "waitTimeout",
            "ms",
            format!("the script waited for timers for {time}, over its limit of {max_time}"),
            if is_operator {
                "a call ends such a wait; raise the limit with limits.waitTimeout"
            } else {
                "a call ends such a wait; return, and go on in a later script"
            },
        ),
        WhichLimit::RunTime => (
            "runTimeout",
            "ms",
            format!("the run took {time}, over its limit of {max_time}"),
            if is_operator {
                "waiting for tools is counted, for approval it is not; raise the limit with \
                 limits.runTimeout"
            } else {
                "waiting for tools is counted, for approval it is not; do less per script, or split \
                 it into several"
            },
        ),
        WhichLimit::Memory => (
            "memory",
            "bytes",
            format!("the script reached its memory limit of {max_size}"),
            if is_operator {
                "keep less at once, or raise the limit with --memory or limits.memory"
            } else {
                "keep less at once: take data in parts, and drop what is not needed"
            },
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
                "the script made an array or a table of {observed} entries, over the {limit} that \
                 one can hold"
            ),
            "work on the value in pieces",
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

fn output(captured: Captured, audience: Audience) -> Output {
    let Captured {
        mut head,
        mut tail,
        tail_is_error,
        cut_bytes,
        ..
    } = captured;
    // The worker's count may be any number.
    let bytes = cut_bytes.saturating_add((head.len() + tail.len()) as u64);
    shorten(&mut head, &mut tail, bytes, audience);
    let cut_bytes = bytes.saturating_sub((head.len() + tail.len()) as u64);
    Output {
        text: if cut_bytes == 0 {
            head + &tail
        } else {
            cut_text(&head, &tail, bytes, "printed")
        },
        bytes,
        cut_bytes,
        tail_bytes: tail.len(),
        tail_is_error,
    }
}

impl Output {
    /// The output after the first `begun` bytes, which an observer got as
    /// [`Event::Printed`](crate::Event::Printed): the number of bytes that are cut, and the end.
    pub fn after(&self, begun: u64) -> (u64, &str) {
        let rest = self.bytes.saturating_sub(begun);
        let wanted = usize::try_from(rest).unwrap_or(usize::MAX);
        let from = self.text.len() - wanted.min(self.tail_bytes);
        let end = self.text.get(self.text.ceil_char_boundary(from)..);
        (
            rest.saturating_sub(self.tail_bytes as u64),
            end.unwrap_or_default(),
        )
    }

    /// True if all of the end that [`Output::after`] gives was printed to standard error, as far as
    /// that is known.
    pub fn end_is_error(&self) -> bool {
        self.tail_is_error
    }

    /// Replaces the kept start of the output by the start that an observer got.
    pub fn begin_with(&mut self, begun: String) {
        let (cut, end) = self.after(begun.len() as u64);
        let bytes = self.bytes.max(begun.len() as u64);
        self.text = if cut == 0 {
            begun + end
        } else {
            cut_text(&begun, end, bytes, "printed")
        };
        (self.bytes, self.cut_bytes) = (bytes, cut);
    }
}

impl RunReport {
    /// Turns a returned value that is cut into an error, for readers that need the whole value.
    pub fn require_value(&mut self) {
        let Some(value) = self.value.as_ref().filter(|value| value.cut_bytes > 0) else {
            return;
        };
        let (observed, limit) = (value.bytes, value.bytes - value.cut_bytes);
        self.status = Status::Limit;
        self.error = Some(RunError {
            limit: Some(LimitHit {
                which: "output".to_owned(),
                limit,
                observed,
                unit: "bytes".to_owned(),
            }),
            hint: Some("return less, or raise the limit with --output".to_owned()),
            ..RunError::new(
                ErrorKind::Limit,
                format!("the returned value is {observed} bytes, and {limit} bytes of it are kept"),
            )
        });
    }
}

/// Shortens the start and the end of a text for a model if the whole, of this many bytes, is far
/// over the limit: then more of it does not help.
fn shorten(head: &mut String, tail: &mut String, bytes: u64, audience: Audience) {
    let kept = (head.len() + tail.len()) as u64;
    if audience == Audience::Operator || bytes <= kept.saturating_mul(FAR_OVER) {
        return;
    }
    head.truncate(head.floor_char_boundary(SHORT_PART));
    let from = tail.len().saturating_sub(SHORT_PART);
    *tail = tail.split_off(tail.ceil_char_boundary(from));
}

/// Start and end of a text, after a line with the number of missing bytes.
fn cut_text(head: &str, tail: &str, bytes: u64, what: &str) -> String {
    let cut = bytes.saturating_sub((head.len() + tail.len()) as u64);
    let gap = if head.ends_with('\n') { "" } else { "\n" };
    format!(
        "[{cut} of {bytes} bytes {what} are cut: the beginning and the end follow]\n\
         {head}{gap}[…]\n{tail}"
    )
}

/// The returned value, and its whole text if it was cut.
fn returned(
    value: callgate_sandbox::Returned,
    audience: Audience,
) -> (Option<Returned>, Option<String>) {
    use callgate_sandbox::Returned as Worker;
    let (json, text, bytes, cut_bytes, whole) = match value {
        Worker::Undefined => return (None, None),
        Worker::Json(json) => {
            let json = without_lone_surrogates(json);
            let (text, bytes) = (plain(json.get()), json.get().len() as u64);
            (Some(json), text, bytes, 0, None)
        }
        Worker::Shown(text) => {
            let bytes = text.len() as u64;
            (None, text, bytes, 0, None)
        }
        Worker::Cut {
            mut head,
            mut tail,
            total_bytes,
            whole,
        } => {
            shorten(&mut head, &mut tail, total_bytes, audience);
            let kept = (head.len() + tail.len()) as u64;
            if head.starts_with('"') {
                (head, tail) = (string_part(&head, ""), string_part("", &tail));
            }
            let text = cut_text(&head, &tail, total_bytes, "returned");
            let whole = whole.map(|whole| plain(&whole));
            (
                None,
                text,
                total_bytes,
                total_bytes.saturating_sub(kept),
                whole,
            )
        }
    };
    let returned = Returned {
        json,
        text,
        bytes,
        cut_bytes,
    };
    (Some(returned), whole)
}

/// A JSON string as its text, any other value as JSON.
fn plain(json: &str) -> String {
    read(json).unwrap_or_else(|_| json.to_owned())
}

/// The text of the start or the end of a JSON string. An escape that was cut is omitted.
fn string_part(head: &str, tail: &str) -> String {
    const LONGEST_ESCAPE: usize = 12;
    let part = |left_out: usize| {
        let head = head.get(..head.len().saturating_sub(left_out))?;
        let tail = tail.get(left_out.min(tail.len())..)?;
        let quote = |part: &str| if part.is_empty() { "\"" } else { "" };
        read(&format!("{}{head}{tail}{}", quote(head), quote(tail))).ok()
    };
    let parts = (0..LONGEST_ESCAPE).find_map(part);
    parts.unwrap_or_else(|| format!("{head}{tail}"))
}

/// The whole output and value, if one of them was cut and was kept in whole.
fn whole(report: &RunReport, printed: Option<String>, value: Option<String>) -> Option<Arc<str>> {
    if printed.is_none() && value.is_none() {
        return None;
    }
    let mut whole = printed.unwrap_or_else(|| report.output.text.clone());
    if !whole.is_empty() && !whole.ends_with('\n') {
        whole.push('\n');
    }
    let cut = report.value.as_ref().map(|value| value.text.clone());
    whole.push_str(&value.or(cut).unwrap_or_default());
    Some(whole.into())
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
    let mut denials: Vec<Denial> = Vec::new();
    let mut places: HashMap<(&str, Option<u32>, &str), usize> = HashMap::new();
    for call in calls.iter().filter(|call| call.outcome == Outcome::Denied) {
        let key = (call.function.as_str(), call.line, call.decision.as_str());
        let place = *places.entry(key).or_insert(denials.len());
        if let Some(denial) = denials.get_mut(place) {
            denial.count += 1;
        } else {
            denials.push(Denial {
                function: call.function.clone(),
                line: call.line,
                because: call.decision.clone(),
                advice: call.advice.clone(),
                count: 1,
            });
        }
    }
    denials
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::string_part;

    #[test]
    fn parts_of_a_string_are_shown_as_text() {
        for (head, tail, expected) in [
            (r#""a\n\"b"#, "", "a\n\"b"),
            (r#""a\"#, "", "a"),
            (r#""a\u00"#, "", "a"),
            ("", r#"b\tc""#, "b\tc"),
            ("", r#""""#, ""),
            (r#""\ud83d\ude00\ud83d"#, "", "😀\u{fffd}"),
        ] {
            assert_eq!(string_part(head, tail), expected, "{head}{tail}");
        }
    }
}
