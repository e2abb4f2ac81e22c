//! Vectors of tools: made by an embeddings endpoint, kept, and compared with the vector of a query.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_catalog::Catalog;
use callgate_models::Embedder;
use callgate_servers::Servers;
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::spawn_blocking;

use super::vector_store::Store;
use super::vector_text::{Key, Vector, vector_text};
use crate::cache::Folder;
use crate::live_catalog::LiveCatalog;
use crate::models::Models;

/// Texts in one request.
const STEP: usize = 64;
/// The time that a failed endpoint is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(30);
/// The pause before missing vectors are tried again.
const RETRY: Duration = Duration::from_secs(60);
/// The time that a search waits for the vector of its query.
const QUERY_TIME: Duration = Duration::from_secs(10);
/// The most vectors that are kept for tools that may come back.
const MAX_KEPT: usize = 20_000;

/// The vectors of one gate.
pub(crate) struct Vectors {
    models: Arc<Models>,
    /// The folder for files of vectors; `None` keeps them in memory only.
    folder: Option<Folder>,
    known: Mutex<HashMap<Key, Vector>>,
    /// Locked while vectors are made, so that none is made twice.
    making: AsyncMutex<Option<Store>>,
    failed: Mutex<Option<(Instant, String)>>,
}

/// The tools nearest to a query.
pub(super) struct Near {
    /// Places in the catalog and cosines, the nearest first.
    pub(super) ranked: Vec<(usize, f32)>,
    /// Tools without a vector.
    pub(super) missing: usize,
}

impl Vectors {
    pub(crate) fn new(models: Arc<Models>, folder: Option<Folder>) -> Self {
        Self {
            models,
            folder,
            known: Mutex::default(),
            making: AsyncMutex::default(),
            failed: Mutex::default(),
        }
    }

    /// True if an endpoint is configured.
    pub(super) fn can_be_made(&self) -> bool {
        self.models.has_embeddings()
    }

    /// Makes the vectors of the tools, and again when the tools change.
    pub(super) fn follow(self: &Arc<Self>, live: &Arc<LiveCatalog>, broker: &Servers) {
        let mut changes = broker.watch();
        let (vectors, live) = (Arc::clone(self), Arc::downgrade(live));
        tokio::spawn(async move {
            loop {
                // The catalog is dropped with the gate.
                let Some(live) = live.upgrade() else { return };
                let catalog = live.settled().await;
                drop(live);
                let changed = match vectors.make(&catalog).await {
                    Ok(()) => changes.changed().await,
                    Err(reason) => {
                        tracing::warn!(reason, "tools have no vectors");
                        let changed = tokio::time::timeout(RETRY, changes.changed()).await;
                        changed.unwrap_or(Ok(()))
                    }
                };
                if changed.is_err() {
                    return;
                }
            }
        });
    }

    /// Makes the missing vectors of a catalog's tools.
    /// The error: why the endpoint gave none, as a sentence; vectors made before are kept.
    async fn make(&self, catalog: &Arc<Catalog>) -> Result<(), String> {
        let mut making = self.making.lock().await;
        let embedder = self.embedder().await?;
        if let Some(folder) = &self.folder
            && making.is_none()
        {
            let store = Store::new(folder, &embedder.identity());
            self.insert(store.read());
            *making = Some(store);
        }
        let keys = keys(catalog);
        let missing = self.missing(&keys);
        if missing.is_empty() {
            return Ok(());
        }
        let mut made = Ok(());
        for step in missing.chunks(STEP) {
            let tools = step.iter().filter_map(|place| catalog.tools().get(*place));
            let texts: Vec<String> = tools.map(vector_text).collect();
            match embedder.embed(&texts).await {
                Ok(vectors) => {
                    let made = step.iter().filter_map(|place| keys.get(*place)).cloned();
                    self.insert(made.zip(vectors));
                }
                Err(error) => {
                    made = Err(self.note_failure(error.to_string()));
                    break;
                }
            }
        }
        let known = self.forget_old(&keys);
        if let Some(store) = making.clone() {
            let written = spawn_blocking(move || store.write(&known)).await;
            if let Ok(Err(error)) = written {
                tracing::warn!(%error, "the vectors of tools are not kept on disk");
            }
        }
        made
    }

    fn insert(&self, vectors: impl IntoIterator<Item = (Key, Vector)>) {
        self.known.lock().extend(vectors);
    }

    /// The places of tools without a vector, each text once.
    fn missing(&self, keys: &[Key]) -> Vec<usize> {
        let known = self.known.lock();
        let mut seen = HashSet::new();
        let places = keys.iter().enumerate();
        places
            .filter(|(_, key)| !known.contains_key(*key) && seen.insert(*key))
            .map(|(place, _)| place)
            .collect()
    }

    /// Drops the vectors of tools that are gone, if there are many. Returns the others.
    fn forget_old(&self, keys: &[Key]) -> HashMap<Key, Vector> {
        let mut known = self.known.lock();
        if known.len() > MAX_KEPT + keys.len() {
            let current: HashSet<&Key> = keys.iter().collect();
            known.retain(|key, _| current.contains(key));
        }
        known.clone()
    }

    /// The tools of accepted servers, nearest to the query first, at most `limit`. Waits for
    /// missing vectors as long as `patience`.
    /// The error: why there is no vector of the query, as a sentence.
    pub(super) async fn near(
        self: &Arc<Self>,
        catalog: &Arc<Catalog>,
        query: &str,
        accepts: impl Fn(&str) -> bool,
        limit: usize,
        patience: Duration,
    ) -> Result<Near, String> {
        let keys = keys(catalog);
        if !patience.is_zero() && !self.missing(&keys).is_empty() {
            let (vectors, catalog) = (Arc::clone(self), Arc::clone(catalog));
            // The task goes on if the search does not wait for it.
            let made = tokio::spawn(async move { vectors.make(&catalog).await });
            let _ = tokio::time::timeout(patience, made).await;
        }
        let query = self.of_query(query).await?;
        let mut near = self.compare(catalog, &keys, &query, &accepts);
        near.ranked.sort_unstable_by(|(a, first), (b, second)| {
            second.total_cmp(first).then_with(|| a.cmp(b))
        });
        near.ranked.truncate(limit);
        Ok(near)
    }

    /// The cosines of tools and a query, in the order of the catalog.
    fn compare(
        &self,
        catalog: &Catalog,
        keys: &[Key],
        query: &[f32],
        accepts: &impl Fn(&str) -> bool,
    ) -> Near {
        let (mut ranked, mut missing) = (Vec::new(), 0);
        let known = self.known.lock();
        for (place, (tool, key)) in catalog.tools().iter().zip(keys).enumerate() {
            if !accepts(&tool.definition.server) {
                continue;
            }
            match known.get(key) {
                Some(vector) if vector.len() == query.len() => {
                    let products = vector.iter().zip(query).map(|(a, b)| a * b);
                    ranked.push((place, products.sum()));
                }
                _ => missing += 1,
            }
        }
        Near { ranked, missing }
    }

    async fn of_query(&self, query: &str) -> Result<Vector, String> {
        let embedder = self.embedder().await?;
        let texts = [query.to_owned()];
        let made = tokio::time::timeout(QUERY_TIME, embedder.embed(&texts)).await;
        let late = |_| format!("it gave no answer within {} s", QUERY_TIME.as_secs());
        let made = made
            .map_err(late)
            .and_then(|made| made.map_err(|error| error.to_string()));
        let vectors = made.map_err(|reason| self.note_failure(reason))?;
        let vector = vectors.into_iter().next();
        vector.ok_or_else(|| "it gave nothing".to_owned())
    }

    /// The client of the endpoint, unless the endpoint failed a moment ago.
    async fn embedder(&self) -> Result<&Embedder, String> {
        let failed = self.failed.lock().clone();
        if let Some((when, reason)) = failed
            && when.elapsed() < LEFT_ALONE
        {
            return Err(reason);
        }
        let embedder = self.models.embedder().await;
        embedder.map_err(|reason| self.note_failure(reason))
    }

    fn note_failure(&self, reason: String) -> String {
        *self.failed.lock() = Some((Instant::now(), reason.clone()));
        reason
    }
}

/// The keys of a catalog's tools, in its order.
fn keys(catalog: &Catalog) -> Vec<Key> {
    let texts = catalog.tools().iter().map(vector_text);
    texts.map(|text| Key::of(&text)).collect()
}
