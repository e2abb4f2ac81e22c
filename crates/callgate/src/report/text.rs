//! The report as text, for a model or a person at a terminal.
//!
//! The text of a good run is only its output and value. The calls are shown if something went
//! wrong: then the reader needs to know what has been done already.

use std::fmt;

use callgate_servers::Audience;
use callgate_text::indented;

use super::calls::{write_calls, write_denials, write_dry_run, write_unchecked};
use super::{ErrorKind, RunError, RunReport, Status};
use crate::position::Position;
use crate::type_check::TypeCheck;

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
