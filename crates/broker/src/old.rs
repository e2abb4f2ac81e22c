//! rmcp's client, which still carries the connections over HTTP.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
    ClientRequest, ListToolsRequest, PaginatedRequestParams, RequestId, ServerPeerInfo,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, RunningService, ServiceError};
use serde_json::value::RawValue;
use tokio::sync::Mutex;

use crate::client::Client;
use crate::failure::Failure;
use crate::link::LinkError;
use crate::results::{Answer, Results};
use crate::secrets::Secrets;

/// How long closing an HTTP session may take at shutdown.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Old {
    server: Arc<str>,
    peer: Peer<RoleClient>,
    service: Mutex<Option<RunningService<RoleClient, Client>>>,
    results: Arc<Results>,
    secrets: Secrets,
}

impl Old {
    pub(crate) fn new(
        server: Arc<str>,
        service: RunningService<RoleClient, Client>,
        results: Arc<Results>,
        secrets: Secrets,
    ) -> Self {
        let peer = service.peer().clone();
        Self {
            server,
            peer,
            service: Mutex::new(Some(service)),
            results,
            secrets,
        }
    }

    pub(crate) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.peer.peer_info()
    }

    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &str,
        limit: Duration,
    ) -> Result<Box<RawValue>, Failure> {
        let arguments = serde_json::from_str(arguments)
            .map_err(|error| Failure::Malformed(error.to_string()))?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.request(
            ClientRequest::CallToolRequest(CallToolRequest::new(params)),
            limit,
        )
        .await
    }

    pub(crate) async fn list(
        &self,
        cursor: Option<String>,
        limit: Duration,
    ) -> Result<Box<RawValue>, Failure> {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        self.request(request, limit).await
    }

    pub(crate) async fn close(&self) {
        let service = self.service.lock().await.take();
        if let Some(mut service) = service
            && let Err(error) = service.close_with_timeout(CLOSE_PATIENCE).await
        {
            tracing::debug!(server = %self.server, %error, "a connection did not close cleanly");
        }
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
            Err(error) => return Err(self.failure(error, false)),
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
            (Err(error), None) => Err(self.failure(error, true)),
        }
    }

    fn failure(&self, error: ServiceError, in_flight: bool) -> Failure {
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
            ServiceError::TransportSend(error) => {
                let reason = crate::http::describe(error.error.as_ref(), &self.secrets);
                let reason = format!("the server cannot be reached: {reason}");
                Failure::Lost(LinkError {
                    kind: crate::link::LinkErrorKind::Unreachable,
                    reason,
                    sent: false,
                })
            }
            _ => Failure::Lost(LinkError::closed(
                "the server closed the connection",
                in_flight,
            )),
        }
    }
}

/// A request in flight. Dropped before its answer is there, it forgets the
/// request and tells the server not to go on with it.
struct Pending<'a> {
    connection: &'a Old,
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
