//! Entry point of the fuzz target for server messages.

use std::sync::Arc;

use callgate_auth::Redact;
use tokio::sync::broadcast;

use crate::tap::Tap;

/// Reads bytes as a message, or a batch of messages, of a server.
pub fn read_message(bytes: &[u8]) {
    let (pages, _) = broadcast::channel(1);
    let tap = Tap::new("s".into(), Redact::default(), pages, Arc::default());
    tap.incoming(bytes, None);
    tap.too_long(bytes, bytes.len());
}
