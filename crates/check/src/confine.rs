//! Starts TypeScript within kernel layers that leave it its memory and three pipes.
//!
//! The process reads hostile text, so it is treated as taken over. Landlock gives it no file but its
//! own program, and only to execute it; seccomp allows the system calls that the Go runtime needs.
//! Either layer alone keeps it from files and from the network. Both are Linux's; elsewhere TypeScript
//! starts only where neither is required.

#[cfg_attr(not(target_os = "linux"), path = "confine/elsewhere.rs")]
mod layers;

use std::path::Path;
use std::process::{Command, Stdio};

use callgate_process::{Child, Resource};

use crate::error::Unavailable;

/// Memory that it may take for its data: a script can make a type as large as it likes.
pub(crate) const MAX_MEMORY: u64 = 512 << 20;

/// Settings of the Go runtime. It collects less often while little is used, because a check is over
/// before most of what it made is garbage; and more often when it comes near the limit, so that it
/// does not reach the limit with garbage.
const ENVIRONMENT: &[(&str, &str)] = &[("GOGC", "400"), ("GOMEMLIMIT", "384MiB")];

/// Limits of the kernel's for the process.
const LIMITS: &[(Resource, u64)] = &[
    (libc::RLIMIT_CORE, 0),
    (libc::RLIMIT_FSIZE, 0),
    (libc::RLIMIT_NOFILE, 64),
    (libc::RLIMIT_DATA, MAX_MEMORY),
];

/// Kernel layers around the TypeScript process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Landlock: no files, no network.
    pub landlock: LayerUse,
    /// seccomp: no system calls but those that the Go runtime needs.
    pub seccomp: LayerUse,
}

/// Use of one layer of a [`Confinement`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LayerUse {
    /// Without it, TypeScript is not started.
    #[default]
    Required,
    /// It is used where the kernel has it.
    Optional,
    /// It is not used.
    Off,
}

/// Starts the program with piped streams and an empty environment. Dropping the child kills it.
pub(crate) async fn start(
    program: &Path,
    args: &[&str],
    confinement: Confinement,
) -> Result<Child, Unavailable> {
    let mut command = Command::new(program);
    command.args(args).current_dir("/");
    command.env_clear().envs(ENVIRONMENT.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::null());
    let restrictions = layers::restrictions(confinement, program)?;
    let started = callgate_process::spawn(command, Some(restrictions)).await;
    started.map_err(|error| Unavailable::Start(format!("{}: {error}", program.display())))
}
