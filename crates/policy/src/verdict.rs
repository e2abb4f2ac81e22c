//! The verdict about a call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The verdict about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The call is sent.
    Allow,
    /// A person is asked; with no one to ask, the call is denied.
    Ask,
    /// The call is not sent.
    Deny,
}
