//! Server-sent events, taken out of a stream of bytes, of bounded size.
//!
//! As the HTML standard has them ("event stream interpretation"), but for the
//! bound. Our own and not a crate's, so that nothing is held beyond the bound
//! and no byte is looked at twice.

use std::time::Duration;

use http::HeaderValue;

/// The longest id that is kept, in bytes: it goes into a header.
const MAX_ID_BYTES: usize = 1_024;
/// The longest a server may have the client wait before it comes again.
const MAX_RETRY: Duration = Duration::from_secs(5 * 60);

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The data of a message.
    Message(Vec<u8>),
    /// A message over the limit. The rest of it is skipped.
    TooLarge,
}

/// The events of one stream, as its bytes come in.
#[derive(Debug)]
pub(crate) struct Events {
    max_bytes: usize,
    /// What has come of the current line.
    line: Vec<u8>,
    /// What it is, as far as that makes a difference.
    kind: Line,
    /// The data of the current event.
    data: Option<Vec<u8>>,
    /// Whether the current event is a message: of no name or of that name.
    is_message: bool,
    /// The id of the current event.
    id: Option<HeaderValue>,
    last_id: Option<HeaderValue>,
    retry: Option<Duration>,
    messages: u64,
    skipping: bool,
    after_cr: bool,
    started: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Kept.
    Field,
    /// A comment, of which nothing is kept.
    Comment,
    /// Part of an event over the limit. Only whether it is empty matters.
    Skipped { empty: bool },
}

impl Events {
    /// Messages of at most `max_bytes`.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            line: Vec::new(),
            kind: Line::Field,
            data: None,
            is_message: true,
            id: None,
            last_id: None,
            retry: None,
            messages: 0,
            skipping: false,
            after_cr: false,
            started: false,
        }
    }

    /// Events of a stream that goes on where another one broke off.
    pub(crate) fn resumed(self) -> Self {
        let mut next = Self::new(self.max_bytes);
        next.last_id = self.last_id;
        next.retry = self.retry;
        next.messages = self.messages;
        next
    }

    /// The id of the last event that came whole, if events have ids.
    pub(crate) fn last_id(&self) -> Option<&HeaderValue> {
        self.last_id.as_ref()
    }

    /// How many messages there have been.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// How long the server wants the client to wait before it comes again.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Takes the next bytes, and tells of the events that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut tell: impl FnMut(Event)) {
        while !bytes.is_empty() {
            // A line may end in CR, in LF, or in both.
            if std::mem::take(&mut self.after_cr) && bytes.first() == Some(&b'\n') {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            match memchr::memchr2(b'\r', b'\n', bytes) {
                Some(at) => {
                    let (part, rest) = bytes.split_at(at);
                    self.extend(part, &mut tell);
                    self.after_cr = rest.first() == Some(&b'\r');
                    bytes = rest.get(1..).unwrap_or_default();
                    self.end_line(&mut tell);
                }
                None => {
                    self.extend(bytes, &mut tell);
                    return;
                }
            }
        }
    }

    fn extend(&mut self, part: &[u8], tell: &mut impl FnMut(Event)) {
        let Some(first) = part.first() else { return };
        match &mut self.kind {
            Line::Comment => return,
            Line::Skipped { empty } => {
                *empty = false;
                return;
            }
            Line::Field if self.line.is_empty() && *first == b':' => {
                self.kind = Line::Comment;
                return;
            }
            Line::Field => {}
        }
        let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        // That the data alone is within the limit is seen when the line is whole.
        if held + part.len() > self.max_bytes.saturating_add("data: ".len()) {
            self.kind = Line::Skipped { empty: false };
            return self.skip(tell);
        }
        self.line.extend_from_slice(part);
    }

    /// Gives the current event up.
    fn skip(&mut self, tell: &mut impl FnMut(Event)) {
        self.line = Vec::new();
        self.data = None;
        self.skipping = true;
        tell(Event::TooLarge);
    }

    fn end_line(&mut self, tell: &mut impl FnMut(Event)) {
        let kind = std::mem::replace(&mut self.kind, Line::Field);
        match kind {
            Line::Comment => {}
            Line::Skipped { empty: true } => self.end_event(tell),
            Line::Skipped { empty: false } => {}
            Line::Field => {
                let mut line = std::mem::take(&mut self.line);
                if !std::mem::replace(&mut self.started, true) && line.starts_with(b"\xef\xbb\xbf")
                {
                    line.drain(..3);
                }
                if line.is_empty() {
                    self.end_event(tell);
                } else {
                    self.field(line);
                    if self
                        .data
                        .as_ref()
                        .is_some_and(|data| data.len() > self.max_bytes)
                    {
                        self.skip(tell);
                    }
                }
            }
        }
        if self.skipping {
            self.kind = Line::Skipped { empty: true };
        }
    }

    fn field(&mut self, mut line: Vec<u8>) {
        let colon = line.iter().position(|byte| *byte == b':');
        let name = line.get(..colon.unwrap_or(line.len())).unwrap_or_default();
        let value_at = match colon {
            Some(at) if line.get(at + 1) == Some(&b' ') => at + 2,
            Some(at) => at + 1,
            None => line.len(),
        };
        match name {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(line.get(value_at..).unwrap_or_default());
                }
                None => {
                    line.drain(..value_at);
                    self.data = Some(line);
                }
            },
            b"event" => {
                let value = line.get(value_at..).unwrap_or_default();
                self.is_message = matches!(value, b"" | b"message");
            }
            b"id" => {
                let value = line.get(value_at..).unwrap_or_default();
                // One that no header can have could not be sent back.
                let id = HeaderValue::from_bytes(value).ok();
                if let Some(id) = id.filter(|_| value.len() <= MAX_ID_BYTES) {
                    self.id = Some(id);
                }
            }
            b"retry" => {
                let value = line.get(value_at..).unwrap_or_default();
                let digits = value.iter().all(u8::is_ascii_digit) && !value.is_empty();
                if let Some(text) = std::str::from_utf8(value).ok().filter(|_| digits) {
                    let retry = text.parse().map_or(MAX_RETRY, Duration::from_millis);
                    self.retry = Some(retry.min(MAX_RETRY));
                }
            }
            _ => {}
        }
    }

    fn end_event(&mut self, tell: &mut impl FnMut(Event)) {
        self.skipping = false;
        if let Some(id) = self.id.take() {
            // An empty id takes back the one before.
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        let data = self.data.take().filter(|data| !data.is_empty());
        let is_message = std::mem::replace(&mut self.is_message, true);
        if let Some(data) = data.filter(|_| is_message) {
            self.messages += 1;
            tell(Event::Message(data));
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// The events of `text`, whatever pieces it comes in.
    fn check(text: &str, max_bytes: usize, expected: Expect) {
        let mut first = None;
        for piece in [1, 2, 3, 7, text.len().max(1)] {
            let mut events = Events::new(max_bytes);
            let mut shown = String::new();
            for bytes in text.as_bytes().chunks(piece) {
                events.push(bytes, |event| {
                    shown.push_str(&match event {
                        Event::Message(data) => format!("{:?}\n", String::from_utf8_lossy(&data)),
                        Event::TooLarge => "too large\n".to_owned(),
                    });
                });
            }
            let (id, retry) = (events.last_id(), events.retry());
            shown.push_str(&format!("id {id:?}, retry {retry:?}\n"));
            let first = first.get_or_insert_with(|| shown.clone());
            assert_eq!(*first, shown, "in pieces of {piece}");
        }
        expected.assert_eq(&first.unwrap_or_default());
    }

    #[test]
    fn events_with_any_ends_of_lines() {
        check(
            "\u{feff}data: 1\n\ndata:2\r\n\r\nevent: message\rdata: 3\r\rdata: 4\ndata:  5\n\n",
            100,
            expect![[r#"
                "1"
                "2"
                "3"
                "4\n 5"
                id None, retry None
            "#]],
        );
    }

    #[test]
    fn what_is_no_message() {
        check(
            ": comment\n\nevent: ping\ndata: x\n\ndata\n\ndata: \n\nnonsense\n\nother: a\ndata: y\n\ndata: cut off",
            100,
            expect![[r#"
                "y"
                id None, retry None
            "#]],
        );
    }

    #[test]
    fn ids_count_when_their_event_is_whole_and_retry_at_once() {
        check(
            "id: a\nretry: 500\ndata: \n\nid: b\ndata: 1\n\nid: c\nretry: x\n",
            100,
            expect![[r#"
                "1"
                id Some("b"), retry Some(500ms)
            "#]],
        );
        check(
            "id: a\ndata: 1\n\nid\ndata: 2\n\nretry: 99999999999999999999\n",
            100,
            expect![[r#"
                "1"
                "2"
                id None, retry Some(300s)
            "#]],
        );
        check(
            &format!("id: a\n\nid: {}\n\n", "b".repeat(MAX_ID_BYTES + 1)),
            10_000,
            expect![[r#"
                id Some("a"), retry None
            "#]],
        );
        check(
            "id: ü\n\nid: \u{1}\n\n",
            100,
            expect![[r#"
                id Some("\xc3\xbc"), retry None
            "#]],
        );
    }

    #[test]
    fn an_event_over_the_limit_costs_itself_only() {
        let long = "x".repeat(50);
        check(
            &format!(
                "data: ok\n\ndata: {long}\ndata: more\n\ndata: ok\n\ndata: 12345\ndata: 67890\n\n\
                 event: {long}\ndata: y\n\n: {long}\ndata: ok\n\n"
            ),
            10,
            expect![[r#"
                "ok"
                too large
                "ok"
                too large
                too large
                "ok"
                id None, retry None
            "#]],
        );
    }

    #[test]
    fn an_endless_line_is_not_held() {
        let mut events = Events::new(1_000);
        let mut told = 0;
        for start in [&b": "[..], b"data: ", b"what: "] {
            events.push(start, |_| told += 1);
            for _ in 0..1_000 {
                events.push(&[b'x'; 1_000], |_| told += 1);
            }
            assert!(events.line.capacity() < 10_000);
            events.push(b"\n\n", |_| told += 1);
        }
        assert_eq!(told, 2);
    }
}
