//! The key `asking` of the configuration.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::webhook_config::WebhookConfig;

/// `asking`: the ways by which questions about calls are answered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "Asking")]
#[non_exhaustive]
pub struct AskingOptions {
    /// The time that a question waits for an answer. Then the call is denied. Default: `10m`.
    pub expires: Duration,
    /// The ways to ask by, in their order. A way that has no answer passes the question on. Default:
    /// `["client", "record"]` for `serve` over stdio, and over HTTP with operators; `["client"]` over
    /// HTTP without; and `["terminal", "record"]` for `run` and `call` at a terminal.
    pub ways: Option<Vec<Way>>,
    /// An operator may answer the questions of runs of their own. Default: `true`.
    #[serde(rename = "self")]
    pub own_runs: bool,
    /// The program that answers by the way `webhook`.
    pub webhook: Option<WebhookConfig>,
}

impl Default for AskingOptions {
    fn default() -> Self {
        Self {
            expires: Duration::from_secs(600),
            ways: None,
            own_runs: true,
            webhook: None,
        }
    }
}

/// A way by which a question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Way {
    /// A form of the MCP client.
    Client,
    /// The terminal of `callgate run` or `callgate call`.
    Terminal,
    /// An answer in the store, such as from `callgate questions`.
    Record,
    /// A request to a program.
    Webhook,
}

impl Way {
    /// The name in the configuration and in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Terminal => "terminal",
            Self::Record => "record",
            Self::Webhook => "webhook",
        }
    }
}
