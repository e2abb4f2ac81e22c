//! A child that runs, and what becomes of it.

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::spawners;

/// A child. Dropped before it was waited for, it is killed, and waited for by
/// another thread.
#[derive(Debug)]
pub(crate) struct Running {
    child: Unwaited,
    /// Readable once it has ended.
    ended: AsyncFd<OwnedFd>,
}

/// A process that is ours to wait for, once: until then its id is no other's.
#[derive(Debug)]
struct Unwaited {
    pid: libc::pid_t,
    status: Option<ExitStatus>,
}

impl Running {
    /// A child that was just started. Must be called within a runtime.
    pub(super) fn new(pid: libc::pid_t) -> io::Result<Self> {
        // Killed and waited for, should what follows fail.
        let child = Unwaited { pid, status: None };
        // SAFETY: pidfd_open with these arguments reads no memory of ours.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        let descriptor = RawFd::try_from(descriptor)
            .ok()
            .filter(|descriptor| *descriptor >= 0)
            .ok_or_else(io::Error::last_os_error)?;
        // SAFETY: it was just made, and nobody else has it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        // SAFETY: an owned descriptor is open, and the same, as long as it is owned.
        let ended = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
        let ended = ended.map_err(io::Error::from)?;
        Ok(Self { child, ended })
    }

    pub(crate) fn id(&self) -> Option<u32> {
        match self.child.status {
            Some(_) => None,
            None => u32::try_from(self.child.pid).ok(),
        }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill();
    }

    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.child.wait(libc::WNOHANG)? {
                return Ok(status);
            }
            self.ended.readable().await?.clear_ready();
        }
    }
}

impl Unwaited {
    fn wait(&mut self, options: libc::c_int) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            self.status = wait_for(self.pid, options)?;
        }
        Ok(self.status)
    }

    fn kill(&self) {
        if self.status.is_none() {
            // SAFETY: kill reads no memory of ours.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
            }
        }
    }
}

impl Drop for Unwaited {
    fn drop(&mut self) {
        // One that somebody else has waited for is gone, and so is its id.
        if !matches!(self.wait(libc::WNOHANG), Ok(None)) {
            return;
        }
        self.kill();
        // It may be about something in the kernel that cannot be broken off.
        let pid = self.pid;
        spawners::later(move || drop(wait_for(pid, 0)));
    }
}

/// Waits for a process; `None` if it runs, and is not to be waited for so long.
fn wait_for(pid: libc::pid_t, options: libc::c_int) -> io::Result<Option<ExitStatus>> {
    loop {
        let mut status = 0;
        // SAFETY: waitpid writes to the number that the pointer is to.
        match unsafe { libc::waitpid(pid, &raw mut status, options) } {
            0 => return Ok(None),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => return Ok(Some(ExitStatus::from_raw(status))),
        }
    }
}

/// Waits for a process that never became what it was to be.
pub(super) fn reap(pid: libc::pid_t) {
    let _status = wait_for(pid, 0);
}
