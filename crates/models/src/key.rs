//! The API key of an endpoint.

use std::fmt;

/// The key of an endpoint. Its `Debug` form does not tell it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// This text.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}
