//! Kernel layers around a child.

use std::io;

/// A resource of `setrlimit`.
#[cfg(target_os = "linux")]
pub type Resource = libc::__rlimit_resource_t;
/// A resource of `setrlimit`.
#[cfg(not(target_os = "linux"))]
pub type Resource = libc::c_int;

/// Kernel layers that a child puts around itself just before its program starts.
#[derive(Default)]
pub struct Restrictions {
    /// The most of each resource.
    pub limits: &'static [(Resource, u64)],
    /// Access to files and to the network.
    #[cfg(target_os = "linux")]
    pub landlock: Option<landlock::RulesetCreated>,
    /// The system calls that are allowed.
    #[cfg(target_os = "linux")]
    pub seccomp: Option<seccompiler::BpfProgram>,
}

impl Restrictions {
    /// Restricts the calling process, once. It makes system calls only, so it can run in a fork of a
    /// process with many threads.
    pub fn enter(&mut self) -> io::Result<()> {
        for (resource, most) in self.limits {
            let limit = libc::rlimit {
                rlim_cur: *most,
                rlim_max: *most,
            };
            // SAFETY: setrlimit reads the one struct that the pointer is to.
            check(unsafe { libc::setrlimit(*resource, &raw const limit) })?;
        }
        #[cfg(target_os = "linux")]
        self.enter_layers()?;
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn enter_layers(&mut self) -> io::Result<()> {
        // SAFETY: this prctl takes numbers only.
        check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
        // An error with a text would allocate memory.
        let refused = || io::Error::from_raw_os_error(libc::EPERM);
        if let Some(ruleset) = self.landlock.take() {
            ruleset.restrict_self().map_err(|_| refused())?;
        }
        if let Some(filter) = &self.seccomp {
            seccompiler::apply_filter(filter).map_err(|_| refused())?;
        }
        Ok(())
    }
}

pub(crate) fn check(returned: libc::c_int) -> io::Result<()> {
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
