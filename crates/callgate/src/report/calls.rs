//! The calls of a run as text: those with a result by function, the others each with the reason.

use std::fmt;

use callgate_gate::{LedgerLine, Outcome, Withheld};
use callgate_servers::Audience;
use callgate_text::one_line;

use super::{Denial, RunError, RunReport, Status, grouped};

/// The limit of lines of a list; the JSON form has all of them.
const SHOWN_CALLS: usize = 20;
/// The limit of calls of one function that failed alike and have a line each; more share a line.
const SHOWN_ALIKE: usize = 3;
/// The limit of a dry run's arguments and of an error message, in characters.
const SHOWN_TEXT: usize = 300;

/// Writes the calls by function, and calls without a result with their arguments.
pub(super) fn write_calls(f: &mut fmt::Formatter<'_>, report: &RunReport) -> fmt::Result {
    if report.calls.is_empty() {
        return writeln!(f, "calls: none");
    }
    writeln!(f, "calls: {}", report.calls.len())?;
    let together = report.calls.iter().filter(|line| is_grouped(line));
    let groups = grouped(together, |line| line.function.as_str());
    for group in groups.iter().take(SHOWN_CALLS) {
        writeln!(f, "  {}", group_line(group))?;
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
    let others = failed.iter().copied();
    let others = others.filter(|line| line.ordinal != end.ordinal);
    let groups = grouped(others, |line| {
        (line.function.as_str(), alike(&line.outcome))
    });
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

/// The calls of one function that need no line of their own: the numbers of those with a result, and
/// the count of those that a dry run did not make.
fn group_line(group: &[&LedgerLine]) -> String {
    let ok = group.iter().filter(|line| line.outcome == Outcome::Ok);
    let ok: Vec<usize> = ok.map(|line| line.ordinal).collect();
    let mut counts = Vec::new();
    match ok.as_slice() {
        [] => {}
        [_one] => counts.push("1 ok".to_owned()),
        [first, .., last] => {
            let count = ok.len();
            counts.push(format!("{count} ok {}", numbers(*first, *last, count)));
        }
    }
    let withheld = group.len() - ok.len();
    if withheld > 0 {
        counts.push(format!("{withheld} not made"));
    }
    let function = group.first().map_or("", |line| line.function.as_str());
    format!("{function}: {}", counts.join(", "))
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
pub(super) fn write_denials(f: &mut fmt::Formatter<'_>, report: &RunReport) -> fmt::Result {
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
pub(super) fn write_unchecked(f: &mut fmt::Formatter<'_>, calls: &[LedgerLine]) -> fmt::Result {
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
