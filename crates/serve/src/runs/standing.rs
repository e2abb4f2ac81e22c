//! What the client of a session has said that holds for all of its requests.

use std::sync::{Arc, Mutex, PoisonError};

use callgate::LogLevel;
use rmcp::model::ErrorData;
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use serde_json::Value;

use super::client::{Client, Way};
use super::roots::Roots;
use crate::service::ComingGate;

/// Where a request of 2026-07-28 says which log messages its client hears.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// What holds for a session. Requests that are on their own say it themselves.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    pub(crate) roots: Arc<Roots>,
    logs: Mutex<Option<LogLevel>>,
}

impl Standing {
    /// Of a session whose client names these folders.
    pub(crate) fn new(roots: Arc<Roots>) -> Self {
        Self {
            roots,
            logs: Mutex::default(),
        }
    }

    /// The client hears log messages from this level on.
    pub(crate) fn hear(&self, least: LogLevel) {
        *self.logs.lock().unwrap_or_else(PoisonError::into_inner) = Some(least);
    }

    /// The session has begun: servers are told of the folders of its client, where that is
    /// for this one to say.
    pub(crate) async fn begun(&self, context: &NotificationContext<RoleServer>, gate: ComingGate) {
        let client = Client::of_session(&context.peer);
        self.roots.follow(&client, gate).await;
    }

    /// The client says that its folders have changed. That has been noted already where it
    /// is alone, before later requests: they may overtake this.
    pub(crate) async fn roots_changed(
        &self,
        context: &NotificationContext<RoleServer>,
        gate: ComingGate,
    ) {
        match self.roots.is_alone() {
            true => self.begun(context, gate).await,
            false => self.roots.changed(),
        }
    }

    /// The client of a request.
    ///
    /// # Errors
    ///
    /// That it names a level of log messages that is none.
    pub(crate) fn client(&self, context: &RequestContext<RoleServer>) -> Result<Client, ErrorData> {
        let mut client = Client::of(context);
        client.logs = match client.way {
            Way::Requests => *self.logs.lock().unwrap_or_else(PoisonError::into_inner),
            Way::Rounds => match context.meta.get(LOG_LEVEL) {
                None => None,
                Some(level) => Some(level_of(level)?),
            },
        };
        Ok(client)
    }
}

/// The level that a client names.
///
/// # Errors
///
/// That there is none of this name.
pub(crate) fn level_of(level: &Value) -> Result<LogLevel, ErrorData> {
    let named = level.as_str().unwrap_or_default().parse();
    named.map_err(|unknown: callgate::UnknownLogLevel| {
        ErrorData::invalid_params(unknown.to_string(), None)
    })
}
