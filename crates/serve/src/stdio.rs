//! MCP over standard input and output: a line is a message.
//!
//! rmcp writes the answers and serves the session. Lines are read here, so that an unreadable
//! request gets an answer with its `id`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use rmcp::ServiceExt as _;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta as _, JsonRpcMessage,
    ServerJsonRpcMessage,
};
use rmcp::service::{RoleServer, ServerInitializeError};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite, Empty};
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};
use tokio_util::sync::CancellationToken;

use crate::face::Service;
use crate::message::{BYTE_ORDER_MARK, Malformed, envelope, text, wrong_params_of};

/// The reason why serving failed, for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ServeError(pub(crate) String);

/// The limit of a line, in bytes.
const MAX_LINE: usize = 16 << 20;
/// The time for the last answers after the client has closed its input.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Serves one client until either of its ends closes.
pub(crate) async fn serve(
    service: &Arc<Service>,
    from: impl AsyncRead + Send + Unpin + 'static,
    to: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), ServeError> {
    let served = match service.session().serve(Stdio::new(from, to)).await {
        Ok(session) => match session.waiting().await {
            Ok(_quit) => Ok(()),
            Err(error) => Err(ServeError(format!(
                "the MCP connection ended abnormally: {error}"
            ))),
        },
        Err(ServerInitializeError::InitializeFailed(error)) => Err(ServeError(format!(
            "the MCP handshake failed: {}",
            error.message
        ))),
        // The client closed the connection before its first request.
        Err(_) => Ok(()),
    };
    service.runs.end().await;
    served
}

struct Stdio<R, W: AsyncWrite> {
    lines: FramedRead<R, AnyDelimiterCodec>,
    output: AsyncRwTransport<RoleServer, Empty, W>,
    /// True after the first request of a session, or the first stateless request. Before it, rmcp
    /// accepts requests only.
    has_begun: bool,
    /// Cancelled when the client no longer reads.
    broken: CancellationToken,
}

impl<R, W> Stdio<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn new(from: R, to: W) -> Self {
        let lines = AnyDelimiterCodec::new_with_max_length(b"\n".into(), b"\n".into(), MAX_LINE);
        Self {
            lines: FramedRead::new(from, lines),
            output: AsyncRwTransport::new(tokio::io::empty(), to),
            has_begun: false,
            broken: CancellationToken::new(),
        }
    }

    /// Reads a line; `None` if it is empty or ignored.
    fn message(&mut self, line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Malformed> {
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let envelope = envelope("the line", line)?;
        let read = callgate_schema::read(text("the line", line)?);
        let message = match (read, envelope.id, envelope.method) {
            (Ok(message), ..) => message,
            (Err(_), id @ Some(_), Some(method)) => {
                return Err(Malformed::new(wrong_params_of(&method, line)).to(id));
            }
            // An answer to our request with this id: it ends the request.
            (Err(_), id @ Some(_), None) => {
                let wrong = "the answer does not match its request";
                JsonRpcMessage::error(ErrorData::invalid_request(wrong, None), id)
            }
            (Err(error), None, _) => {
                tracing::warn!(%error, "a message of the client was ignored");
                return Ok(None);
            }
        };
        self.has_begun |= match &message {
            JsonRpcMessage::Request(request) => match &request.request {
                ClientRequest::InitializeRequest(_) => true,
                ClientRequest::DiscoverRequest(_) => false,
                request => request.get_meta().protocol_version().is_some(),
            },
            _ if !self.has_begun => {
                tracing::debug!("a message before the first request was ignored");
                return Ok(None);
            }
            _ => true,
        };
        Ok(Some(message))
    }

    /// Answers a message that is not served, in a task, because the client may read slowly.
    fn refuse(&mut self, Malformed { code, id, message }: Malformed) {
        tracing::warn!(reason = %message, "a message of the client was refused");
        let error = ErrorData::new(code, message, None);
        tokio::spawn(self.send(ServerJsonRpcMessage::error(error, id)));
    }
}

impl<R, W> Transport<RoleServer> for Stdio<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (sent, broken) = (self.output.send(message), self.broken.clone());
        async move { sent.await.inspect_err(|_| broken.cancel()) }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let line = tokio::select! {
                line = self.lines.next() => line?,
                () = self.broken.cancelled() => return None,
            };
            let message = match line {
                Ok(line) => self.message(&line),
                Err(AnyDelimiterCodecError::MaxChunkLengthExceeded) => {
                    // After an error, the reader returns `None` once and then continues.
                    let _ = self.lines.next().await;
                    Err(Malformed::new(format!(
                        "the message has more than {MAX_LINE} bytes"
                    )))
                }
                Err(AnyDelimiterCodecError::Io(error)) => {
                    tracing::warn!(%error, "nothing can be read from the client");
                    return None;
                }
            };
            match message {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(malformed) => self.refuse(malformed),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // A client that reads nothing blocks the output.
        match tokio::time::timeout(LAST_ANSWERS, self.output.close()).await {
            Ok(closed) => closed,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use callgate::Gate;
    use futures::FutureExt as _;
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;
    use crate::config::ServeConfig;
    use crate::runs::{AnyClient, Outside};

    /// Sends the lines to a server whose gate is never made, and reads its answers.
    async fn answers(lines: &[String]) -> Vec<Value> {
        let gate = futures::future::pending::<Result<Arc<Gate>, ()>>().boxed();
        let service = Service::new(
            gate,
            None,
            ServeConfig::default(),
            Some(AnyClient::default()),
            Outside::default(),
        );
        let (mut to, from_client) = duplex(1 << 16);
        let (to_client, mut from) = duplex(1 << 16);
        let served = tokio::spawn(async move { serve(&service, from_client, to_client).await });
        for line in lines {
            to.write_all(format!("{line}\n").as_bytes())
                .await
                .expect("room");
        }
        drop(to);
        let mut text = String::new();
        from.read_to_string(&mut text).await.expect("UTF-8");
        served.await.expect("no panic").expect("a clean end");
        let lines = text.lines();
        lines
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }

    fn request(id: u64, method: &str, params: Value) -> String {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    }

    fn initialize(id: u64) -> String {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } });
        request(id, "initialize", params)
    }

    #[tokio::test]
    async fn unreadable_requests_are_answered() {
        let early = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#;
        let mut lines = vec![early.to_owned(), initialize(0)];
        let code = |code: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"run_script","arguments":{{"code":{code}}}}}}}"#
            )
        };
        lines.push(code(&("[".repeat(130) + &"]".repeat(130))));
        lines.push(code(&format!("\"{}\"", "x".repeat(17 << 20))));
        lines.push("[]".to_owned());
        lines.push(request(2, "ping", json!({})));
        let answers = answers(&lines).await;
        assert_eq!(answers[0]["id"], 0, "{answers:?}");
        let of = |id: Option<u64>| {
            let of = answers
                .iter()
                .filter(|answer| answer.get("id") == id.map(Value::from).as_ref());
            of.map(|answer| answer["error"]["message"].as_str().unwrap_or("ok"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of(Some(1)),
            ["the message is nested deeper than 100 levels"]
        );
        assert_eq!(of(None)[0], "the message has more than 16777216 bytes");
        assert!(of(None)[1].starts_with("batches are not part of MCP"));
        assert_eq!(of(Some(2)), ["ok"]);
    }
}
