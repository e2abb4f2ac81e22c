//! What fuzz targets start: the reading of messages from a client.

/// Reads bytes as a message of a client.
pub fn read_message(bytes: &[u8]) {
    drop(crate::message::envelope("the message", bytes));
}
