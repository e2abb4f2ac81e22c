//! Internal crate of Callgate: the worker process with its V8 isolate, and the host side that starts
//! it, gives it one script, answers its calls and holds its limits.
//!
//! The wall is the process, not the isolate: a worker has an empty environment and one socket, and
//! whatever a script does to it, the host ends it by SIGKILL. The host keeps the only clock, bounds
//! everything a worker sends, and always comes back with one [`Ended`].
//!
//! The crate knows no MCP: a call is a function name and JSON text, and a [`CallHandler`] answers it.

mod base64;
mod ended;
mod host;
mod job;
mod layer;
mod ops;
#[doc(hidden)]
pub mod wire;
mod worker;

pub use base64::is_base64;
pub use callgate_script::Stretch;
pub use ended::{Captured, End, Ended, Returned, WhichLimit};
pub use host::{
    CallHandler, Jail, JailOptions, Launcher, LauncherOptions, MachineCode, MemoryBudget,
    MemoryShare, NotRead, Reserved, ScriptCall, TakenMemory, Undelivered, WorkerProgram,
    forbid_inspection, machine_memory,
};
pub use job::{ERROR_BYTES, Job, Limits};
pub use layer::JailLayer;
pub use wire::{ErrorClass, LeftTimer, ScriptException, Thrown};
#[doc(hidden)]
pub use worker::native_worker_main_if_requested;
pub use worker::worker_main_if_requested;
