//! Frames to bytes, and bytes to frames.

use std::marker::PhantomData;

use bytes::BytesMut;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of the length before the body of a frame.
const LENGTH_BYTES: usize = 4;

/// The reasons why bytes are not a frame, or a frame cannot be sent.
///
/// Each of these ends the connection: afterwards the start of the next frame is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The frame is longer than the limit of this connection.
    #[error("frame of {size} bytes is over the limit of {limit} bytes")]
    TooLarge {
        /// Bytes of the body, as announced or as encoded.
        size: usize,
        limit: usize,
    },
    /// The body is not a frame of this direction.
    #[error("broken frame: {0}")]
    Broken(#[from] postcard::Error),
    /// Bytes follow the value of a frame.
    #[error("frame has {0} bytes after its last field")]
    Trailing(usize),
}

/// A frame as bytes, with a body of at most `max_frame` bytes.
pub fn encode(frame: &impl Serialize, max_frame: usize) -> Result<Vec<u8>, WireError> {
    let mut bytes = postcard::to_extend(frame, vec![0; LENGTH_BYTES])?;
    let (size, limit) = (bytes.len() - LENGTH_BYTES, max_frame.min(u32::MAX as usize));
    match (u32::try_from(size), bytes.first_chunk_mut()) {
        (Ok(length), Some(prefix)) if size <= limit => *prefix = length.to_le_bytes(),
        _ => return Err(WireError::TooLarge { size, limit }),
    }
    Ok(bytes)
}

/// Splits received bytes into frames of one direction.
///
/// Received bytes are appended to [`space`](Self::space); [`next`](Self::next) takes frames out.
/// Memory is bounded by `max_frame` and the bytes that are appended at once.
#[derive(Debug)]
pub struct Decoder<F> {
    buffer: BytesMut,
    max_frame: usize,
    frames: PhantomData<fn() -> F>,
}

impl<F: DeserializeOwned> Decoder<F> {
    /// A decoder that refuses frames whose body is longer than `max_frame` bytes.
    pub fn new(max_frame: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            max_frame,
            frames: PhantomData,
        }
    }

    pub fn set_max_frame(&mut self, max_frame: usize) {
        self.max_frame = max_frame;
    }

    /// The buffer to append received bytes to, with room for at least `at_least` bytes and for the
    /// rest of the current frame.
    pub fn space(&mut self, at_least: usize) -> &mut BytesMut {
        let missing = match self.announced() {
            Ok(Some(body)) => (LENGTH_BYTES + body).saturating_sub(self.buffer.len()),
            _ => 0,
        };
        self.buffer.reserve(missing.max(at_least));
        &mut self.buffer
    }

    /// The next frame, or `None` until more bytes come. Must not be called after an error.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would not end at `None`"
    )]
    pub fn next(&mut self) -> Result<Option<F>, WireError> {
        match self.announced()? {
            Some(body) if self.buffer.len() >= LENGTH_BYTES + body => {
                let bytes = self.buffer.split_to(LENGTH_BYTES + body);
                let body = bytes.get(LENGTH_BYTES..).unwrap_or_default();
                match postcard::take_from_bytes(body)? {
                    (frame, []) => Ok(Some(frame)),
                    (_, rest) => Err(WireError::Trailing(rest.len())),
                }
            }
            _ => Ok(None),
        }
    }

    /// Length of the body of the buffer's first frame.
    fn announced(&self) -> Result<Option<usize>, WireError> {
        let Some(prefix) = self.buffer.first_chunk() else {
            return Ok(None);
        };
        let (size, limit) = (u32::from_le_bytes(*prefix) as usize, self.max_frame);
        if size > limit {
            return Err(WireError::TooLarge { size, limit });
        }
        Ok(Some(size))
    }
}
