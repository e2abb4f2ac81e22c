//! Lines from a stream, of bounded length.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncBufRead;

/// How much of the two ends of an overlong line is kept. A JSON-RPC id stands
/// in one of them unless the server pads its messages.
const KEPT_OF_OVERLONG: usize = 512;

/// One line, without its line feed.
#[derive(Debug)]
pub(crate) enum Line {
    /// A whole line.
    Whole(Vec<u8>),
    /// A line over the limit: its two ends.
    Overlong { head: Vec<u8>, tail: Vec<u8> },
}

/// The lines of a stream.
#[derive(Debug)]
pub(crate) struct Lines<S> {
    stream: S,
    max_bytes: usize,
    /// What has been read of the current line; its head, if it is overlong.
    line: Vec<u8>,
    /// The end of the current line, if it is overlong.
    tail: Option<Vec<u8>>,
}

impl<S: AsyncBufRead + Unpin> Lines<S> {
    /// Lines of at most `max_bytes`.
    pub(crate) fn new(stream: S, max_bytes: usize) -> Self {
        Self {
            stream,
            max_bytes,
            line: Vec::new(),
            tail: None,
        }
    }

    /// Where the lines come from.
    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    /// The stream, with what has been read of it and is no line yet left off.
    pub(crate) fn into_stream(self) -> S {
        self.stream
    }

    /// How many bytes of a line have come that has not ended, as far as they are kept.
    pub(crate) fn unended(&self) -> usize {
        self.line.len()
    }

    /// The next line. `None` at the end of the stream, and when it fails:
    /// either way nothing more will come. What follows the last line feed
    /// counts as a line.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Line>> {
        loop {
            let Ok(chunk) = ready!(Pin::new(&mut self.stream).poll_fill_buf(cx)) else {
                return Poll::Ready(None);
            };
            if chunk.is_empty() {
                let nothing = self.line.is_empty() && self.tail.is_none();
                return Poll::Ready((!nothing).then(|| self.take()));
            }
            let (part, used, ended) = match memchr::memchr(b'\n', chunk) {
                Some(at) => (chunk.get(..at).unwrap_or_default(), at + 1, true),
                None => (chunk, chunk.len(), false),
            };
            match &mut self.tail {
                None if self.line.len() + part.len() <= self.max_bytes => {
                    self.line.extend_from_slice(part);
                }
                None => {
                    self.line.extend_from_slice(part);
                    let kept = self.line.len().saturating_sub(KEPT_OF_OVERLONG);
                    self.tail = Some(self.line.split_off(kept));
                    self.line.truncate(KEPT_OF_OVERLONG);
                    self.line.shrink_to_fit();
                }
                Some(tail) => {
                    tail.extend_from_slice(part);
                    tail.drain(..tail.len().saturating_sub(KEPT_OF_OVERLONG));
                }
            }
            Pin::new(&mut self.stream).consume(used);
            if ended {
                return Poll::Ready(Some(self.take()));
            }
        }
    }

    fn take(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        match self.tail.take() {
            Some(tail) => Line::Overlong { head: line, tail },
            None => Line::Whole(line),
        }
    }
}

/// The JSON-RPC id of an overlong message, when exactly one number that
/// `is_wanted` stands where an id may stand. Both ends are looked at: servers
/// write the id before or after the result.
pub(crate) fn id_of_overlong(
    head: &[u8],
    tail: &[u8],
    is_wanted: impl Fn(u64) -> bool,
) -> Option<u64> {
    let mut found: Vec<u64> = Vec::new();
    for end in [head, tail] {
        let text = String::from_utf8_lossy(end);
        for (at, key) in text.match_indices("\"id\"") {
            let rest = text.get(at + key.len()..).unwrap_or_default().trim_start();
            let Some(rest) = rest.strip_prefix(':') else {
                continue;
            };
            let digits: String = rest
                .trim_start()
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            if let Ok(id) = digits.parse()
                && is_wanted(id)
                && !found.contains(&id)
            {
                found.push(id);
            }
        }
    }
    match found.as_slice() {
        [id] => Some(*id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::BufReader;

    use super::*;

    async fn lines(text: &str, max_bytes: usize, buffer: usize) -> Vec<String> {
        let stream = BufReader::with_capacity(buffer, text.as_bytes());
        let mut stream = Lines::new(stream, max_bytes);
        let mut lines = Vec::new();
        while let Some(line) = poll_fn(|cx| stream.poll_next(cx)).await {
            lines.push(match line {
                Line::Whole(line) => String::from_utf8_lossy(&line).into_owned(),
                Line::Overlong { head, tail } => {
                    format!(
                        "{} … {}",
                        String::from_utf8_lossy(&head),
                        String::from_utf8_lossy(&tail)
                    )
                }
            });
        }
        lines
    }

    #[tokio::test]
    async fn whole_lines_in_any_pieces() {
        for buffer in [1, 2, 3, 64] {
            assert_eq!(
                lines("ab\n\ncde\nf", 3, buffer).await,
                ["ab", "", "cde", "f"]
            );
        }
    }

    #[tokio::test]
    async fn an_overlong_line_keeps_its_ends_and_costs_only_itself() {
        let (a, b) = ("a".repeat(KEPT_OF_OVERLONG), "b".repeat(KEPT_OF_OVERLONG));
        let text = format!("{a}{}{b}\nok\n", "-".repeat(5_000));
        for buffer in [1, 7, 64, 100_000] {
            assert_eq!(
                lines(&text, 2_000, buffer).await,
                [format!("{a} … {b}"), "ok".to_owned()]
            );
        }
    }

    #[test]
    fn ids() {
        let check = |head: &str, tail: &str, id: Option<u64>| {
            assert_eq!(
                id_of_overlong(head.as_bytes(), tail.as_bytes(), |id| id < 10),
                id
            );
        };
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"#, "", Some(7));
        check(
            r#"{"result":{"id":99,"#,
            r#"}],"jsonrpc":"2.0","id" : 3}"#,
            Some(3),
        );
        check(r#"{"id":1"#, r#""id":2}"#, None);
        check("xxx", "yyy", None);
    }
}
