//! Entry point of the fuzz target for client messages.

/// Reads bytes as a message of a client.
pub fn read_message(bytes: &[u8]) {
    drop(crate::message::envelope("the message", bytes));
}
