//! The index of the catalog that is current.

use std::sync::{Arc, Mutex, PoisonError};

use callgate_catalog::Catalog;
use callgate_catalog::search::{Entry, SearchIndex};

/// The index that was last made, and of what.
#[derive(Default)]
pub(super) struct Indexes {
    last: Mutex<(Arc<Catalog>, Arc<SearchIndex>)>,
}

impl Indexes {
    /// The index of this catalog. It is made, away from the caller's thread, if
    /// the last one is of another; tools that both have are not read again.
    pub(super) async fn of(self: &Arc<Self>, catalog: Arc<Catalog>) -> Arc<SearchIndex> {
        if let Some(index) = self.made(&catalog) {
            return index;
        }
        let indexes = Arc::clone(self);
        match tokio::task::spawn_blocking(move || indexes.make(&catalog)).await {
            Ok(index) => index,
            // Making it does not panic, so the runtime is shutting down.
            Err(_) => std::future::pending().await,
        }
    }

    fn made(&self, catalog: &Arc<Catalog>) -> Option<Arc<SearchIndex>> {
        // One that is being made is waited for on a thread for such work.
        let last = self.last.try_lock().ok()?;
        Arc::ptr_eq(&last.0, catalog).then(|| Arc::clone(&last.1))
    }

    fn make(&self, catalog: &Arc<Catalog>) -> Arc<SearchIndex> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&last.0, catalog) {
            return Arc::clone(&last.1);
        }
        let entries = catalog.tools().iter().map(|tool| Entry {
            function: &tool.function,
            definition: &tool.definition,
            keywords: Vec::new(),
            about: None,
        });
        let index = Arc::new(SearchIndex::build_after(&last.1, entries));
        *last = (Arc::clone(catalog), Arc::clone(&index));
        index
    }
}
