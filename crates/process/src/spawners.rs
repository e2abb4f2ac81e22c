//! The threads that start processes. They live as long as the host: the signal that
//! kills a child is tied to the thread that started it, and a runtime may end its
//! threads at any time.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::{Child, Command, system};

/// The most threads. Starting a process is mostly waiting until it has been given
/// its program, which takes long on a machine or a disk that is busy.
const MAX_SPAWNERS: usize = 32;

/// Has such a thread start it.
pub(crate) async fn start(command: Command) -> io::Result<Child> {
    let (reply, started) = oneshot::channel();
    take(Order::Start {
        command,
        runtime: Handle::current(),
        reply,
    })?;
    started.await.map_err(|_| gone())?
}

/// Has such a thread do something that may take a while.
#[cfg(target_os = "linux")]
pub(crate) fn later(work: impl FnOnce() + Send + 'static) {
    // Where there are no threads, nobody is there to be told.
    let _untaken = take(Order::Other(Box::new(work)));
}

fn take(order: Order) -> io::Result<()> {
    static SPAWNERS: OnceLock<Spawners> = OnceLock::new();
    SPAWNERS.get_or_init(Spawners::new).take(order)
}

fn gone() -> io::Error {
    io::Error::other("the thread that starts processes is gone")
}

enum Order {
    Start {
        command: Command,
        runtime: Handle,
        reply: oneshot::Sender<io::Result<Child>>,
    },
    #[cfg(target_os = "linux")]
    Other(Box<dyn FnOnce() + Send>),
}

/// As many threads as there were ever orders at once.
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
            let Ok(order) = order else { return };
            match order {
                Order::Start {
                    command,
                    runtime,
                    reply,
                } => {
                    let _runtime = runtime.enter();
                    let _caller_gone = reply.send(system::start(&command));
                }
                #[cfg(target_os = "linux")]
                Order::Other(work) => work(),
            }
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
