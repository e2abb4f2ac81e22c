//! The host's view of a worker's jail: which kernel layers are required and which are in force.

use std::fmt;
use std::io;

use crate::wire::Ready;
use serde::Serialize;

use crate::layer::JailLayer;
use crate::wire::{Jit, Settings};

/// The jail that workers get.
///
/// The default uses every layer that the kernel has, and requires Landlock and seccomp: a worker
/// that lacks one of them gets no script.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JailOptions {
    /// Layers that are used where the kernel has them.
    pub layers: Vec<JailLayer>,
    /// Layers without which no script runs.
    pub required: Vec<JailLayer>,
}

impl Default for JailOptions {
    fn default() -> Self {
        Self {
            layers: JailLayer::ALL.to_vec(),
            required: vec![JailLayer::Landlock, JailLayer::Seccomp],
        }
    }
}

impl JailOptions {
    /// No kernel layer: the worker is a process with an empty environment, resource limits and one
    /// socket, and native code in it can do what the user can.
    pub fn process_only() -> Self {
        Self {
            layers: Vec::new(),
            required: Vec::new(),
        }
    }

    /// The layers to use, as bits.
    pub(super) fn layers(&self) -> u8 {
        let layers = self.layers.iter();
        layers.fold(0, |all, layer| all | layer.bit())
    }
}

/// The kernel layers in force around a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Jail {
    /// ABI version of Landlock; `None` where Landlock is not in force.
    pub landlock: Option<u8>,
    /// True if the seccomp filters are in force.
    pub seccomp: bool,
    /// Namespaces of the worker's own: some of `user`, `net`, `ipc` and `uts`.
    pub namespaces: Vec<&'static str>,
    /// The way in which V8 makes machine code.
    pub machine_code: MachineCode,
}

/// The ways in which V8 makes machine code in a worker. With each of them, no memory becomes
/// executable while a script runs: V8 gets its pages for code before that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum MachineCode {
    /// A compiler writes code under a memory protection key. That protects against a script that
    /// can write to memory, not against native code.
    Keys,
    /// A compiler writes code to pages that stay writable: the processor has no protection keys.
    Mprotect,
    /// V8 only interprets.
    None,
}

impl fmt::Display for Jail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.landlock {
            Some(abi) => write!(f, "landlock (ABI {abi})")?,
            None => f.write_str("no landlock")?,
        }
        f.write_str(if self.seccomp {
            ", seccomp"
        } else {
            ", no seccomp"
        })?;
        if self.namespaces.is_empty() {
            f.write_str(", no namespaces")
        } else {
            write!(f, ", namespaces ({})", self.namespaces.join(" "))
        }
    }
}

impl Jail {
    /// True if a layer is in force.
    pub fn has(&self, layer: JailLayer) -> bool {
        match layer {
            JailLayer::Landlock => self.landlock.is_some(),
            JailLayer::Seccomp => self.seccomp,
            JailLayer::Namespaces => !self.namespaces.is_empty(),
        }
    }
}

/// Keeps other processes of the same user from reading this one's memory and environment, and from
/// tracing it (`PR_SET_DUMPABLE`; Linux only). Children are not affected.
///
/// A host calls this first, because it holds the credentials. Afterwards it makes no core dumps, and
/// a debugger needs the rights of root.
pub fn forbid_inspection() -> io::Result<()> {
    // SAFETY: a system call with numbers.
    #[cfg(target_os = "linux")]
    if unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The layers in force around a worker that reports that it is ready.
pub(super) fn check(
    ready: &Ready,
    worker: u32,
    settings: Settings,
    required: &[JailLayer],
) -> Result<Jail, String> {
    const NAMESPACES: [&str; 4] = ["user", "net", "ipc", "uts"];
    let made = |(bit, _): &(usize, &str)| ready.namespaces & (1 << bit) != 0;
    let namespaces = NAMESPACES.into_iter().enumerate().filter(made);
    let in_force = Jail {
        landlock: (ready.landlock > 0).then_some(ready.landlock),
        seccomp: ready.seccomp,
        namespaces: namespaces.map(|(_, name)| name).collect(),
        machine_code: match settings.jit {
            Jit::Off => MachineCode::None,
            _ if ready.protection_keys => MachineCode::Keys,
            _ => MachineCode::Mprotect,
        },
    };
    for layer in required {
        if !in_force.has(*layer) {
            let name = layer.name();
            let lack = if cfg!(target_os = "linux") {
                format!("the kernel gives it no {name}")
            } else {
                format!("{name} is not available on {}", std::env::consts::OS)
            };
            return Err(format!(
                "{lack}, which `sandbox.require` of the configuration asks for; use a kernel that \
                 has {name}, or take it off that list"
            ));
        }
    }
    check_status(&format!("/proc/{worker}/status"), in_force.seccomp)?;
    Ok(in_force)
}

/// Compares the worker's report with the kernel's.
///
/// The kernel puts a filter on all threads or on none, so the main thread is enough. Reading the
/// status of each thread would cost milliseconds: the kernel then takes long to remove the process.
/// Where `/proc` is hidden from the host, the worker's report is trusted, because it has run no script
/// yet.
fn check_status(status: &str, seccomp: bool) -> Result<(), String> {
    let Ok(status) = std::fs::read_to_string(status) else {
        return Ok(());
    };
    let has = |line| status.lines().any(|found| found == line);
    // A process of the same user can attach before the worker forbids it.
    if status.contains("\nTracerPid:") && !has("TracerPid:\t0") {
        return Err(
            "another process traces it (ptrace) and can change what it does; run without a \
             debugger, and end processes that attach to others"
                .to_owned(),
        );
    }
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2"] {
        if seccomp && !has(line) {
            return Err(format!(
                "it is not in the jail: the kernel does not report {line:?}"
            ));
        }
    }
    Ok(())
}
