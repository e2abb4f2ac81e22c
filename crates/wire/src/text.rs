//! Text that moves from one owner to the next without being copied.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;

/// A shared, immutable piece of UTF-8: a string, or a slice of the buffer it was received in.
///
/// Cloning and taking it out of a received frame cost no copy. It keeps the buffer it is a slice of
/// alive, so a small text that is kept for long should be made a `String`.
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

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}
