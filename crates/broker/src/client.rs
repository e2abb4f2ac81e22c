//! What the broker answers to a server's own requests: pings yes, the rest no.
#![expect(
    deprecated,
    reason = "roots and logging stay until the older protocol revisions go"
)]

use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ListRootsRequestMethod, ListRootsResult,
    LoggingMessageNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};

/// The client side of one connection. Sampling and elicitation are declined by
/// rmcp's defaults; roots are declined here, because none are announced.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) server: Arc<str>,
    pub(crate) version: ProtocolVersion,
}

/// Who the broker says it is.
pub(crate) fn implementation() -> Implementation {
    Implementation::new("callgate", env!("CARGO_PKG_VERSION"))
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::new(ClientCapabilities::default(), implementation());
        config.protocol_version = self.version.clone();
        config
    }

    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListRootsRequestMethod>())
    }

    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        tracing::debug!(
            server = %self.server,
            level = ?message.level,
            logger = message.logger,
            data = %message.data,
            "a server logs"
        );
    }
}
