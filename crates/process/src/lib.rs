//! Internal crate of Callgate: starting processes that end with the host.
//!
//! Servers and the type checker are children of the host's. However the host
//! ends, none of them may stay behind.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};

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

/// The most threads that start processes. Starting one is mostly waiting until
/// the new process has been given its program, which on a busy machine takes
/// long: one thread after the other would have the last of many servers wait for
/// all before it.
const MAX_SPAWNERS: usize = 32;

/// Starts the command on a thread that lives as long as the host. The parent
/// death signal is tied to the starting thread, and a runtime may end its
/// threads at any time.
async fn on_lasting_thread(command: Command) -> io::Result<Child> {
    static SPAWNERS: OnceLock<Spawners> = OnceLock::new();

    let (reply, started) = oneshot::channel();
    SPAWNERS.get_or_init(Spawners::new).take(Order {
        command,
        runtime: Handle::current(),
        reply,
    })?;
    started.await.map_err(|_| gone())?
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts processes is gone")
}

struct Order {
    command: Command,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// The threads that start processes; as many as there were ever orders at once.
struct Spawners {
    orders: mpsc::Sender<Order>,
    shared: Arc<Shared>,
}

struct Shared {
    taken: Mutex<mpsc::Receiver<Order>>,
    /// Orders that wait or are being carried out.
    open: AtomicUsize,
    threads: Mutex<usize>,
}

impl Spawners {
    fn new() -> Self {
        let (orders, taken) = mpsc::channel();
        let shared = Arc::new(Shared {
            taken: Mutex::new(taken),
            open: AtomicUsize::new(0),
            threads: Mutex::new(0),
        });
        Self { orders, shared }
    }

    fn take(&self, order: Order) -> io::Result<()> {
        let open = self.shared.open.fetch_add(1, Ordering::Relaxed) + 1;
        let ready = self.thread_for(open);
        let taken = ready.and_then(|()| self.orders.send(order).map_err(|_| gone()));
        if taken.is_err() {
            self.shared.open.fetch_sub(1, Ordering::Relaxed);
        }
        taken
    }

    /// Starts one more thread if there are fewer than open orders.
    fn thread_for(&self, open: usize) -> io::Result<()> {
        let threads = &self.shared.threads;
        let mut threads = threads.lock().unwrap_or_else(PoisonError::into_inner);
        if *threads >= open.min(MAX_SPAWNERS) {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let started = std::thread::Builder::new()
            .name("callgate-spawn".to_owned())
            .spawn(move || shared.carry_out());
        match started {
            Ok(_detached) => *threads += 1,
            // Those that there are do it, one order after the other.
            Err(_) if *threads > 0 => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Shared {
    fn carry_out(&self) {
        loop {
            // Whoever waits for an order keeps the others from it, who would only
            // wait, too.
            let order = {
                let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
                taken.recv()
            };
            // The sender is as lasting as this thread.
            let Ok(mut order) = order else { return };
            let _runtime = order.runtime.enter();
            let _caller_gone = order.reply.send(order.command.spawn());
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
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
