//! The V8 archive that the v8 crate's build script wants, and its possible
//! sources. Design: the first way that works is taken, and it is said which.

mod archive;
pub(crate) mod source;
mod supply;

pub(crate) use supply::supply;
