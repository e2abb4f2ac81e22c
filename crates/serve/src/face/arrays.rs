//! The arrays of tools for requests that belong to no session (MCP 2026-07-28):
//! one for each mode of a user and each kind of client, which stays as it is for the time that clients
//! were told they may keep it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use callgate::config::ToolMode;
use callgate::{CatalogStamp, Gate};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::shown::{Audience, Shown};
use crate::options::ServeOptions;

/// The arrays of one user.
#[derive(Debug, Default)]
pub(crate) struct Arrays {
    made: Mutex<HashMap<(ToolMode, Audience), Made>>,
}

#[derive(Debug)]
struct Made {
    shown: Arc<Shown>,
    of: CatalogStamp,
    until: Instant,
}

impl Arrays {
    /// The array of this mode, and how long it stays as it is. It is another one
    /// only if that time is over and there are other tools.
    pub(crate) async fn get(
        &self,
        gate: &Arc<Gate>,
        mode: ToolMode,
        options: &ServeOptions,
        audience: Audience,
    ) -> (Arc<Shown>, Duration) {
        // Whoever comes while one is made wants the same.
        let mut arrays = self.made.lock().await;
        let now = Instant::now();
        if let Some(made) = arrays.get_mut(&(mode, audience)) {
            if now >= made.until && made.of == gate.catalog_stamp() {
                made.until = now + options.tools_ttl;
            }
            if now < made.until {
                return (Arc::clone(&made.shown), made.until - now);
            }
        }
        let of = gate.catalog_stamp();
        let shown = Arc::new(make(gate, mode, options, audience).await);
        let made = Made {
            shown: Arc::clone(&shown),
            of,
            until: Instant::now() + options.tools_ttl,
        };
        arrays.insert((mode, audience), made);
        (shown, options.tools_ttl)
    }
}

/// Makes an array, on a thread for what takes a while.
pub(crate) async fn make(
    gate: &Arc<Gate>,
    mode: ToolMode,
    options: &ServeOptions,
    audience: Audience,
) -> Shown {
    let (gate, options) = (Arc::clone(gate), options.clone());
    let made =
        tokio::task::spawn_blocking(move || Shown::make(&gate, mode, &options, audience)).await;
    match made {
        Ok(shown) => shown,
        // Nothing in it panics, so the runtime is shutting down, and this task
        // with it.
        Err(_) => std::future::pending().await,
    }
}
