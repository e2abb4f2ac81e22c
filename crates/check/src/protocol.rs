//! JSON-RPC messages with a `Content-Length` header, of bounded size, as
//! TypeScript's `--api --async` writes and reads them.

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

use crate::error::Failure;

/// Bytes of one message that is read.
const MAX_MESSAGE: usize = 16 << 20;
/// Bytes of a message's headers.
const MAX_HEADERS: u64 = 4096;

/// A message that came.
#[derive(Debug, Deserialize)]
pub(crate) struct Incoming<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    /// For a question; an answer has none.
    #[serde(default)]
    pub(crate) method: Option<String>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) error: Option<Refusal>,
}

/// The reasons why a question was not answered.
#[derive(Debug, Deserialize)]
pub(crate) struct Refusal {
    #[serde(default)]
    pub(crate) message: String,
}

/// The next message's text.
pub(crate) async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> Result<Vec<u8>, Failure> {
    let mut length = None;
    let mut headers = from.take(MAX_HEADERS);
    loop {
        let mut line = Vec::new();
        let read = headers.read_until(b'\n', &mut line).await;
        if read.is_err() || line.is_empty() && headers.limit() > 0 {
            return Err(Failure::Died);
        }
        if !line.ends_with(b"\n") {
            return Err(protocol("a header that does not end"));
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let length = length.ok_or_else(|| protocol("a message without a length"))?;
    if length > MAX_MESSAGE {
        return Err(protocol(&format!("a message of {length} bytes")));
    }
    // It grows with what comes, not with what the header promises.
    let mut message = Vec::new();
    let read = from
        .take(length as u64)
        .read_to_end(&mut message)
        .await
        .unwrap_or(0);
    match read == length {
        true => Ok(message),
        false => Err(Failure::Died),
    }
}

/// A message with its header.
pub(crate) fn framed(json: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{json}", json.len()).into_bytes()
}

/// The error for an answer of another form.
pub(crate) fn protocol(what: &str) -> Failure {
    // It quotes the process, so it is bounded and one line.
    let shown: String = what
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(200)
        .collect();
    Failure::Protocol(shown)
}
