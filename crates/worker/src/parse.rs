//! Parses scripts and types for the host, so that damage to the parser ends with the worker process.

use callgate_sandbox::wire::{Read, Readable, WorkerFrame, max_read_bytes};
use callgate_script::{ScriptError, ScriptErrorKind, TypeTextError};
use serde::Serialize;

/// Parses a text; the outcome is the parser's `Result` as JSON.
pub(super) fn read(read: &Read) -> WorkerFrame {
    let max = max_read_bytes(read.what);
    let outcome = match read.what {
        Readable::Script => to_json(callgate_script::prepare(&read.text), max, |fault| {
            ScriptError::without_place(ScriptErrorKind::TooComplex, format!("the script {fault}"))
        }),
        Readable::Type => to_json(callgate_script::json_schema(&read.text), max, |fault| {
            TypeTextError::new(format!("the type {fault}"))
        }),
    };
    WorkerFrame::Read { outcome }
}

/// The outcome as JSON, or an error that it is too long.
fn to_json<T: Serialize, E: Serialize>(
    outcome: Result<T, E>,
    max: usize,
    error: impl FnOnce(String) -> E,
) -> String {
    // Values of plain types always have a JSON form. The host refuses an empty text.
    let json = |outcome: &Result<T, E>| serde_json::to_string(outcome).unwrap_or_default();
    let text = json(&outcome);
    if text.len() <= max {
        return text;
    }
    let bytes = text.len();
    drop((text, outcome));
    json(&Err(error(format!(
        "has {bytes} bytes after parsing, over the limit of {max}; write it in simpler pieces"
    ))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Constants of an enum can grow to 80 MiB: each character becomes an escape, and again in JSON.
    #[test]
    fn oversized_read_result_is_refused() {
        let outcome = |max| {
            let read: Result<&str, String> = Ok("\u{1}\u{1}");
            to_json(read, max, |fault| format!("the script {fault}"))
        };
        assert_eq!(outcome(21), r#"{"Ok":"\u0001\u0001"}"#);
        let error = outcome(20);
        assert!(
            error.contains("21 bytes after parsing, over the limit of 20"),
            "{error}"
        );
    }
}
