//! Internal crate of Callgate: the host side of the sandbox. It starts worker processes, gives each
//! one script, answers its calls and enforces its limits. The worker program is `callgate-worker`.
//!
//! The wall is the process, not the isolate: a worker has an empty environment and one socket, and
//! whatever a script does to it, the host ends it by SIGKILL. The host keeps the only clock, bounds
//! everything a worker sends, and always returns one [`Ended`].
//!
//! The crate knows no MCP: a call is a function name and JSON text, and a [`CallHandler`] answers it.

mod base64;
mod ended;
mod host;
mod job;
mod layer;
#[doc(hidden)]
pub mod wire;

pub use base64::is_base64;
pub use callgate_script::MappedRange;
pub use ended::{Captured, End, Ended, Returned, WhichLimit};
pub use host::{
    CallHandler, Jail, JailOptions, Launcher, LauncherOptions, MachineCode, MemoryBudget,
    MemoryShare, ReadError, ReadyWorker, ScriptCall, StartError, TakenMemory, Undelivered,
    WorkerProgram, forbid_inspection, machine_memory,
};
pub use job::{ERROR_BYTES, Job, Limits};
pub use layer::JailLayer;
pub use wire::{ErrorClass, LeftTimer, ScriptException, ScriptInput, Thrown};
