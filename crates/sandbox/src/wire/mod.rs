//! The frames between host and worker: their values, their bytes, and their reader.
//!
//! Frames of a worker are hostile input. The length of a frame is checked before memory is made
//! for it, every field is checked before it is used, and no input panics.
//!
//! A frame on the wire:
//!
//! ```text
//! u32 length of what follows, little endian | the frame's value in the format of `postcard`
//! ```

mod codec;
mod frames;
mod reader;
mod settings;
#[cfg(test)]
mod tests;

pub use codec::{Decoder, WireError, encode};
pub use frames::{
    Call, Done, ErrorClass, HostFrame, LeftTimer, LimitHit, OutputEnd, Read, Readable, Ready,
    Reply, ReturnValue, ScriptException, ScriptInput, Start, Thrown, WorkerFrame, WorkerLimits,
};
pub use reader::FrameReader;
pub use settings::{
    BUILD, Jit, REFUSED_CALL, STOP_SIGNAL, Settings, WORKER_ARGUMENT, WORKER_NAME, max_read_bytes,
};
