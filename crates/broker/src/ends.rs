//! Connections that are being ended. A server may take its time for that, whatever becomes
//! of whoever wanted it ended, and no other process of it is to be started meanwhile.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::Connection;

/// The connections of one server that are being ended.
#[derive(Debug)]
pub(crate) struct Ends {
    /// Always closed, so that it can be waited for.
    tasks: TaskTracker,
    at_once: CancellationToken,
}

impl Default for Ends {
    fn default() -> Self {
        let tasks = TaskTracker::new();
        tasks.close();
        Self {
            tasks,
            at_once: CancellationToken::new(),
        }
    }
}

impl Ends {
    /// Ends the connection that is taken out by this, and its process; whether there was one.
    /// Must be called within a runtime.
    pub(crate) fn end(&self, take: impl FnOnce() -> Option<Arc<Connection>>) -> bool {
        // Whoever sees that there is none waits for its end already.
        let _seen = self.tasks.token();
        let Some(connection) = take() else {
            return false;
        };
        let at_once = self.at_once.clone();
        self.tasks.spawn(async move {
            at_once.run_until_cancelled(connection.shut_down()).await;
        });
        true
    }

    /// Waits until all have ended.
    pub(crate) async fn over(&self) {
        self.tasks.wait().await;
    }

    /// Ends them all at once.
    pub(crate) fn at_once(&self) {
        self.at_once.cancel();
    }
}
