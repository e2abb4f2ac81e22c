//! Starts processes on a thread that lives as long as the host.
//!
//! The kernel kills a child when the thread that started it ends, and an async runtime may end its
//! threads at any time.

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::restrictions::{Restrictions, check};

/// A started process. Dropping it kills the process and its group, unless its exit status was
/// collected.
#[derive(Debug)]
pub struct Child {
    process: tokio::process::Child,
    /// The id of its process group and its session: its process id at the start.
    group: libc::pid_t,
}

/// A signal to a process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Terminate = libc::SIGTERM as isize,
    Kill = libc::SIGKILL as isize,
}

impl Child {
    /// Sends a signal to the process and to the processes that it started.
    pub fn signal_group(&self, signal: Signal) {
        // SAFETY: killpg takes numbers only. It fails if no process of the group is left.
        unsafe { libc::killpg(self.group, signal as libc::c_int) };
    }
}

impl Deref for Child {
    type Target = tokio::process::Child;

    fn deref(&self) -> &Self::Target {
        &self.process
    }
}

impl DerefMut for Child {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.process
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.id().is_some() {
            self.signal_group(Signal::Kill);
        }
    }
}

/// An exit status in words, such as `exit code 3` or `signal 9`.
pub fn exit_text(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    }
}

struct Order {
    command: Command,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// Starts a command whose three streams are set, within these restrictions. If the kernel refuses a
/// restriction, the program is not started.
///
/// The process gets its own session, so that it has no terminal, and only the descriptors of its three
/// streams. The kernel kills it when the host ends, in every case. Must be called within a tokio
/// runtime that has IO enabled.
pub async fn spawn(mut command: Command, restrictions: Option<Restrictions>) -> io::Result<Child> {
    let host = std::process::id();
    // SAFETY: `detach` only makes system calls with numbers.
    unsafe {
        command.pre_exec(move || detach(host));
    }
    if let Some(mut restrictions) = restrictions {
        // SAFETY: `enter` only makes system calls and allocates nothing.
        unsafe {
            command.pre_exec(move || restrictions.enter());
        }
    }
    let (reply, started) = oneshot::channel();
    let order = Order {
        command,
        runtime: Handle::current(),
        reply,
    };
    let gone = || io::Error::other("the thread that starts processes is gone");
    orders()?.send(order).map_err(|_| gone())?;
    started.await.map_err(|_| gone())?
}

/// Starts a command. The calling thread must live as long as the host, within a runtime.
fn start(command: Command) -> io::Result<Child> {
    let mut command = tokio::process::Command::from(command);
    let process = command.kill_on_drop(true).spawn()?;
    let group = process.id().and_then(|id| id.try_into().ok());
    let group = group.ok_or_else(|| io::Error::other("it has no process id"))?;
    Ok(Child { process, group })
}

/// Gives the child its own session. On Linux, also makes it end with the host and closes the host's
/// descriptors in it.
#[cfg_attr(not(target_os = "linux"), expect(unused_variables))]
fn detach(host: u32) -> io::Result<()> {
    // SAFETY: these calls take numbers only.
    unsafe {
        check(libc::setsid())?;
    }
    #[cfg(target_os = "linux")]
    // SAFETY: these calls take numbers only.
    unsafe {
        // The kernel kills it when the thread that started it ends.
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
        // The host may have died before that.
        if u32::try_from(libc::getppid()) != Ok(host) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        // Kernels before 5.11 lack this call; they only close descriptors that are marked
        // close-on-exec.
        let (first, last, flag) = (3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
        libc::syscall(libc::SYS_close_range, first, last, flag);
    }
    Ok(())
}

/// The channel to the spawner thread, which starts with the first order.
fn orders() -> io::Result<mpsc::Sender<Order>> {
    static ORDERS: Mutex<Option<mpsc::Sender<Order>>> = Mutex::new(None);
    let mut orders = ORDERS.lock();
    if let Some(orders) = &*orders {
        return Ok(orders.clone());
    }
    let (sender, receiver) = mpsc::channel::<Order>();
    std::thread::Builder::new()
        .name("callgate-spawn".to_owned())
        .spawn(move || {
            for order in receiver {
                let _runtime = order.runtime.enter();
                // If the caller is gone, the child is dropped, which kills it.
                let _ = order.reply.send(start(order.command));
            }
        })?;
    Ok(orders.insert(sender).clone())
}

/// Waits until this process has no children, or until the limit. The last call of a host, so that no
/// zombie stays behind for the process that inherits it.
///
/// It collects the exit status of every child, so no other code can wait for one afterwards.
pub fn wait_for_children(limit: Duration) {
    let (alive, ended) = mpsc::channel::<()>();
    let waiting = std::thread::Builder::new().spawn(move || {
        let _alive = alive;
        // SAFETY: waitpid gets no pointer to write to.
        while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } > 0
            || io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    });
    if waiting.is_ok() {
        // It returns when the thread drops its end.
        let _ = ended.recv_timeout(limit);
    }
}
