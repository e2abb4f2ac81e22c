//! The index of the catalog that is current.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callgate_broker::ServerState;
use callgate_catalog::Catalog;
use callgate_catalog::search::{Entry, SearchIndex};

use crate::ToolSettings;
use crate::gate::servers;

/// The index that was last made, and of what. There is none before somebody
/// searches; from then on, it is made with each catalog.
pub(crate) struct Indexes {
    settings: Arc<ToolSettings>,
    last: Mutex<Option<Last>>,
}

struct Last {
    catalog: Arc<Catalog>,
    index: Arc<SearchIndex>,
}

impl Indexes {
    pub(crate) fn new(settings: Arc<ToolSettings>) -> Self {
        Self {
            settings,
            last: Mutex::default(),
        }
    }

    /// The index of this catalog. It is made, away from the caller's thread, if
    /// the last one is of another; tools that both have are not read again.
    pub(crate) async fn of(
        self: &Arc<Self>,
        catalog: Arc<Catalog>,
        states: Vec<ServerState>,
    ) -> Arc<SearchIndex> {
        if let Some(index) = self.made(&catalog) {
            return index;
        }
        let indexes = Arc::clone(self);
        match tokio::task::spawn_blocking(move || indexes.make(&catalog, &states)).await {
            Ok(index) => index,
            // Making it does not panic, so the runtime is shutting down.
            Err(_) => std::future::pending().await,
        }
    }

    /// Makes the index of a new catalog, if there was one of the old: whoever
    /// searches next need not wait for it.
    pub(crate) fn renew(&self, catalog: &Arc<Catalog>, states: &[ServerState]) {
        let is_used = self.last().is_some();
        if is_used {
            self.make(catalog, states);
        }
    }

    fn made(&self, catalog: &Arc<Catalog>) -> Option<Arc<SearchIndex>> {
        // One that is being made is waited for on a thread for such work.
        let last = self.last.try_lock().ok()?;
        let last = last.as_ref()?;
        Arc::ptr_eq(&last.catalog, catalog).then(|| Arc::clone(&last.index))
    }

    fn make(&self, catalog: &Arc<Catalog>, states: &[ServerState]) -> Arc<SearchIndex> {
        let mut last = self.last();
        let before = match last.as_ref() {
            Some(last) if Arc::ptr_eq(&last.catalog, catalog) => return Arc::clone(&last.index),
            Some(last) => Arc::clone(&last.index),
            None => Arc::default(),
        };
        let abouts = states.iter().filter_map(|state| {
            let about = servers::description(state)?;
            Some((state.name.as_str(), about))
        });
        let abouts: HashMap<&str, String> = abouts.collect();
        let entries = catalog.tools().iter().map(|tool| Entry {
            function: &tool.function,
            definition: &tool.definition,
            keywords: self.settings.keywords(&tool.function),
            about: abouts
                .get(tool.definition.server.as_str())
                .map(String::as_str),
        });
        let index = Arc::new(SearchIndex::build_after(&before, entries));
        *last = Some(Last {
            catalog: Arc::clone(catalog),
            index: Arc::clone(&index),
        });
        index
    }

    fn last(&self) -> MutexGuard<'_, Option<Last>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
