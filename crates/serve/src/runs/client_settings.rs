//! Settings that a session's client makes once for all its requests.

use std::sync::{Arc, Mutex, PoisonError};

use callgate::caller::LogLevel;
use rmcp::model::ErrorData;
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use serde_json::Value;

use super::client::{AskedBy, Client};
use super::roots::{PendingGate, Roots};

/// The member of `_meta` with the log level of a request of 2026-07-28.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The settings of one session. Stateless requests carry their own.
#[derive(Debug, Default)]
pub(crate) struct ClientSettings {
    pub(crate) roots: Arc<Roots>,
    log_level: Mutex<Option<LogLevel>>,
}

impl ClientSettings {
    /// The settings of a session whose client names these folders.
    pub(crate) fn new(roots: Arc<Roots>) -> Self {
        Self {
            roots,
            log_level: Mutex::default(),
        }
    }

    /// Sets the lowest level of log messages that the client wants.
    pub(crate) fn set_log_level(&self, least: LogLevel) {
        *self
            .log_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(least);
    }

    /// Tells servers the client's folders at the beginning of a session.
    pub(crate) async fn session_begun(
        &self,
        context: &NotificationContext<RoleServer>,
        gate: PendingGate,
    ) {
        let client = Client::of_session(&context.peer);
        self.roots.follow(&client, gate).await;
    }

    /// Handles the client's message that its folders have changed.
    pub(crate) async fn roots_changed(
        &self,
        context: &NotificationContext<RoleServer>,
        gate: PendingGate,
    ) {
        if self.roots.is_only_client {
            // The transport has noted the change already.
            self.session_begun(context, gate).await;
        } else {
            self.roots.changed();
        }
    }

    /// The client of a request.
    pub(crate) fn client(&self, context: &RequestContext<RoleServer>) -> Result<Client, ErrorData> {
        let mut client = Client::of_request(context);
        client.logs = match client.asked_by {
            AskedBy::Requests => *self
                .log_level
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
            AskedBy::Answers => context.meta.get(LOG_LEVEL).map(log_level).transpose()?,
        };
        Ok(client)
    }
}

/// The level that a client names.
pub(crate) fn log_level(level: &Value) -> Result<LogLevel, ErrorData> {
    let named = level.as_str().unwrap_or_default().parse();
    named.map_err(|unknown: callgate::caller::UnknownLogLevel| {
        ErrorData::invalid_params(unknown.to_string(), None)
    })
}
