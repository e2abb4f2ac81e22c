//! The tool arrays for requests without a session (MCP 2026-07-28): one per mode and kind of
//! client. An array stays as it is for as long as clients were told to keep it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use callgate::config::ToolMode;
use callgate::{CatalogStamp, Gate};

use super::tool_array::{Audience, ToolArray};
use crate::options::ServeOptions;

/// The arrays of one user.
#[derive(Debug, Default)]
pub(crate) struct StatelessArrays(Mutex<HashMap<(ToolMode, Audience), Kept>>);

#[derive(Debug)]
struct Kept {
    array: Arc<ToolArray>,
    stamp: CatalogStamp,
    until: Instant,
}

impl StatelessArrays {
    /// The array of a mode, and how long it stays as it is. A new one is made only after that
    /// time, and only for other tools.
    pub(crate) fn get(
        &self,
        gate: &Gate,
        mode: ToolMode,
        options: &ServeOptions,
        audience: Audience,
    ) -> (Arc<ToolArray>, Duration) {
        let mut arrays = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let stamp = gate.catalog_stamp();
        if let Some(kept) = arrays.get_mut(&(mode, audience)) {
            if now >= kept.until && kept.stamp == stamp {
                kept.until = now + options.tools_ttl;
            }
            if now < kept.until {
                return (Arc::clone(&kept.array), kept.until - now);
            }
        }
        let array = Arc::new(ToolArray::new(gate, mode, options, audience));
        let kept = Kept {
            array: Arc::clone(&array),
            stamp,
            until: now + options.tools_ttl,
        };
        arrays.insert((mode, audience), kept);
        (array, options.tools_ttl)
    }
}
