//! Internal crate of Callgate: the frames between worker and host, with the one encoder and the
//! one decoder of them.
//!
//! The crate is pure: it turns values into bytes and bytes into values, and leaves reading and
//! writing to its callers. Frames that come from a worker are hostile input, so a decoder checks a
//! frame's length before it makes room for it, every field before it is used, and never panics.
//!
//! A frame on the wire, all numbers little endian:
//!
//! ```text
//! u32 length of what follows | u8 version | u8 kind | fields | payload
//! ```
//!
//! Strings inside the fields are a u32 length and that many bytes of UTF-8. The payload is the rest
//! of the frame: the one long text of its kind (source code, JSON text, console output). It is the
//! last thing in the frame so that it is handed on as it was received, without being copied.

mod decode;
mod encode;
mod error;
mod frames;
mod stretches;
mod text;

pub use decode::{Decoder, FromWire};
pub use encode::{Encoded, ToWire};
pub use error::WireError;
pub use frames::{
    Call, Done, ErrorClass, Exception, HostFrame, Level, LimitHit, Output, OutputEnd, Read,
    Readable, Ready, Reply, ReturnValue, Start, Stretch, Thrown, WhichLimit, WorkerFrame,
    WorkerLimits,
};
pub use stretches::{MAX_STRETCHES, author_place};
pub use text::Text;

/// The version of the frames. Both ends are built from the same source, so any other version is an
/// error and there is nothing to negotiate.
pub const VERSION: u8 = 1;

/// Bytes before the body of a frame: the length.
pub const LENGTH_BYTES: usize = 4;

/// Bytes of every body before its fields: version and kind.
pub const HEADER_BYTES: usize = 2;
