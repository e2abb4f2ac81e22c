//! Kernel layers around a child.

use std::io;

/// A resource of `setrlimit`.
#[cfg(target_os = "linux")]
pub type Resource = libc::__rlimit_resource_t;
/// A resource of `setrlimit`.
#[cfg(not(target_os = "linux"))]
pub type Resource = libc::c_int;

/// Kernel layers that a child enters just before its program starts.
#[derive(Default)]
pub struct Restrictions {
    /// The most of each resource; a lower limit of the host stays.
    pub limits: &'static [(Resource, u64)],
    #[cfg(target_os = "linux")]
    pub landlock: Option<landlock::RulesetCreated>,
    #[cfg(target_os = "linux")]
    pub seccomp: Option<seccompiler::BpfProgram>,
}

impl Restrictions {
    /// Restricts the calling process, once. It only makes system calls, so it can run in a fork of a
    /// process with many threads.
    pub fn enter(&mut self) -> io::Result<()> {
        for (resource, max) in self.limits {
            let mut limit = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: getrlimit writes the one struct that the pointer is to.
            check(unsafe { libc::getrlimit(*resource, &raw mut limit) })?;
            // Only root may raise a hard limit.
            limit.rlim_max = limit.rlim_max.min(*max);
            limit.rlim_cur = limit.rlim_max;
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
        give_up_capabilities()?;
        // An error with a message would allocate memory.
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

/// Makes the program start without the capabilities of the host.
///
/// The calling process keeps them until then: it may need them to open the program's folder.
#[cfg(target_os = "linux")]
fn give_up_capabilities() -> io::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    /// The highest number in the sets.
    const LAST: libc::c_ulong = 63;
    let header = [VERSION_3, 0];
    // Effective, permitted and inheritable ones, 32 numbers each.
    let mut sets = [[0_u32; 3]; 2];
    // SAFETY: the kernel reads the header and writes the sets, which have the form of this version.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw const header, &raw mut sets) })?;
    if sets.as_flattened().iter().all(|set| *set == 0) {
        return Ok(());
    }
    let mut may_drop = true;
    for number in 0..=LAST {
        // SAFETY: this prctl takes numbers only. It fails for unknown capabilities.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) };
        let error = io::Error::last_os_error().raw_os_error();
        may_drop &= dropped == 0 || error == Some(libc::EINVAL);
    }
    for [effective, permitted, inheritable] in &mut sets {
        *inheritable = 0;
        if !may_drop {
            (*effective, *permitted) = (0, 0);
        }
    }
    // SAFETY: the kernel reads both, as above.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const sets) })
}

pub(crate) fn check(returned: impl Into<i64>) -> io::Result<()> {
    if returned.into() < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
