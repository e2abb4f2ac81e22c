//! What the client of a session has said that holds for all of its requests.

use std::sync::{Mutex, PoisonError};

use callgate::LogLevel;
use rmcp::model::ErrorData;
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

use super::client::{Client, Way};
use super::roots::Roots;

/// Where a request of 2026-07-28 says which log messages its client hears.
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// What holds for a session. Requests that are on their own say it themselves.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    pub(crate) roots: Roots,
    logs: Mutex<Option<LogLevel>>,
}

impl Standing {
    /// The client hears log messages from this level on.
    pub(crate) fn hear(&self, least: LogLevel) {
        *self.logs.lock().unwrap_or_else(PoisonError::into_inner) = Some(least);
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
