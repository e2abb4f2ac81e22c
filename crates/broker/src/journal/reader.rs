//! Reading a journal, also one that was being written when it all ended.

use std::collections::VecDeque;
use std::io::{self, BufRead};

use serde_json::Value;

use super::record::START;

/// The records of a journal, in the order in which they were written.
///
/// The lines of a journal may be from several processes and from several runs:
/// `run` and `call` say which belong together.
#[derive(Debug)]
pub struct JournalReader<R> {
    input: R,
    found: VecDeque<JournalLine>,
}

/// What stands in one place of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalLine {
    /// A whole record.
    Record(Value),
    /// Something that was cut off, or is no record, of so many bytes.
    Torn(usize),
}

impl<R: BufRead> JournalReader<R> {
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
                    JournalLine::Record(record)
                }
                _ => JournalLine::Torn(piece.len()),
            });
        }
        Ok(true)
    }
}

/// The pieces of a line of a file: where a record was cut off, another one may begin within it.
pub(super) fn pieces(line: &[u8]) -> impl Iterator<Item = &[u8]> {
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

impl<R: BufRead> Iterator for JournalReader<R> {
    type Item = io::Result<JournalLine>;

    fn next(&mut self) -> Option<io::Result<JournalLine>> {
        loop {
            if let Some(line) = self.found.pop_front() {
                return Some(Ok(line));
            }
            match self.read_line() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
