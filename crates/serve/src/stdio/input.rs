//! What comes from the client: lines of bounded length.

use rmcp::model::RequestId;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// The longest `id` that is looked for in a line that is too long.
const MAX_ID: usize = 1024;

const BUFFER: usize = 64 << 10;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Lines, one by one.
pub(super) struct Lines<R> {
    from: BufReader<R>,
    most: usize,
    line: Vec<u8>,
    /// What is known of a line that is too long, of which nothing else is kept.
    long: Option<Members>,
}

#[derive(Debug)]
pub(super) enum Line {
    /// One that has something on it.
    Whole(Vec<u8>),
    /// It had too many bytes. The `id`, if it was a request.
    TooLong(Option<Value>),
    /// There are no more.
    End,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// With so many bytes at most.
    pub(super) fn new(from: R, most: usize) -> Self {
        Self {
            from: BufReader::with_capacity(BUFFER, from),
            most,
            line: Vec::new(),
            long: None,
        }
    }

    /// The next line. When this is given up, nothing is lost.
    pub(super) async fn next(&mut self) -> Line {
        loop {
            let bytes = match self.from.fill_buf().await {
                Ok(bytes) => bytes,
                Err(error) => {
                    tracing::warn!(%error, "nothing can be read from the client");
                    return Line::End;
                }
            };
            if bytes.is_empty() {
                if !self.line.is_empty() || self.long.is_some() {
                    tracing::warn!("the client's last line has no end, and was ignored");
                }
                return Line::End;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or(bytes);
            match &mut self.long {
                Some(members) => members.read(part),
                None if part.len() > self.most - self.line.len() => {
                    let mut members = Members::default();
                    members.read(&std::mem::take(&mut self.line));
                    members.read(part);
                    self.long = Some(members);
                }
                None => self.line.extend_from_slice(part),
            }
            let taken = part.len() + usize::from(end.is_some());
            self.from.consume(taken);
            if end.is_none() {
                continue;
            }
            if let Some(members) = self.long.take() {
                return Line::TooLong(members.id());
            }
            let mut line = std::mem::take(&mut self.line);
            if line.starts_with(BYTE_ORDER_MARK) {
                line.drain(..BYTE_ORDER_MARK.len());
            }
            if !line.trim_ascii().is_empty() {
                return Line::Whole(line);
            }
        }
    }
}

/// Looks through an object, which need not be kept for it, for the members that tell
/// whether it is a request, and which.
#[derive(Debug, Default)]
struct Members {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    /// The name or value that is being read, if it is the object's own.
    token: Vec<u8>,
    name: Vec<u8>,
    id: Vec<u8>,
    has_method: bool,
}

impl Members {
    fn read(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.in_text {
                self.keep(byte);
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.in_text = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => {
                    self.in_text = true;
                    self.keep(byte);
                }
                b':' if self.depth == 1 => self.name = std::mem::take(&mut self.token),
                b',' if self.depth == 1 => self.member(),
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    if self.depth == 1 {
                        self.member();
                    }
                    self.depth = self.depth.saturating_sub(1);
                }
                _ if byte.is_ascii_whitespace() => {}
                _ => self.keep(byte),
            }
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < MAX_ID {
            self.token.push(byte);
        }
    }

    fn member(&mut self) {
        let value = std::mem::take(&mut self.token);
        match std::mem::take(&mut self.name).as_slice() {
            b"\"id\"" => self.id = value,
            b"\"method\"" => self.has_method = true,
            _ => {}
        }
    }

    /// The `id` of a request.
    fn id(&self) -> Option<Value> {
        let id: RequestId = serde_json::from_slice(&self.id).ok()?;
        self.has_method.then(|| id.into_json_value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of these bytes, in lines of 16 at most.
    async fn read(bytes: &[u8]) -> Vec<String> {
        let mut lines = Lines::new(bytes, 16);
        let mut read = Vec::new();
        loop {
            read.push(match lines.next().await {
                Line::Whole(line) => String::from_utf8_lossy(&line).into_owned(),
                Line::TooLong(id) => format!("too long: {id:?}"),
                Line::End => return read,
            });
        }
    }

    #[tokio::test]
    async fn lines() {
        let text = "\u{feff}one\r\n \r\n\n1234567890123456\n12345678901234567\nfour\nand a half";
        let expected = ["one\r", "1234567890123456", "too long: None", "four"];
        assert_eq!(read(text.as_bytes()).await, expected);
    }

    #[tokio::test]
    async fn ids_of_lines_that_are_too_long() {
        for (line, id) in [
            (
                r#"{"id":7,"method":"x","params":{"id":8}}"#,
                "Some(Number(7))",
            ),
            (
                r#"{"params":{"id":8},"method":"x", "id" : 7 }"#,
                "Some(Number(7))",
            ),
            (
                r#"{"method":"\"id\":8,","a":[",\"id\":8}"],"id":"a\"b"}"#,
                "Some(String(\"a\\\"b\"))",
            ),
            // An answer, a notification, and what is neither.
            (r#"{"id":7,"result":{"method":"x"}}"#, "None"),
            (r#"{"method":"id","params":{"id":8}}"#, "None"),
            (r#"[{"id":7,"method":"x"}]]]]]]]"#, "None"),
            (r#"{"id":1.5,"method":"x"},,,,,"#, "None"),
        ] {
            let expected = format!("too long: {id}");
            assert_eq!(
                read(format!("{line}\n").as_bytes()).await,
                [expected],
                "{line}"
            );
        }
    }
}
