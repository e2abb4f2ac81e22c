//! Internal crate of Callgate: starting processes that end with the host.
//!
//! Servers and the type checker are children of the host's. However the host
//! ends, none of them may stay behind.

use std::io;
use std::sync::{OnceLock, mpsc};

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Starts the command. Its process is killed when this one ends, in whatever
/// way; on Linux only.
///
/// Must be called within a tokio runtime.
///
/// # Errors
///
/// What starting it gives, and [`io::ErrorKind::Other`] if no thread can be
/// started for it.
pub async fn spawn(command: Command) -> io::Result<Child> {
    #[cfg(target_os = "linux")]
    let command = dying_with_parent(command);
    on_lasting_thread(command).await
}

/// Starts the command on a thread that lives as long as the host. The parent
/// death signal is tied to the starting thread, and a runtime may end its
/// threads at any time.
async fn on_lasting_thread(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<mpsc::Sender<Order>> = OnceLock::new();
    let gone = || io::Error::other("the thread that starts processes is gone");

    let spawner = match SPAWNER.get() {
        Some(spawner) => spawner,
        None => {
            let (orders, taken) = mpsc::channel::<Order>();
            std::thread::Builder::new()
                .name("callgate-spawn".to_owned())
                .spawn(move || {
                    for mut order in taken {
                        let _runtime = order.runtime.enter();
                        let _caller_gone = order.reply.send(order.command.spawn());
                    }
                })?;
            // If another thread was quicker, this one's channel closes and its
            // thread ends.
            SPAWNER.get_or_init(|| orders)
        }
    };
    let (reply, started) = oneshot::channel();
    let order = Order {
        command,
        runtime: Handle::current(),
        reply,
    };
    spawner.send(order).map_err(|_| gone())?;
    started.await.map_err(|_| gone())?
}

struct Order {
    command: Command,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// Has the kernel kill the process when the thread that starts it ends.
#[cfg(target_os = "linux")]
fn dying_with_parent(mut command: Command) -> Command {
    let host = std::process::id();
    let set_up = move || {
        // SAFETY: prctl with these arguments reads no memory of ours, and it
        // and getppid may be called between fork and exec.
        let (set, parent) = unsafe {
            (
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0),
                libc::getppid(),
            )
        };
        if set != 0 {
            return Err(io::Error::last_os_error());
        }
        // The host may have died before the signal was set.
        if u32::try_from(parent) != Ok(host) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: the closure only makes two system calls and builds errors from
    // numbers, which allocates nothing.
    unsafe {
        command.pre_exec(set_up);
    }
    command
}
