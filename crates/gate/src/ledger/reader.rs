//! Reads a ledger file.

use std::collections::VecDeque;
use std::io::{self, BufRead};

use serde_json::Value;

use super::line::START;

/// The records of a ledger file, in the order in which they were written.
///
/// They may be of several processes and runs: `run` and `call` say which belong together.
#[derive(Debug)]
pub struct LedgerReader<R> {
    input: R,
    found: VecDeque<LedgerRecord>,
}

/// A piece of a ledger file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerRecord {
    /// A whole record.
    Whole(Value),
    /// This many bytes that were cut off, or are no record.
    Torn(usize),
}

impl<R: BufRead> LedgerReader<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Self {
        Self {
            input,
            found: VecDeque::new(),
        }
    }

    fn read_line(&mut self) -> io::Result<bool> {
        let mut line = Vec::new();
        if self.input.read_until(b'\n', &mut line)? == 0 {
            return Ok(false);
        }
        for piece in pieces(&line) {
            self.found.push_back(match serde_json::from_slice(piece) {
                Ok(record @ Value::Object(_)) if piece.starts_with(START.as_bytes()) => {
                    LedgerRecord::Whole(record)
                }
                _ => LedgerRecord::Torn(piece.len()),
            });
        }
        Ok(true)
    }
}

/// The pieces of a line: behind a record that was cut off, another process's record may begin.
fn pieces(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let mut starts: Vec<usize> = memchr::memmem::find_iter(line, START).collect();
    if starts.first() != Some(&0) {
        starts.insert(0, 0);
    }
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([line.len()]).collect();
    let pieces = starts.into_iter().zip(ends);
    let pieces = pieces.map(|(from, to)| line.get(from..to).unwrap_or_default());
    pieces.filter(|piece| !piece.is_empty())
}

impl<R: BufRead> Iterator for LedgerReader<R> {
    type Item = io::Result<LedgerRecord>;

    fn next(&mut self) -> Option<io::Result<LedgerRecord>> {
        loop {
            if let Some(record) = self.found.pop_front() {
                return Some(Ok(record));
            }
            match self.read_line() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
