//! Starts TypeScript within kernel layers that allow it only its memory and three pipes.
//!
//! The process reads hostile text, so it is treated as taken over. Landlock allows it to execute its
//! own program and no other access to files; seccomp allows the system calls that the Go runtime
//! needs. Each layer alone keeps it from files and from the network. Only Linux has them; on other
//! systems TypeScript starts only if neither is required.

#[cfg_attr(not(target_os = "linux"), path = "confine/elsewhere.rs")]
mod layers;

use std::path::Path;
use std::process::{Command, Stdio};

use callgate_process::{Child, Resource};

use crate::error::Unavailable;

/// Maximum bytes of the process's data: a script can make a type of any size.
pub(crate) const MAX_MEMORY: u64 = 512 << 20;

/// Settings of the Go runtime: few garbage collections while little memory is used, because a check
/// is short; more of them near the limit, so that garbage does not reach it.
const ENVIRONMENT: &[(&str, &str)] = &[("GOGC", "400"), ("GOMEMLIMIT", "384MiB")];

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
    /// seccomp: only the system calls that the Go runtime needs.
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
    started.map_err(|error| {
        let why = callgate_process::start_failure(&error);
        Unavailable::Start(format!("{}: {why}", program.display()))
    })
}
