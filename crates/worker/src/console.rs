//! Console output, bounded in the worker: the head is sent at once, and the tail of the rest is kept.
//!
//! It is shared with the thread that reads the socket, which sends the tail of a stuck script.

use std::collections::VecDeque;

use callgate_sandbox::wire::OutputEnd;

#[derive(Debug, Default)]
pub(super) struct Console {
    head: Room,
    tail: Room,
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    kept_lines: usize,
    cut_bytes: u64,
    cut_lines: u64,
    missing_bytes: u64,
    closed: bool,
    /// Bytes after the head that may still be sent at once.
    more_bytes: usize,
}

/// A message that may be a part of the tail.
#[derive(Debug)]
struct Kept {
    /// The message with its line feed.
    text: String,
    lines: usize,
    is_error: bool,
}

/// The parts of a message that are sent to the host at once.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) head: Option<String>,
    /// The text after the head.
    pub(super) more: Option<String>,
}

/// Bytes and lines that still fit.
#[derive(Debug, Default, Clone, Copy)]
struct Room {
    bytes: usize,
    lines: usize,
}

impl Console {
    /// Half of `bytes` and `lines` is for the head, half for the tail; `more_bytes` after the head
    /// are sent at once.
    pub(super) fn new(bytes: u64, lines: u64, more_bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let lines = usize::try_from(lines).unwrap_or(usize::MAX);
        Self {
            head: Room {
                bytes: bytes / 2,
                lines: lines / 2,
            },
            tail: Room {
                bytes: bytes - bytes / 2,
                lines: lines - lines / 2,
            },
            more_bytes: usize::try_from(more_bytes).unwrap_or(usize::MAX),
            ..Self::default()
        }
    }

    /// Adds a message, which lacks `missing` bytes already, and returns the parts to send now.
    pub(super) fn push(&mut self, mut message: String, missing: u64, is_error: bool) -> Sent {
        let mut sent = Sent::default();
        if self.closed {
            return sent;
        }
        self.missing_bytes += missing;
        message.push('\n');
        if self.head.bytes == 0 {
            sent.more = self.more(&message);
            self.keep(message, is_error);
            return sent;
        }
        let fits = prefix(&message, self.head);
        if fits == message.len() {
            self.head.bytes -= fits;
            self.head.lines -= line_feeds(&message);
            sent.head = Some(message);
            return sent;
        }
        // The head is full now; later messages belong to the tail even if they would fit.
        self.head = Room::default();
        let rest = message.split_off(fits);
        sent.more = self.more(&rest);
        self.keep(rest, is_error);
        sent.head = (!message.is_empty()).then_some(message);
        sent
    }

    /// The part of a text after the head that is sent at once.
    fn more(&mut self, text: &str) -> Option<String> {
        let fits = text.floor_char_boundary(self.more_bytes);
        // Nothing is sent after a gap.
        let is_whole = fits == text.len();
        self.more_bytes = if is_whole { self.more_bytes - fits } else { 0 };
        let more = text.get(..fits)?;
        (!more.is_empty()).then(|| more.to_owned())
    }

    /// Returns the tail, once. Later messages are ignored.
    pub(super) fn close(&mut self) -> Option<OutputEnd> {
        if std::mem::replace(&mut self.closed, true) {
            return None;
        }
        let mut tail = String::with_capacity(self.kept_bytes);
        let is_error = !self.kept.is_empty() && self.kept.iter().all(|kept| kept.is_error);
        for kept in self.kept.drain(..) {
            tail.push_str(&kept.text);
        }
        let from = tail.len() - suffix(&tail, self.tail);
        let cut = tail.get(..from).unwrap_or_default();
        self.cut_bytes += cut.len() as u64;
        self.cut_lines += line_feeds(cut) as u64;
        tail.drain(..from);
        Some(OutputEnd {
            timers: Vec::new(),
            tail,
            is_error,
            cut_bytes: self.cut_bytes,
            cut_lines: self.cut_lines,
            missing_bytes: self.missing_bytes,
        })
    }

    fn keep(&mut self, text: String, is_error: bool) {
        let lines = line_feeds(&text);
        self.kept_bytes += text.len();
        self.kept_lines += lines;
        self.kept.push_back(Kept {
            text,
            lines,
            is_error,
        });
        // Drops whole messages that can no longer be part of the tail.
        while let Some(first) = self.kept.front() {
            let (bytes, lines) = (first.text.len(), first.lines);
            let needed = self.kept_bytes - bytes < self.tail.bytes
                && self.kept_lines - lines < self.tail.lines;
            if needed {
                break;
            }
            self.kept.pop_front();
            self.kept_bytes -= bytes;
            self.kept_lines -= lines;
            self.cut_bytes += bytes as u64;
            self.cut_lines += lines as u64;
        }
    }
}

fn line_feeds(text: &str) -> usize {
    text.matches('\n').count()
}

/// Bytes of the longest prefix that fits, cut between two characters.
fn prefix(text: &str, room: Room) -> usize {
    if room.lines == 0 {
        return 0;
    }
    let last = text.match_indices('\n').nth(room.lines - 1);
    let by_lines = last.map_or(text.len(), |(at, _)| at + 1);
    text.floor_char_boundary(by_lines.min(room.bytes))
}

/// Bytes of the longest suffix that fits, cut between two characters.
fn suffix(text: &str, room: Room) -> usize {
    // The last message ends with a line feed, so the one before the first kept line is number
    // `lines`, counted from 0 at the end.
    let first = text.rmatch_indices('\n').nth(room.lines);
    let by_lines = first.map_or(text.len(), |(at, _)| text.len() - at - 1);
    let from = text.len() - by_lines.min(room.bytes);
    text.len() - text.ceil_char_boundary(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pushes the messages into a console of this size and expects head, tail and what was cut.
    fn check(bytes: u64, lines: u64, messages: &[&str], expected: (&str, &str, u64, u64)) {
        let mut capture = Console::new(bytes, lines, 0);
        let head: String = messages
            .iter()
            .filter_map(|m| capture.push((*m).to_owned(), 0, false).head)
            .collect();
        let rest = capture.close().expect("closed for the first time");
        assert_eq!(
            (
                head.as_str(),
                rest.tail.as_str(),
                rest.cut_bytes,
                rest.cut_lines
            ),
            expected,
            "{messages:?}"
        );
        let whole: usize = messages.iter().map(|m| m.len() + 1).sum();
        assert_eq!(
            head.len() + rest.tail.len() + rest.cut_bytes as usize,
            whole
        );
        assert_eq!(capture.push("late".to_owned(), 1, false), Sent::default());
        assert_eq!(capture.close(), None);
    }

    #[test]
    fn head_and_tail_are_kept() {
        check(100, 100, &[], ("", "", 0, 0));
        check(100, 100, &["a", "b"], ("a\nb\n", "", 0, 0));
        check(8, 100, &["abc", "def"], ("abc\n", "def\n", 0, 0));
        check(8, 100, &["abc", "def", "ghi"], ("abc\n", "ghi\n", 4, 1));
        check(8, 100, &["abcdefghij"], ("abcd", "hij\n", 3, 0));
        check(
            8,
            100,
            &["ab", "c", "d", "efghijkl"],
            ("ab\nc", "jkl\n", 8, 2),
        );
        check(
            100,
            4,
            &["1", "2", "3", "4", "5", "6"],
            ("1\n2\n", "5\n6\n", 4, 2),
        );
        check(100, 4, &["1\n2\n3\n4\n5\n6"], ("1\n2\n", "5\n6\n", 4, 2));
        check(0, 0, &["gone"], ("", "", 5, 1));
    }

    #[test]
    fn tail_of_errors_alone_is_an_error() {
        for (messages, expected) in [
            (&[(true, "ab"), (true, "cd"), (true, "ef")][..], true),
            (&[(false, "abc"), (false, "cut"), (true, "ghi")], true),
            (&[(true, "abc"), (true, "d"), (false, "e")], false),
            (&[(true, "abc")], false),
        ] {
            let mut console = Console::new(8, 100, 0);
            for (is_error, message) in messages {
                console.push((*message).to_owned(), 0, *is_error);
            }
            let end = console.close().expect("closed for the first time");
            assert_eq!(end.is_error, expected, "{messages:?}");
        }
    }
}
