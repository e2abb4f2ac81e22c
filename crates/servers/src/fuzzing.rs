//! Entry point of the fuzz target for server messages.

use std::sync::Arc;

use callgate_auth::Redact;

use crate::tap::Tap;

/// Reads bytes as a message, or a batch of messages, of a server.
pub fn read_message(bytes: &[u8]) {
    let tap = Tap::new("s".into(), Redact::default(), Arc::default());
    tap.incoming(bytes, None);
    tap.too_long(bytes, bytes.len());
}
