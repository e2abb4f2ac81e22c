//! The report as text: what a model or a person at a terminal reads.
//!
//! A run that went well is just its output and value; the ledger is there
//! when something went wrong, for then the question is what has been done
//! already.

use std::fmt;

use callgate_broker::{LedgerLine, Outcome, Withheld};

use super::{Denial, ErrorKind, Position, RunError, RunReport, Status};
use crate::harmless::{indented, one_line};
use crate::type_check::TypeCheck;

/// Ledger lines shown before the rest is only counted: the text is for a
/// model's context, and the JSON form has all of them.
const SHOWN_CALLS: usize = 20;

/// Characters of arguments that a dry run shows.
const SHOWN_ARGUMENTS: usize = 300;

/// Characters of why a call failed that are shown.
const SHOWN_MESSAGE: usize = 300;

/// Frames of a stack that are shown.
const SHOWN_FRAMES: usize = 10;

/// What the script printed and returned, as [`RunReport::printed`] gives it.
#[derive(Debug)]
pub struct Printed<'a>(pub(super) &'a RunReport);

/// Why the run failed and what its author should know, as
/// [`RunReport::problems`] gives it.
#[derive(Debug)]
pub struct Problems<'a>(pub(super) &'a RunReport);

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

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_lines(f, &self.0.output.text)?;
        match &self.0.value {
            Some(value) => write_lines(f, &value.text),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Problems<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = self.0;
        if let Some(check) = &report.check {
            let error = report.error.as_ref().map(|error| error.kind);
            write_check(f, &report.script, check, error)?;
        }
        if let Some(error) = &report.error {
            write_error(f, &report.script, error)?;
            write_calls(f, report)?;
        }
        write_denials(f, report)?;
        match &report.dry_run {
            Some(withheld) if withheld.is_empty() => write_no_withheld(f, &report.calls)?,
            Some(withheld) => write_dry_run(f, withheld)?,
            None => {}
        }
        write_unchecked(f, &report.calls)?;
        for server in &report.unavailable {
            writeln!(f, "warning: {}", server.reason)?;
        }
        Ok(())
    }
}

fn write_lines(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str(text)?;
    if !text.is_empty() && !text.ends_with('\n') {
        f.write_str("\n")?;
    }
    Ok(())
}

/// What a type check found, where that is not the whole of the error.
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
    write_type_errors(f, script, check, label)?;
    match &check.reason {
        Some(reason) if error != Some(ErrorKind::Unchecked) && !check.said_before => {
            writeln!(f, "warning: the script was not type-checked: {reason}")
        }
        _ => Ok(()),
    }
}

/// The type errors, each at its place, and the count of those not shown.
fn write_type_errors(
    f: &mut impl fmt::Write,
    script: &str,
    check: &TypeCheck,
    label: &str,
) -> fmt::Result {
    for error in &check.errors {
        writeln!(f, "{label}: {}", error.message)?;
        if let Some(position) = &error.position {
            write_position(f, script, position)?;
        }
    }
    match check.more {
        0 => Ok(()),
        1 => writeln!(f, "{label}: 1 more type error is not shown"),
        more => writeln!(f, "{label}: {more} more type errors are not shown"),
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
    // A single frame is the position above; more of them tell how the script
    // got there.
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

fn write_calls(f: &mut fmt::Formatter<'_>, report: &RunReport) -> fmt::Result {
    if report.calls.is_empty() {
        return writeln!(f, "calls: none");
    }
    writeln!(f, "calls: {}", report.calls.len())?;
    for line in report.calls.iter().take(SHOWN_CALLS) {
        write_call(f, line)?;
    }
    if report.calls.len() > SHOWN_CALLS {
        writeln!(f, "  and {} more", report.calls.len() - SHOWN_CALLS)?;
    }
    Ok(())
}

fn write_call(f: &mut fmt::Formatter<'_>, line: &LedgerLine) -> fmt::Result {
    write!(f, "  {} {} ", line.ordinal, line.function)?;
    let took = line.took_ms.unwrap_or_default();
    match &line.outcome {
        Outcome::Ok => {
            let bytes = line.result_bytes.unwrap_or_default();
            writeln!(f, "ok in {took} ms, {bytes} bytes")
        }
        Outcome::ToolError { message } => {
            writeln!(f, "failed in {took} ms: {}", in_one_line(message))
        }
        Outcome::ProtocolError { code, message } => {
            writeln!(
                f,
                "failed in {took} ms: {} (code {code})",
                in_one_line(message)
            )
        }
        Outcome::TimedOut { limit_ms } => writeln!(f, "gave no answer within {limit_ms} ms"),
        Outcome::Denied => writeln!(f, "{}", line.decision),
        Outcome::Kept { reason } => {
            writeln!(f, "had its result withheld: {}", in_one_line(reason))
        }
        Outcome::Withheld | Outcome::Recorded => writeln!(f, "was not made"),
        Outcome::Asking => writeln!(f, "was being asked about"),
        Outcome::InFlight => writeln!(f, "had no answer yet"),
        Outcome::Cancelled if line.took_ms.is_none() => {
            writeln!(f, "was cancelled before it was sent")
        }
        Outcome::Cancelled => writeln!(f, "was cancelled after {took} ms"),
        _ => writeln!(f, "ended in {took} ms"),
    }
}

/// What was denied, where the error does not say it already.
fn write_denials(f: &mut fmt::Formatter<'_>, report: &RunReport) -> fmt::Result {
    let denials = &report.denials;
    if report.status == Status::Denied && matches!(denials.as_slice(), [one] if one.count == 1) {
        return Ok(());
    }
    for denial in denials.iter().take(SHOWN_CALLS) {
        let Denial {
            function,
            line,
            because,
            count,
        } = denial;
        let line = line
            .map(|line| format!(" (line {line})"))
            .unwrap_or_default();
        let times = match count {
            1 => String::new(),
            count => format!(" {count} times"),
        };
        writeln!(f, "denied{times}: {function}{line}: {because}")?;
    }
    match denials.len().checked_sub(SHOWN_CALLS) {
        None | Some(0) => Ok(()),
        Some(more) => writeln!(f, "denied: and {more} more"),
    }
}

/// The tools whose results were not held to their schemas, each once.
fn write_unchecked(f: &mut fmt::Formatter<'_>, calls: &[LedgerLine]) -> fmt::Result {
    let mut told: Vec<&str> = Vec::new();
    for line in calls {
        let Some(reason) = &line.unchecked else {
            continue;
        };
        if told.contains(&line.function.as_str()) {
            continue;
        }
        told.push(&line.function);
        if told.len() > SHOWN_CALLS {
            return writeln!(f, "warning: results of more tools were not checked");
        }
        let function = &line.function;
        writeln!(
            f,
            "warning: a result of {function} was not checked against its outputSchema: {reason}"
        )?;
    }
    Ok(())
}

/// What a dry run did that withheld no call: not all of them need have been made.
fn write_no_withheld(f: &mut impl fmt::Write, calls: &[LedgerLine]) -> fmt::Result {
    let count = |is: fn(&LedgerLine) -> bool| calls.iter().filter(|line| is(line)).count();
    let denied = count(|line| line.outcome == Outcome::Denied);
    // A call under way has not taken any time that is known.
    let unsent = count(|line| line.took_ms.is_none() && line.outcome != Outcome::InFlight);
    let was = |count: usize, what: &str| match count {
        1 => format!("1 was {what}"),
        count => format!("{count} were {what}"),
    };
    match (denied, unsent.saturating_sub(denied)) {
        (0, 0) if calls.is_empty() => writeln!(f, "dry run: there was no call to make"),
        (0, 0) => writeln!(f, "dry run: every call only read, and was made"),
        (denied, 0) => writeln!(
            f,
            "dry run: no call was withheld; {}",
            was(denied, "denied")
        ),
        (0, other) => writeln!(
            f,
            "dry run: no call was withheld; {}",
            was(other, "not sent")
        ),
        (denied, other) => writeln!(
            f,
            "dry run: no call was withheld; {}, {}",
            was(denied, "denied"),
            was(other, "not sent for another reason")
        ),
    }
}

/// What a dry run would have done.
pub(crate) fn write_dry_run(f: &mut impl fmt::Write, withheld: &[Withheld]) -> fmt::Result {
    match withheld.len() {
        1 => writeln!(f, "dry run: 1 call was not made")?,
        count => writeln!(f, "dry run: {count} calls were not made")?,
    }
    for call in withheld.iter().take(SHOWN_CALLS) {
        let line = call.line.map(|line| format!(" (line {line})"));
        let arguments = match &call.arguments {
            Some(arguments) => one_line(arguments.get(), SHOWN_ARGUMENTS),
            None => format!("{} bytes", call.argument_bytes),
        };
        writeln!(
            f,
            "  {} {}{} {arguments}: {}; {}",
            call.ordinal,
            call.function,
            line.unwrap_or_default(),
            call.decision,
            match call.recorded {
                true => "answered with a recorded result",
                false => "answered with an error",
            }
        )?;
    }
    match withheld.len().checked_sub(SHOWN_CALLS) {
        None | Some(0) => Ok(()),
        Some(more) => writeln!(f, "  and {more} more"),
    }
}

/// The first of several lines may say no more than that others follow.
fn in_one_line(message: &str) -> String {
    one_line(message, SHOWN_MESSAGE)
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

/// What stands before the caret so that it falls under `column`: a space for
/// each character, tabs kept so that they are as wide as in the line above.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(outcome: Outcome, took_ms: Option<u64>) -> LedgerLine {
        LedgerLine {
            ordinal: 1,
            function: "fs_read".to_owned(),
            server: "fs".to_owned(),
            tool: "read".to_owned(),
            decision: String::new(),
            line: None,
            at: String::new(),
            argument_bytes: 2,
            argument_sha256: None,
            flows: Vec::new(),
            more_flows: 0,
            result_bytes: None,
            result_sha256: None,
            unchecked: None,
            started_ms: 0,
            took_ms,
            outcome,
        }
    }

    #[test]
    fn a_dry_run_that_withheld_nothing_says_what_was_not_made() {
        let made = || line(Outcome::Ok, Some(1));
        let under_way = || line(Outcome::InFlight, None);
        let denied = || line(Outcome::Denied, None);
        let unfit = || {
            line(
                Outcome::ProtocolError {
                    code: -32602,
                    message: String::new(),
                },
                None,
            )
        };
        for (calls, said) in [
            (vec![], "there was no call to make"),
            (
                vec![made(), under_way()],
                "every call only read, and was made",
            ),
            (vec![made(), denied()], "no call was withheld; 1 was denied"),
            (
                vec![denied(), denied()],
                "no call was withheld; 2 were denied",
            ),
            (vec![unfit()], "no call was withheld; 1 was not sent"),
            (
                vec![denied(), unfit(), unfit()],
                "no call was withheld; 1 was denied, 2 were not sent for another reason",
            ),
        ] {
            let mut text = String::new();
            write_no_withheld(&mut text, &calls).expect("a string takes it");
            assert_eq!(text, format!("dry run: {said}\n"));
        }
    }
}
