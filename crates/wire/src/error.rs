//! What can be wrong with a frame.

/// Why bytes are not a frame, or a frame cannot be sent.
///
/// Every one of these ends the connection: after it there is no knowing where the next frame
/// begins.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The frame is longer than the limit of this connection.
    #[error("frame of {size} bytes is over the limit of {limit} bytes")]
    TooLarge {
        /// Bytes of the body, as announced or as encoded.
        size: u64,
        /// Bytes that a body may have.
        limit: u64,
    },
    /// The other end speaks another version.
    #[error("frame of version {found}, where version {expected} is spoken")]
    Version {
        /// The version in the frame.
        found: u8,
        /// The only version that is understood.
        expected: u8,
    },
    /// The kind byte names no frame of this direction.
    #[error("frame of unknown kind {kind:#04x}")]
    Kind {
        /// The kind byte.
        kind: u8,
    },
    /// The frame ends in the middle of a field.
    #[error("frame ends inside its field `{field}`")]
    Short {
        /// The field that is not whole.
        field: &'static str,
    },
    /// Bytes are left over after the last field.
    #[error("frame has {extra} bytes after its last field")]
    Trailing {
        /// How many bytes.
        extra: usize,
    },
    /// A text is not UTF-8.
    #[error("field `{field}` is not UTF-8")]
    Utf8 {
        /// The field.
        field: &'static str,
    },
    /// A field holds a number that stands for nothing.
    #[error("field `{field}` holds {value}, which stands for nothing")]
    Value {
        /// The field.
        field: &'static str,
        /// What it holds.
        value: u64,
    },
}
