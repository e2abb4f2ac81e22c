//! Parses scripts and types for the host, so that the damage that a text does to the parser ends
//! with the worker process.

use callgate_sandbox::wire::{Read, Readable, WorkerFrame, max_read_bytes};
use callgate_script::{ScriptError, ScriptErrorKind, TypeTextError};
use serde::Serialize;

/// Parses a text; the outcome is the parser's `Result` as JSON.
pub(super) fn read(read: &Read) -> WorkerFrame {
    let max = max_read_bytes(read.what);
    let outcome = match read.what {
        Readable::Script => written(callgate_script::prepare(&read.text), max, |what| {
            ScriptError::without_place(ScriptErrorKind::TooComplex, format!("the script {what}"))
        }),
        Readable::Type => written(callgate_script::json_schema(&read.text), max, |what| {
            TypeTextError::new(format!("the type {what}"))
        }),
    };
    WorkerFrame::Read { outcome }
}

/// The outcome as JSON, or an error that it is too long.
fn written<T: Serialize, E: Serialize>(
    outcome: Result<T, E>,
    max: usize,
    refused: impl FnOnce(String) -> E,
) -> String {
    // Values of plain types, which JSON has room for. The host takes an empty text for no outcome.
    let written = |outcome: &Result<T, E>| serde_json::to_string(outcome).unwrap_or_default();
    let text = written(&outcome);
    if text.len() <= max {
        return text;
    }
    let bytes = text.len();
    drop((text, outcome));
    written(&Err(refused(format!(
        "comes to {bytes} bytes when it is read, over the limit of {max}; write it in simpler pieces"
    ))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Constants of an enum come to 80 MiB where each of their characters is written as an
    /// escape, and once more in JSON.
    #[test]
    fn oversized_read_result_is_refused() {
        let told = |max| {
            let read: Result<&str, String> = Ok("\u{1}\u{1}");
            written(read, max, |what| format!("the script {what}"))
        };
        assert_eq!(told(21), r#"{"Ok":"\u0001\u0001"}"#);
        assert_eq!(
            told(20),
            r#"{"Err":"the script comes to 21 bytes when it is read, over the limit of 20; write it in simpler pieces"}"#
        );
    }
}
