//! The word index of the current catalog.

use std::collections::HashMap;
use std::sync::Arc;

use callgate_catalog::Catalog;
use callgate_catalog::search::{Entry, SearchIndex};
use callgate_servers::ServerState;
use tokio::sync::Mutex;

use crate::config::ToolSettings;
use crate::names::server_description;

/// The last index, and its catalog. The first search makes the first index.
pub(super) struct IndexCache {
    settings: Arc<ToolSettings>,
    last: Mutex<(Arc<Catalog>, Arc<SearchIndex>)>,
}

impl IndexCache {
    pub(super) fn new(settings: Arc<ToolSettings>) -> Self {
        Self {
            settings,
            last: Mutex::default(),
        }
    }

    /// The index of this catalog, made on a blocking thread if the last one is of another.
    pub(super) async fn of(
        &self,
        catalog: &Arc<Catalog>,
        servers: &[ServerState],
    ) -> Arc<SearchIndex> {
        let mut last = self.last.lock().await;
        if Arc::ptr_eq(&last.0, catalog) {
            return Arc::clone(&last.1);
        }
        let described = servers.iter().filter_map(|server| {
            let description = server_description(server)?;
            Some((server.name.clone(), description))
        });
        let described: HashMap<String, String> = described.collect();
        let (settings, of) = (Arc::clone(&self.settings), Arc::clone(catalog));
        let made = tokio::task::spawn_blocking(move || {
            let entries = of.tools().iter().map(|tool| Entry {
                function: &tool.function,
                definition: &tool.definition,
                keywords: settings.keywords(&tool.function, Some(&tool.other_names)),
                about: described.get(&tool.definition.server).map(String::as_str),
            });
            SearchIndex::build(entries)
        });
        let index = Arc::new(made.await.unwrap_or_default());
        *last = (Arc::clone(catalog), Arc::clone(&index));
        index
    }
}
