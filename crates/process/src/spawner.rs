//! The thread that starts processes. It lives as long as the host: the kernel
//! kills a child when the thread that started it ends, and a runtime may end
//! its threads at any time.

use std::io;
use std::sync::{Mutex, PoisonError, mpsc};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::{Child, Command};

struct Order {
    command: Command,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

/// Starts the command on the spawner thread.
pub(crate) async fn spawn(command: Command) -> io::Result<Child> {
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

/// The way to the spawner thread, which is started with the first order.
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
                let _ = order.reply.send(order.command.start());
            }
        })?;
    Ok(orders.insert(sender).clone())
}
