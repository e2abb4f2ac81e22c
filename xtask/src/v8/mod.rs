//! The V8 archive for the v8 crate's build script. The first source that works is used and printed.

mod archive;
pub(crate) mod source;
mod supply;

pub(crate) use supply::supply;
