//! The jail: the kernel limits that a worker puts around itself before it is given a script.
//!
//! V8 cannot be the wall around a script, so a worker is treated as taken over by native code. In the
//! jail, such code has its memory, the processor, and one socket to the host.
//!
//! Only Linux has the steps 2 to 4 and 6. On other systems [`Ready`] reports that no layer is in
//! force.
//!
//! | order | step | removed |
//! |---|---|---|
//! | 1 | close descriptors, `setsid`, death signal, resource limits, undumpable, no capabilities, `no_new_privs` | inherited access, terminals, outliving the host, gaining rights |
//! | 2 | namespaces of its own, where the kernel allows | sight of the machine's network, IPC objects and host name |
//! | 3 | Landlock with every right handled and no rule | files, TCP, abstract sockets, signals to others |
//! | 4 | seccomp, start-up filter | every system call that starting V8 does not need |
//! | 5 | V8, its threads and the isolate are made | |
//! | 6 | unmap unused address space; seccomp, run-time filter, on all threads | what only the start-up needed, new threads, and new machine code |
//!
//! Steps 1 to 4 run on one thread, before V8 and tokio exist. A failure in step 1 ends the worker.
//! [`Ready`] reports to the host which of the steps 2 to 6 are in force; the host decides whether
//! that is enough, and sends no script otherwise.

mod access;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod filters;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod kernel;

use std::fs::File;
use std::io::Read as _;

use callgate_sandbox::wire::Ready;

pub(super) use access::wait_for_stop_signal;

use callgate_sandbox::JailLayer;
use callgate_sandbox::wire::{Jit, Settings};

/// A jail that is not shut yet: the steps 1 to 4 are done.
#[derive(Debug)]
pub(super) struct Jail {
    in_force: Ready,
    /// The address space of the process. Opened while files can be opened; only Linux has it.
    maps: Option<File>,
}

impl Jail {
    /// Does the steps 1 to 4. Must be called on the only thread of the process.
    pub(super) fn enter(settings: Settings, host: u32) -> Result<Self, String> {
        let has = |layer: JailLayer| settings.layers & layer.bit() != 0;
        // Keeps the socket, the null device and the pipe for crash messages.
        kernel::close_from(3)?;
        kernel::ask_for_death_signal()?;
        access::drop_inherited_access(host)?;
        let maps = kernel::open_maps()?;
        // When the machine's memory runs out, the kernel kills workers first. A worker's own limits
        // hold without this.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        let namespaces = if has(JailLayer::Namespaces) {
            kernel::unshare_namespaces()
        } else {
            0
        };
        // After the namespaces: a new user namespace comes with capabilities.
        kernel::give_up_rights()?;
        let landlock = if has(JailLayer::Landlock) {
            kernel::restrict_by_landlock()
        } else {
            0
        };
        let seccomp = has(JailLayer::Seccomp) && {
            kernel::name_refused_calls()?;
            kernel::filter_start_up()
        };
        Ok(Self {
            in_force: Ready {
                landlock,
                seccomp,
                namespaces,
                protection_keys: settings.jit == Jit::Keys && kernel::has_protection_keys(),
                ..Ready::default()
            },
            maps,
        })
    }

    /// Does the last step. All threads of the worker exist, and V8 has its machine code.
    pub(super) fn shut(mut self) -> Ready {
        let mut maps = String::new();
        if let Some(mut file) = self.maps.take() {
            // After an error, the limits that the host sets are too low for any script.
            let _ = file.read_to_string(&mut maps);
        }
        let (space, data) = kernel::release_reserved(&maps);
        (self.in_force.space_bytes, self.in_force.data_bytes) = (space as u64, data as u64);
        if self.in_force.seccomp {
            self.in_force.seccomp = kernel::filter_run_time();
        }
        self.in_force
    }
}
