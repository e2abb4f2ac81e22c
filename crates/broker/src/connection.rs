//! One server that is up: requests to it, and what became of them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
    ClientRequest, ErrorData, JsonObject, ListToolsRequest, PaginatedRequestParams, RequestId,
    ServerPeerInfo,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, RunningService, ServiceError};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Mutex;

use crate::client::Client;
use crate::process::Process;
use crate::results::{Answer, Results};
use crate::secrets::Secrets;

/// How long a lost connection's process has to say how it ended, for the
/// message.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// How long closing an HTTP session may take at shutdown.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// Bounds on what a server may list.
const MAX_PAGES: usize = 1_000;
const MAX_TOOLS: usize = 10_000;
const MAX_LIST_BYTES: usize = 64 << 20;

/// Why a request has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server refused it.
    Refused(ErrorData),
    /// The connection is gone.
    Lost(String),
    /// No answer in time.
    Timeout(Duration),
    /// The answer is over this limit, in bytes.
    TooLarge(usize),
    /// The answer makes no sense.
    Malformed(String),
}

/// A server that is up.
#[derive(Debug)]
pub(crate) struct Connection {
    server: Arc<str>,
    peer: Peer<RoleClient>,
    service: Mutex<Option<RunningService<RoleClient, Client>>>,
    results: Arc<Results>,
    process: Option<Process>,
    junk: Arc<AtomicU64>,
    secrets: Secrets,
}

/// The tools of a server, as it wrote them, and what was odd about the list.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<Value>,
    pub(crate) warnings: Vec<String>,
}

impl Connection {
    pub(crate) fn new(
        server: Arc<str>,
        service: RunningService<RoleClient, Client>,
        results: Arc<Results>,
        process: Option<(Process, Arc<AtomicU64>)>,
        secrets: Secrets,
    ) -> Self {
        let (process, junk) = process.map_or((None, Arc::default()), |(p, junk)| (Some(p), junk));
        let peer = service.peer().clone();
        Self {
            server,
            peer,
            service: Mutex::new(Some(service)),
            results,
            process,
            junk,
            secrets,
        }
    }

    /// What the server said of itself.
    pub(crate) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    /// The end of its stderr.
    pub(crate) fn stderr(&self) -> String {
        self.process.as_ref().map_or_else(String::new, |process| {
            self.secrets.redact(&process.stderr_tail())
        })
    }

    /// Lines on its standard output that were no messages, so far.
    pub(crate) fn junk_lines(&self) -> u64 {
        self.junk.load(Ordering::Relaxed)
    }

    /// Calls a tool and returns the `result` member of the answer.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        limit: Duration,
    ) -> Result<Box<RawValue>, Failure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.request(
            ClientRequest::CallToolRequest(CallToolRequest::new(params)),
            limit,
        )
        .await
    }

    /// Lists every page of tools. Each request may take up to `limit`.
    pub(crate) async fn list_tools(&self, limit: Duration) -> Result<Listing, Failure> {
        let mut listing = Listing::default();
        let mut cursor = None;
        let mut seen = HashSet::new();
        let mut bytes = 0;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let page = match self.request(request, limit).await {
                Ok(page) => page,
                Err(Failure::Refused(error)) if error.code.0 == -32601 && seen.is_empty() => {
                    listing
                        .warnings
                        .push("it has no tools: it does not know tools/list".to_owned());
                    return Ok(listing);
                }
                Err(failure) if listing.tools.is_empty() => return Err(failure),
                Err(failure) => {
                    let reason = self.describe(&failure);
                    listing
                        .warnings
                        .push(format!("its list of tools breaks off: {reason}"));
                    return Ok(listing);
                }
            };
            let next = match listing.take_page(&page) {
                Ok(next) => next,
                Err(reason) if listing.tools.is_empty() => return Err(Failure::Malformed(reason)),
                Err(reason) => {
                    listing
                        .warnings
                        .push(format!("its list of tools breaks off: {reason}"));
                    return Ok(listing);
                }
            };
            let Some(next) = next else {
                return Ok(listing);
            };
            bytes += page.get().len();
            if listing.tools.len() >= MAX_TOOLS || bytes >= MAX_LIST_BYTES {
                let used = listing.tools.len();
                listing.warnings.push(format!(
                    "its list of tools is too long; only the first {used} are used"
                ));
                return Ok(listing);
            }
            if !seen.insert(next.clone()) {
                listing.warnings.push(
                    "its list of tools repeats a cursor; what came before is used".to_owned(),
                );
                return Ok(listing);
            }
            cursor = Some(next);
        }
        listing.warnings.push(format!(
            "only the first {MAX_PAGES} pages of its tools are used"
        ));
        Ok(listing)
    }

    /// Ends the connection and the process.
    pub(crate) async fn shut_down(&self) {
        let service = self.service.lock().await.take();
        if let Some(mut service) = service
            && let Err(error) = service.close_with_timeout(CLOSE_PATIENCE).await
        {
            tracing::debug!(server = %self.server, %error, "a connection did not close cleanly");
        }
        if let Some(process) = &self.process {
            process.shut_down().await;
        }
    }

    /// One line about a failure, with no secrets in it.
    pub(crate) fn describe(&self, failure: &Failure) -> String {
        let text = match failure {
            Failure::Refused(error) => format!("{} (code {})", error.message, error.code.0),
            Failure::Lost(reason) => reason.clone(),
            Failure::Timeout(limit) => format!("no answer within {} ms", limit.as_millis()),
            Failure::TooLarge(limit) => too_large(*limit),
            Failure::Malformed(reason) => format!("the answer is malformed: {reason}"),
        };
        self.secrets.redact(&text)
    }

    async fn request(
        &self,
        request: ClientRequest,
        limit: Duration,
    ) -> Result<Box<RawValue>, Failure> {
        let sent = self
            .peer
            .send_request_with_option(request, PeerRequestOptions::no_options());
        let handle = match sent.await {
            Ok(handle) => handle,
            Err(error) => return Err(self.failure(error, false).await),
        };
        let mut pending = Pending {
            connection: self,
            id: handle.id.clone(),
            cancel: true,
        };
        let answered = tokio::time::timeout(limit, handle.await_response()).await;
        let Ok(answered) = answered else {
            // Dropping `pending` tells the server.
            return Err(Failure::Timeout(limit));
        };
        pending.cancel = false;
        let answer = self.results.take(&pending.id);
        match (answered, answer) {
            (_, Some(Answer::Result(result))) => Ok(result),
            (_, Some(Answer::TooLarge(limit))) => Err(Failure::TooLarge(limit)),
            (_, Some(Answer::Malformed(reason))) => Err(Failure::Malformed(reason)),
            (Ok(_), None) => Err(Failure::Malformed(
                "the answer is to another request".to_owned(),
            )),
            (Err(error), None) => Err(self.failure(error, true).await),
        }
    }

    async fn failure(&self, error: ServiceError, in_flight: bool) -> Failure {
        match error {
            ServiceError::McpError(mut error) => {
                error.message = self.secrets.message(&error.message).into();
                if let Some(data) = &mut error.data {
                    self.secrets.redact_value(data);
                }
                Failure::Refused(error)
            }
            ServiceError::Timeout { timeout } => Failure::Timeout(timeout),
            ServiceError::UnexpectedResponse => {
                Failure::Malformed("it is no answer to this request".to_owned())
            }
            ServiceError::TransportSend(error) if self.process.is_none() => {
                let reason = crate::http::describe(error.error.as_ref(), &self.secrets);
                Failure::Lost(format!("the server cannot be reached: {reason}"))
            }
            _ => Failure::Lost(self.last_words(in_flight).await),
        }
    }

    /// What to say of a connection that is gone.
    async fn last_words(&self, in_flight: bool) -> String {
        let when = if in_flight {
            "during the call"
        } else {
            "before the call"
        };
        let Some(process) = &self.process else {
            return format!("the server closed the connection {when}");
        };
        let mut words = match process.ended(LAST_WORDS).await {
            Some(status) => format!("the server ended with {status} {when}"),
            None => format!("the server closed its standard output {when}"),
        };
        let stderr = self.stderr();
        if !stderr.is_empty() {
            words.push_str("; its last words on stderr: ");
            words.push_str(&stderr);
        }
        words
    }
}

/// What to say of an answer over the limit.
pub(crate) fn too_large(limit: usize) -> String {
    format!(
        "the answer is over the limit of {limit} bytes; ask the tool for less (a filter, a page), \
         or raise the server's result limit"
    )
}

impl Listing {
    /// Takes a page's tools and returns the cursor of the next one.
    fn take_page(&mut self, page: &RawValue) -> Result<Option<String>, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page<'a> {
            #[serde(borrow)]
            tools: Vec<&'a RawValue>,
            #[serde(default)]
            next_cursor: Value,
        }
        let page: Page<'_> = serde_json::from_str(page.get()).map_err(|error| error.to_string())?;
        for tool in page.tools {
            match serde_json::from_str(tool.get()) {
                Ok(tool) => self.tools.push(tool),
                Err(error) => {
                    let number = self.tools.len() + 1;
                    self.warnings
                        .push(format!("its tool {number} is dropped: {error}"));
                }
            }
        }
        match page.next_cursor {
            Value::Null => Ok(None),
            // Some servers write their absent cursor so.
            Value::String(cursor) if cursor.is_empty() => Ok(None),
            Value::String(cursor) => Ok(Some(cursor)),
            _ => Err("nextCursor is no string".to_owned()),
        }
    }
}

/// A request in flight. Dropped before its answer is there, it forgets the
/// request and tells the server not to go on with it.
struct Pending<'a> {
    connection: &'a Connection,
    id: RequestId,
    cancel: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.connection.results.take(&self.id);
        if !self.cancel {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let params = CancelledNotificationParam::new(
            Some(self.id.clone()),
            Some("the caller no longer waits for it".to_owned()),
        );
        let peer = self.connection.peer.clone();
        runtime.spawn(async move {
            let _gone = peer
                .send_notification(CancelledNotification::new(params).into())
                .await;
        });
    }
}
