//! JSON-RPC messages of bounded size with a `Content-Length` header, the format of TypeScript's
//! `--api --async`.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

use crate::error::Failure;
use crate::scan::one_line;

/// Maximum bytes of a received message.
const MAX_MESSAGE: usize = 16 << 20;
/// Maximum bytes of a message's headers.
const MAX_HEADERS: u64 = 4096;

/// A received message.
#[derive(Debug, Deserialize)]
pub(crate) struct Incoming<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    /// `None` for a response.
    #[serde(default)]
    pub(crate) method: Option<String>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) error: Option<Value>,
}

/// Reads the next message.
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
    // It grows with the received bytes, not with the announced length.
    let mut message = Vec::new();
    let read = from
        .take(length as u64)
        .read_to_end(&mut message)
        .await
        .unwrap_or(0);
    if read < length {
        return Err(Failure::Died);
    }
    Ok(message)
}

/// A message with its header.
pub(crate) fn framed(json: &str) -> Vec<u8> {
    format!("Content-Length: {}\r\n\r\n{json}", json.len()).into_bytes()
}

/// The error for an invalid message. `fault` may quote the process, so it is cut to one line.
pub(crate) fn protocol(fault: &str) -> Failure {
    Failure::Protocol(one_line(fault).chars().take(200).collect())
}
