//! The report as text, for a model or a person at a terminal.
//!
//! The text of a good run is only its output and value. The calls are shown if something went
//! wrong: then the reader needs to know what has been done already.

use std::collections::HashMap;
use std::fmt;

use callgate_gate::{LedgerLine, Outcome, Withheld};
use callgate_servers::Audience;
use callgate_text::{indented, one_line};

use super::{Denial, ErrorKind, RunError, RunReport, Status};
use crate::position::Position;
use crate::type_check::TypeCheck;

/// The limit of lines of a list; the JSON form has all of them.
const SHOWN_CALLS: usize = 20;
/// The limit of calls of one function that failed alike and have a line each; more share a line.
const SHOWN_ALIKE: usize = 3;
/// The limit of a dry run's arguments and of an error message, in characters.
const SHOWN_TEXT: usize = 300;
/// The limit of frames of a stack.
const SHOWN_FRAMES: usize = 10;

impl RunReport {
    /// The output, and on the next line the value: a string as its text, other values as JSON.
    pub fn printed(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| {
            write_lines(f, &self.output.text)?;
            match &self.value {
                Some(value) => write_lines(f, &value.text),
                None => Ok(()),
            }
        })
    }

    /// The error with the calls so far, and warnings for the author; empty for a good run.
    pub fn problems(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| {
            let error = self.error.as_ref();
            if let Some(check) = &self.check {
                write_check(f, &self.script, check, error.map(|error| error.kind))?;
            }
            if let Some(error) = error {
                write_error(f, &self.script, error)?;
                write_calls(f, self)?;
            }
            write_denials(f, self)?;
            match &self.dry_run {
                Some(withheld) if withheld.is_empty() => {
                    writeln!(f, "dry run: no call was withheld")?;
                }
                Some(withheld) => write_dry_run(f, withheld)?,
                None => {}
            }
            write_unchecked(f, &self.calls)?;
            for warning in &self.warnings {
                writeln!(f, "warning: {}", warning.message)?;
            }
            // A model learns of such a server when its script names it.
            let is_operator = self.audience == Audience::Operator;
            for server in self.unavailable.iter().filter(|_| is_operator) {
                writeln!(f, "warning: {}", server.reason)?;
            }
            Ok(())
        })
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.printed().fmt(f)?;
        if self.output.text.is_empty() && self.value.is_none() && self.status == Status::Completed {
            let emitted = match self.emitted.len() {
                0 => String::new(),
                1 => "; it emitted 1 block of content".to_owned(),
                count => format!("; it emitted {count} blocks of content"),
            };
            writeln!(
                f,
                "(the script printed nothing and returned nothing{emitted})"
            )?;
        }
        self.problems().fmt(f)
    }
}

fn write_lines(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str(text)?;
    if !text.is_empty() && !text.ends_with('\n') {
        f.write_str("\n")?;
    }
    Ok(())
}

/// Writes the type errors, or why there was no check, unless the run's error has it already.
pub(crate) fn write_check(
    f: &mut impl fmt::Write,
    script: &str,
    check: &TypeCheck,
    error: Option<ErrorKind>,
) -> fmt::Result {
    let label = match error {
        Some(ErrorKind::Types) => "error",
        _ => "warning",
    };
    for error in &check.errors {
        writeln!(f, "{label}: {}", error.message)?;
        if let Some(position) = &error.position {
            write_position(f, script, position)?;
        }
    }
    match check.more {
        0 => {}
        1 => writeln!(f, "{label}: 1 more type error is not shown")?,
        more => writeln!(f, "{label}: {more} more type errors are not shown")?,
    }
    match &check.reason {
        Some(reason) if error != Some(ErrorKind::Unchecked) && !check.said_before => {
            writeln!(f, "warning: the script was not type-checked: {reason}")
        }
        _ => Ok(()),
    }
}

fn write_error(f: &mut fmt::Formatter<'_>, script: &str, error: &RunError) -> fmt::Result {
    let message = indented(&error.message);
    match &error.name {
        Some(name) => writeln!(f, "error: {}: {message}", indented(name))?,
        None => writeln!(f, "error: {message}")?,
    }
    if let Some(position) = &error.position
        && error.kind != ErrorKind::Types
    {
        write_position(f, script, position)?;
    }
    // A single frame is the position above.
    if error.position.is_none() || error.stack.lines().count() > 1 {
        for frame in error.stack.lines().take(SHOWN_FRAMES) {
            writeln!(f, "  {frame}")?;
        }
    }
    if let Some(hint) = &error.hint {
        writeln!(f, "hint: {hint}")?;
    }
    Ok(())
}

/// Writes the calls by function, and calls without a result with their arguments.
fn write_calls(f: &mut fmt::Formatter<'_>, report: &RunReport) -> fmt::Result {
    if report.calls.is_empty() {
        return writeln!(f, "calls: none");
    }
    writeln!(f, "calls: {}", report.calls.len())?;
    let groups = call_groups(&report.calls);
    for group in groups.iter().take(SHOWN_CALLS) {
        writeln!(f, "  {group}")?;
    }
    write_more(f, "  and", groups.len(), " functions")?;
    // A person reads a denial once, with its reason.
    let denials = match report.audience {
        Audience::Operator => listed_denials(report),
        _ => Vec::new(),
    };
    let is_listed = |line: &LedgerLine| {
        let is_same = |it: &&Denial| {
            (&it.function, it.line, &it.because) == (&line.function, line.line, &line.decision)
        };
        line.outcome == Outcome::Denied && denials.iter().any(is_same)
    };
    let failed = report.calls.iter();
    let failed = failed.filter(|line| !is_grouped(line) && !is_listed(line));
    write_failed(f, &failed.collect::<Vec<_>>(), report.error.as_ref())
}

/// Writes calls without a result: many that failed alike in one line, and always the call that
/// ended the script, or else the last one, in a line of its own.
fn write_failed(
    f: &mut fmt::Formatter<'_>,
    failed: &[&LedgerLine],
    error: Option<&RunError>,
) -> fmt::Result {
    let is_end = |line: &&&LedgerLine| error.is_some_and(|error| is_thrown(line, error));
    let Some(end) = failed.iter().rfind(is_end).or(failed.last()) else {
        return Ok(());
    };
    let mut groups: Vec<Vec<&LedgerLine>> = Vec::new();
    let mut places: HashMap<(&str, &str), usize> = HashMap::new();
    let others = failed.iter().copied();
    for line in others.filter(|line| line.ordinal != end.ordinal) {
        let key = (line.function.as_str(), alike(&line.outcome));
        let place = *places.entry(key).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(line),
            None => groups.push(vec![line]),
        }
    }
    // Each with its first call and its number of calls.
    let mut lines: Vec<(usize, usize, String)> = Vec::new();
    for group in &groups {
        match group.as_slice() {
            [first, .., last] if group.len() > SHOWN_ALIKE => {
                lines.push((
                    first.ordinal,
                    group.len(),
                    alike_line(first, last, group.len()),
                ));
            }
            few => lines.extend(few.iter().map(|line| (line.ordinal, 1, failed_line(line)))),
        }
    }
    lines.sort_by_key(|(first, ..)| *first);
    let left_out = lines.split_off(lines.len().min(SHOWN_CALLS - 1));
    lines.push((end.ordinal, 1, failed_line(end)));
    lines.sort_by_key(|(first, ..)| *first);
    for (.., line) in &lines {
        writeln!(f, "  {line}")?;
    }
    match left_out.iter().map(|(_, calls, _)| calls).sum::<usize>() {
        0 => Ok(()),
        more => writeln!(f, "  and {more} more that did not succeed"),
    }
}

/// True if the run's error has the words of this call's failure.
fn is_thrown(line: &LedgerLine, error: &RunError) -> bool {
    let starts_with = |text: &str| !text.is_empty() && error.message.starts_with(text);
    let function = &line.function;
    match &line.outcome {
        Outcome::ToolError { message } | Outcome::ProtocolError { message, .. } => {
            starts_with(message.strip_suffix('…').unwrap_or(message))
        }
        Outcome::Denied => starts_with(&format!("{function} was not called: ")),
        Outcome::TimedOut { .. } => starts_with(&format!("{function} gave no answer")),
        _ => false,
    }
}

/// A call without a result in one line.
fn failed_line(line: &LedgerLine) -> String {
    let LedgerLine {
        ordinal,
        function,
        arguments,
        ..
    } = line;
    let edited = if line.edited {
        ", with the operator's changed arguments"
    } else {
        ""
    };
    format!(
        "{ordinal} {function}({arguments}) {}{edited}",
        call_outcome(line)
    )
}

/// Calls of one function that failed alike in one line.
fn alike_line(first: &LedgerLine, last: &LedgerLine, count: usize) -> String {
    format!(
        "{}: {count} {} {}, the first: {} {}",
        first.function,
        alike(&first.outcome),
        numbers(first.ordinal, last.ordinal, count),
        first.arguments,
        call_outcome(first)
    )
}

/// The words for several calls with such an outcome.
fn alike(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::ToolError { .. } | Outcome::ProtocolError { .. } => "failed",
        Outcome::TimedOut { .. } => "gave no answer in time",
        Outcome::Denied => "were denied",
        Outcome::Kept { .. } => "had their results withheld",
        Outcome::Asking => "were waiting for approval",
        Outcome::InFlight => "had no answer yet",
        Outcome::Cancelled => "were cancelled",
        _ => "ended",
    }
}

/// The numbers of several calls: `(2 to 41)`.
fn numbers(first: usize, last: usize, count: usize) -> String {
    if last - first + 1 == count {
        format!("({first} to {last})")
    } else {
        format!("(between {first} and {last})")
    }
}

/// True for a call that is counted with others of its function.
fn is_grouped(line: &LedgerLine) -> bool {
    let is_good = matches!(
        line.outcome,
        Outcome::Ok | Outcome::Withheld | Outcome::Recorded
    );
    is_good && !line.edited
}

/// The calls of one function that need no line of their own.
#[derive(Default)]
struct CallGroup<'a> {
    function: &'a str,
    /// Calls with a result, and the first and the last of them.
    ok: usize,
    first: usize,
    last: usize,
    /// Calls that a dry run did not make.
    withheld: usize,
}

impl fmt::Display for CallGroup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            function,
            ok,
            first,
            last,
            withheld,
        } = self;
        write!(f, "{function}: ")?;
        match *ok {
            0 => return write!(f, "{withheld} not made"),
            1 => f.write_str("1 ok")?,
            ok => write!(f, "{ok} ok {}", numbers(*first, *last, ok))?,
        }
        match withheld {
            0 => Ok(()),
            withheld => write!(f, ", {withheld} not made"),
        }
    }
}

/// The groups of calls, in the order of their first calls.
fn call_groups(calls: &[LedgerLine]) -> Vec<CallGroup<'_>> {
    let mut groups: Vec<CallGroup<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for line in calls.iter().filter(|line| is_grouped(line)) {
        let place = *places.entry(&line.function).or_insert(groups.len());
        if place == groups.len() {
            groups.push(CallGroup {
                function: &line.function,
                ..CallGroup::default()
            });
        }
        let Some(group) = groups.get_mut(place) else {
            continue;
        };
        if line.outcome != Outcome::Ok {
            group.withheld += 1;
            continue;
        }
        if group.ok == 0 {
            group.first = line.ordinal;
        }
        group.last = line.ordinal;
        group.ok += 1;
    }
    groups
}

/// Writes the number of lines of a list that are not shown.
fn write_more(f: &mut impl fmt::Write, and: &str, count: usize, what: &str) -> fmt::Result {
    match count.saturating_sub(SHOWN_CALLS) {
        0 => Ok(()),
        more => writeln!(f, "{and} {more} more{what}"),
    }
}

/// The end of a call without a result, in words.
fn call_outcome(line: &LedgerLine) -> String {
    let took = line.took_ms.unwrap_or_default();
    match &line.outcome {
        Outcome::ToolError { message } => format!("failed: {}", one_line(message, SHOWN_TEXT)),
        Outcome::ProtocolError { code, message } => {
            let message = one_line(message, SHOWN_TEXT);
            format!("failed: {message} (code {code})")
        }
        Outcome::TimedOut { limit_ms } => format!("gave no answer within {limit_ms} ms"),
        // The reason is in the error or in the list of denials.
        Outcome::Denied => "was denied".to_owned(),
        Outcome::Kept { reason } => {
            format!("had its result withheld: {}", one_line(reason, SHOWN_TEXT))
        }
        Outcome::Asking => "was waiting for approval".to_owned(),
        Outcome::InFlight => {
            let line = line.line.map(|line| format!(" (line {line})"));
            format!("had no answer yet{}", line.unwrap_or_default())
        }
        Outcome::Cancelled if line.took_ms.is_none() => {
            "was cancelled before it was sent".to_owned()
        }
        Outcome::Cancelled => format!("was cancelled after {took} ms"),
        _ => format!("ended in {took} ms"),
    }
}

/// The denials to list: none if the run's error is the only denial. Those that the error has the
/// words of are left out; for a model, those that the script printed, too.
fn listed_denials(report: &RunReport) -> Vec<&Denial> {
    let denials = &report.denials;
    if report.status == Status::Denied && matches!(denials.as_slice(), [one] if one.count == 1) {
        return Vec::new();
    }
    let error = report.error.as_ref().map(|error| error.message.as_str());
    let is_written = |denial: &&Denial| {
        let told = format!("{}; {}", denial.because, denial.advice);
        let error_text = format!("{} was not called: {told}", denial.function);
        (denial.count == 1 && error == Some(error_text.as_str()))
            || (report.audience == Audience::Caller && report.output.text.contains(&told))
    };
    denials.iter().filter(|it| !is_written(it)).collect()
}

/// Writes the denials.
fn write_denials(f: &mut fmt::Formatter<'_>, report: &RunReport) -> fmt::Result {
    let denials = listed_denials(report);
    for denial in denials.iter().take(SHOWN_CALLS) {
        let line = denial.line.map(|line| format!(" (line {line})"));
        let times = match denial.count {
            1 => String::new(),
            count => format!(" {count} times"),
        };
        let because = denial.because.as_str();
        let short = because.strip_prefix("denied: ");
        let short = short.or_else(|| because.strip_prefix("denied "));
        writeln!(
            f,
            "denied{times}: {}{}: {}; {}",
            denial.function,
            line.unwrap_or_default(),
            short.unwrap_or(because),
            denial.advice,
        )?;
    }
    write_more(f, "denied: and", denials.len(), "")
}

/// Names the tools whose results were not checked against their schemas, each once.
fn write_unchecked(f: &mut fmt::Formatter<'_>, calls: &[LedgerLine]) -> fmt::Result {
    let mut named: Vec<&str> = Vec::new();
    for line in calls {
        let function = line.function.as_str();
        let reason = line
            .unchecked
            .as_ref()
            .filter(|_| !named.contains(&function));
        let Some(reason) = reason else { continue };
        named.push(function);
        if named.len() > SHOWN_CALLS {
            return writeln!(f, "warning: results of more tools were not checked");
        }
        writeln!(
            f,
            "warning: a result of {function} was not checked against its outputSchema: {reason}"
        )?;
    }
    Ok(())
}

/// Writes the calls that a dry run did not make.
pub(crate) fn write_dry_run(f: &mut impl fmt::Write, withheld: &[Withheld]) -> fmt::Result {
    match withheld.len() {
        1 => writeln!(f, "dry run: 1 call was not made")?,
        count => writeln!(f, "dry run: {count} calls were not made")?,
    }
    for call in withheld.iter().take(SHOWN_CALLS) {
        let line = call.line.map(|line| format!(" (line {line})"));
        let arguments = match &call.arguments {
            Some(arguments) => one_line(arguments.get(), SHOWN_TEXT),
            None => format!("{} bytes", call.argument_bytes),
        };
        let answer = if call.recorded {
            "answered with a recorded result"
        } else if call.made_up {
            "answered with a made-up result"
        } else {
            "answered with an error"
        };
        writeln!(
            f,
            "  {} {}{} {arguments}: {}; {answer}",
            call.ordinal,
            call.function,
            line.unwrap_or_default(),
            call.decision,
        )?;
    }
    write_more(f, "  and", withheld.len(), "")?;
    if withheld.iter().any(|call| call.made_up) {
        let note = "made-up results are not real values; with real ones, a run may differ";
        writeln!(f, "note: {note}")?;
    }
    Ok(())
}

fn write_position(f: &mut impl fmt::Write, script: &str, position: &Position) -> fmt::Result {
    let Position {
        line,
        column,
        source_line,
    } = position;
    writeln!(f, "  --> {script}:{line}:{column}")?;
    if source_line.is_empty() {
        return Ok(());
    }
    let number = line.to_string();
    writeln!(f, "  {number} | {source_line}")?;
    let lead = caret_lead(source_line, *column);
    writeln!(f, "  {:width$} | {lead}^", "", width = number.len())
}

/// The text before a caret under `column`: tabs as in the line above, and a space for each other
/// character.
fn caret_lead(source_line: &str, column: u32) -> String {
    let mut units = 1;
    let mut lead = String::new();
    for character in source_line.chars() {
        if units >= column {
            break;
        }
        units += character.len_utf16() as u32;
        lead.push(if character == '\t' { '\t' } else { ' ' });
    }
    lead
}
