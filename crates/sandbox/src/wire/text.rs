//! The long text of a frame, which is handed on without being copied.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A shared, immutable piece of UTF-8: a string, or a slice of the buffer it was received in.
///
/// Cloning makes no copy. A `Text` keeps the whole buffer alive that it is a slice of, so a small
/// text that is kept for long should become a `String`.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Text(Bytes);

impl Text {
    /// The text in these bytes, or `None` if they are not UTF-8.
    #[must_use]
    pub fn from_utf8(bytes: Bytes) -> Option<Self> {
        std::str::from_utf8(&bytes).is_ok().then_some(Self(bytes))
    }

    /// The text as a string slice.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // SAFETY: every constructor takes a `str` or has checked the bytes, and `Bytes` is
        // immutable.
        unsafe { std::str::from_utf8_unchecked(&self.0) }
    }

    /// The bytes of the text.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// The text as an owned string; copies unless this is the only owner of a whole buffer.
    #[must_use]
    pub fn into_string(self) -> String {
        // SAFETY: the bytes are UTF-8, see `as_str`.
        unsafe { String::from_utf8_unchecked(Vec::from(self.0)) }
    }
}

/// Writes nothing: the text is the payload behind the header.
impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

/// Reads nothing and makes an empty text, which [`Frame::decode`](super::Frame::decode) replaces by
/// the payload.
impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self::default())
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Bytes::from(text.into_bytes()))
    }
}

impl From<Box<str>> for Text {
    fn from(text: Box<str>) -> Self {
        Self::from(String::from(text))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
