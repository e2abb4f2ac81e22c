//! The end of the host.

use std::sync::mpsc;
use std::time::Duration;

/// Waits until this process has no children, at most for this long. The last
/// call of a host that ends: no child may be left as a zombie to whichever
/// process inherits it.
///
/// It takes the exit status of every child, so that no other code can wait for
/// one any more.
pub fn wait_for_children(limit: Duration) {
    let (alive, ended) = mpsc::channel::<()>();
    let waiting = std::thread::Builder::new().spawn(move || {
        let _alive = alive;
        // SAFETY: waitpid is given no place to write to.
        while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } > 0
            || std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
        {}
    });
    if waiting.is_ok() {
        // It returns when the thread drops its end.
        let _ = ended.recv_timeout(limit);
    }
}
