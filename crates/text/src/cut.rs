//! The size of a message about a failure.

/// The longest message about a failure, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// Cuts a message about a failure to [`MAX_MESSAGE_BYTES`], and marks the cut.
pub fn cut_message(message: &mut String) {
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        message.push('…');
    }
}
