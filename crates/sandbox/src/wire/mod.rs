//! The frames between host and worker: their values, their bytes, and their reader.
//!
//! Frames of a worker are hostile input. The length of a frame is checked before memory is made
//! for it, every field is checked before it is used, and no input panics.
//!
//! A frame on the wire:
//!
//! ```text
//! u32 length of what follows, little endian | u8 version | header | payload
//! ```
//!
//! The header is the frame's value in the format of `postcard`. The payload is the rest of the
//! frame: the one long text of its kind (source code, JSON text, console output). It stands at the
//! end, so that it is sent and received without being copied.

mod codec;
mod frames;
pub(crate) mod positions;
pub(crate) mod reader;
#[cfg(test)]
mod tests;
mod text;

pub use codec::{Decoder, Encoded, Frame, WireError};
pub use frames::{
    Call, Done, ErrorClass, Exception, HostFrame, LeftTimer, LimitHit, OutputEnd, Read, Readable,
    Ready, Reply, ReturnValue, Start, Thrown, WorkerFrame, WorkerLimits,
};
pub use positions::Stretch;
pub use text::Text;
