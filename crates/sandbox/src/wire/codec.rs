//! Frames to bytes, and bytes to frames.

use std::marker::PhantomData;

use bytes::{Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::text::Text;

/// The version of the frames. Host and worker are built from the same sources, so any other
/// version is an error.
pub(super) const VERSION: u8 = 2;

/// Bytes of the length before the body of a frame.
const LENGTH_BYTES: usize = 4;

/// Why bytes are not a frame, or a frame cannot be sent.
///
/// Each of these ends the connection: the place where the next frame begins is unknown after it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The frame is longer than the limit of this connection.
    #[error("frame of {size} bytes is over the limit of {limit} bytes")]
    TooLarge {
        /// Bytes of the body, as announced or as encoded.
        size: usize,
        /// Bytes that a body may have.
        limit: usize,
    },
    /// The other end speaks another version.
    #[error("frame of version {0}, where version {VERSION} is spoken")]
    Version(u8),
    /// The header is not a frame of this direction.
    #[error("frame with a broken header: {0}")]
    Header(#[from] postcard::Error),
    /// Bytes follow the header of a frame without a payload.
    #[error("frame has {0} bytes after its last field")]
    Trailing(usize),
    /// The payload is not UTF-8.
    #[error("the text of a frame is not UTF-8")]
    Utf8,
}

/// A frame of one direction.
pub trait Frame: Serialize + DeserializeOwned {
    /// The long text of the frame, which travels behind the header; `None` for a frame without one.
    fn payload(&mut self) -> Option<&mut Text>;

    /// The frame as bytes, with a body of at most `max_frame` bytes.
    fn encode(mut self, max_frame: usize) -> Result<Encoded, WireError> {
        let payload = self.payload().map(std::mem::take).unwrap_or_default();
        let mut head = vec![0; LENGTH_BYTES];
        head.push(VERSION);
        let mut head = postcard::to_extend(&self, head)?;
        let size = (head.len() - LENGTH_BYTES).saturating_add(payload.len());
        let limit = max_frame.min(u32::MAX as usize);
        match u32::try_from(size) {
            Ok(length) if size <= limit => {
                if let Some(prefix) = head.first_chunk_mut() {
                    *prefix = length.to_le_bytes();
                }
                let payload = payload.into_bytes();
                Ok(Encoded { head, payload })
            }
            _ => Err(WireError::TooLarge { size, limit }),
        }
    }

    /// The frame in this body, which is everything after the length.
    fn decode(mut body: Bytes) -> Result<Self, WireError> {
        let (version, header) = body
            .split_first()
            .ok_or(postcard::Error::DeserializeUnexpectedEnd)?;
        if *version != VERSION {
            return Err(WireError::Version(*version));
        }
        let (mut frame, rest) = postcard::take_from_bytes::<Self>(header)?;
        let rest = rest.len();
        match frame.payload() {
            Some(payload) => {
                let bytes = body.split_off(body.len() - rest);
                *payload = Text::from_utf8(bytes).ok_or(WireError::Utf8)?;
            }
            None if rest > 0 => return Err(WireError::Trailing(rest)),
            None => {}
        }
        Ok(frame)
    }
}

/// A frame as bytes, in two pieces, so that a long payload is not copied.
#[derive(Debug, Clone)]
pub struct Encoded {
    head: Vec<u8>,
    payload: Bytes,
}

impl Encoded {
    /// The two pieces, in order. The second can be empty.
    #[must_use]
    pub fn slices(&self) -> [&[u8]; 2] {
        [&self.head, &self.payload]
    }

    /// Bytes of the whole frame, with its length.
    #[expect(clippy::len_without_is_empty, reason = "a frame is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len().saturating_add(self.payload.len())
    }
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

impl<F: Frame> Decoder<F> {
    /// A decoder that refuses frames whose body is longer than `max_frame` bytes.
    #[must_use]
    pub fn new(max_frame: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            max_frame,
            frames: PhantomData,
        }
    }

    /// Changes the limit for the body of the frames that follow.
    pub fn set_max_frame(&mut self, max_frame: usize) {
        self.max_frame = max_frame;
    }

    /// The buffer to append received bytes to, with room for at least `at_least` bytes and for the
    /// rest of the frame that has begun.
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
                let mut frame = self.buffer.split_to(LENGTH_BYTES + body).freeze();
                F::decode(frame.split_off(LENGTH_BYTES)).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Length of the body of the frame that the buffer begins with.
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
