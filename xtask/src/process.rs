//! Runs other programs: they are printed before they run and named when they fail.

use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::say;

/// Runs a program with its output passed through; a failure is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if !status.success() {
        bail!(
            "`{}` failed ({status}); its output is above",
            shown(command)
        );
    }
    Ok(())
}

/// Runs a program with its output passed through, and returns its status.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    say::detail(format_args!("$ {}", shown(command)));
    let status = command.stdin(Stdio::null()).status();
    status.with_context(|| not_started(command))
}

/// The standard output of a program that is run silently.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| not_started(command))?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let (shown, said) = (shown(command), said.trim());
        bail!("`{shown}` failed ({}): {said}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The version line of a program; `None` if it is missing or fails.
pub(crate) fn version(command: &mut Command) -> Option<String> {
    output(command).ok().map(|text| text.trim().to_owned())
}

fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    // Omits the path of cargo.
    if let Some(name) = text.strip_suffix("/cargo") {
        text = text[name.len() + 1..].to_owned();
    }
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

fn not_started(command: &Command) -> String {
    format!("cannot start `{}`", command.get_program().to_string_lossy())
}
