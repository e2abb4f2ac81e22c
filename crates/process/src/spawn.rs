//! Starts processes on a thread that lives as long as the host.
//!
//! The kernel kills a child when the thread that started it ends, and a runtime may end its threads
//! at any time.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::command::Command;

/// A started process. Dropping it kills the process and its group, unless its exit status was
/// taken.
#[derive(Debug)]
pub struct Child {
    /// Its standard input, if that is a pipe.
    pub stdin: Option<ChildStdin>,
    /// Its standard output, if that is a pipe.
    pub stdout: Option<ChildStdout>,
    /// Its standard error, if that is a pipe.
    pub stderr: Option<ChildStderr>,
    process: tokio::process::Child,
    group: libc::pid_t,
}

/// A signal to a process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
}

impl Child {
    /// Starts a command. The calling thread must live as long as the host, and be within a runtime.
    fn start(command: Command) -> io::Result<Self> {
        let mut command = tokio::process::Command::from(command.into_std());
        let mut process = command.kill_on_drop(true).spawn()?;
        let group = process.id().and_then(|id| id.try_into().ok());
        Ok(Self {
            group: group.ok_or_else(|| io::Error::other("it has no process id"))?,
            stdin: process.stdin.take(),
            stdout: process.stdout.take(),
            stderr: process.stderr.take(),
            process,
        })
    }

    /// Its process id, which is also the id of its process group and its session; `None` once its
    /// exit status was taken.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Waits for its end and leaves its pipes open.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.process.wait().await
    }

    /// Sends a signal to its process group: to the processes that it started, too.
    pub fn signal_group(&self, signal: Signal) {
        let signal = match signal {
            Signal::Terminate => libc::SIGTERM,
            Signal::Kill => libc::SIGKILL,
        };
        // SAFETY: killpg takes numbers only. It fails if nothing is left of the group.
        unsafe { libc::killpg(self.group, signal) };
    }

    /// Its exit status, if it has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }

    /// Kills it and waits for its end.
    pub async fn kill(&mut self) -> io::Result<ExitStatus> {
        // Killing fails if it has ended already; then waiting returns its status.
        let _ = self.process.start_kill();
        self.process.wait().await
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

/// Starts a command. The kernel kills the process when the host ends, in whatever way. Must be
/// called within a tokio runtime that has IO enabled.
pub async fn spawn(command: Command) -> io::Result<Child> {
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

/// The sender of orders to the spawner thread, which starts with the first order.
fn orders() -> io::Result<mpsc::Sender<Order>> {
    static ORDERS: Mutex<Option<mpsc::Sender<Order>>> = Mutex::new(None);
    let mut orders = ORDERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(orders) = &*orders {
        return Ok(orders.clone());
    }
    let (sender, receiver) = mpsc::channel::<Order>();
    std::thread::Builder::new()
        .name("callgate-spawn".to_owned())
        .spawn(move || {
            for order in receiver {
                let _runtime = order.runtime.enter();
                // If the caller is gone, the child is dropped and so killed.
                let _ = order.reply.send(Child::start(order.command));
            }
        })?;
    Ok(orders.insert(sender).clone())
}

/// Waits until this process has no children, at most for this long. The last call of a host that
/// ends: no child may be left as a zombie to the process that inherits it.
///
/// It takes the exit status of every child, so no other code can wait for one any more.
pub fn wait_for_children(limit: Duration) {
    let (alive, ended) = mpsc::channel::<()>();
    let waiting = std::thread::Builder::new().spawn(move || {
        let _alive = alive;
        // SAFETY: waitpid is given no place to write to.
        while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } > 0
            || io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    });
    if waiting.is_ok() {
        // It returns when the thread drops its end.
        let _ = ended.recv_timeout(limit);
    }
}
