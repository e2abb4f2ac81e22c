//! Chains of lines: each line has its number and the hash of the line before it.

use sha2::{Digest as _, Sha256};

/// A chain of lines that were written.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// The number of lines.
    lines: u64,
    /// The hash and the time of the last line.
    last: Option<(String, String)>,
}

impl Chain {
    /// The members of the next line, as JSON without braces.
    pub(super) fn next(&self) -> String {
        let number = self.lines + 1;
        match &self.last {
            None => format!(r#""n":{number}"#),
            Some((hash, time)) => {
                format!(r#""n":{number},"prev":"{hash}","prevTime":"{time}""#)
            }
        }
    }

    /// Adds a line that was written, by its hash and its time.
    pub(super) fn add(&mut self, hash: String, time: String) {
        self.lines += 1;
        self.last = Some((hash, time));
    }
}

/// SHA-256 in hexadecimal.
pub(super) fn digest(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}
