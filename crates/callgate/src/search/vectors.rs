//! Vectors of tools: made by an embeddings endpoint, stored, and compared with the vector of a query.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_catalog::Catalog;
use callgate_models::Embedder;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::spawn_blocking;

use super::vector_text::vector_text;
use crate::cache::Folder;
use crate::live_catalog::LiveCatalog;
use crate::models::Models;

/// Texts in one request.
const STEP: usize = 64;
/// The time for which a failed endpoint is not asked again.
const FAILURE_PAUSE: Duration = Duration::from_secs(30);
/// The pause before missing vectors are tried again.
const RETRY: Duration = Duration::from_secs(60);
/// The time that a search waits for the vector of its query.
const QUERY_TIME: Duration = Duration::from_secs(10);
/// The limit of vectors that are kept for tools that may return.
const MAX_KEPT: usize = 20_000;
/// Size limit of a file, in bytes. A larger file is ignored, and its vectors are computed again.
const MAX_FILE: u64 = 256 << 20;

/// A vector of length 1.
type Vector = Vec<f32>;
/// Vectors by the hash of their texts.
type Known = HashMap<String, Vector>;

/// The vectors of one gate.
pub(crate) struct Vectors {
    pub(super) models: Arc<Models>,
    /// The folder for files of vectors; `None` keeps them in memory only.
    folder: Option<Folder>,
    known: Mutex<Known>,
    /// The file of the endpoint and model, once it was read. Locked while vectors are made, so that
    /// each is made once.
    making: AsyncMutex<Option<String>>,
    failed: Mutex<Option<(Instant, String)>>,
}

/// The tools nearest to a query.
#[derive(Default)]
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

    /// Makes the vectors of the tools, and again when the tools change.
    pub(super) fn follow(self: &Arc<Self>, live: &Arc<LiveCatalog>) {
        let mut changes = live.connections.watch();
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
    /// The error: why the endpoint failed, as a sentence; vectors made before are kept.
    async fn make(&self, catalog: &Arc<Catalog>) -> Result<(), String> {
        let mut making = self.making.lock().await;
        let embedder = self.embedder().await?;
        if let Some(folder) = &self.folder
            && making.is_none()
        {
            let file = format!("{}.json", hash(&embedder.identity()));
            self.known.lock().extend(read(folder, &file));
            *making = Some(file);
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
                    self.known.lock().extend(made.zip(vectors));
                }
                Err(error) => {
                    made = Err(self.note_failure(error.to_string()));
                    break;
                }
            }
        }
        let known = {
            let mut known = self.known.lock();
            if known.len() > MAX_KEPT + keys.len() {
                let current: HashSet<&String> = keys.iter().collect();
                known.retain(|key, _| current.contains(key));
            }
            known.clone()
        };
        if let (Some(folder), Some(file)) = (self.folder.clone(), making.clone()) {
            let writing = spawn_blocking(move || folder.write(&file, &serde_json::to_vec(&known)?));
            if let Ok(Err(error)) = writing.await {
                tracing::warn!(%error, "the vectors of tools are not kept on disk");
            }
        }
        made
    }

    /// The places of tools without a vector, each text once.
    fn missing(&self, keys: &[String]) -> Vec<usize> {
        let known = self.known.lock();
        let mut seen = HashSet::new();
        let places = keys.iter().enumerate();
        places
            .filter(|(_, key)| !known.contains_key(*key) && seen.insert(*key))
            .map(|(place, _)| place)
            .collect()
    }

    /// The tools of accepted servers, nearest to the query first, at most `limit`. Waits for
    /// missing vectors for the time `patience`.
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
            // The task continues if the search does not wait for it.
            let made = tokio::spawn(async move { vectors.make(&catalog).await });
            let _ = tokio::time::timeout(patience, made).await;
        }
        let query = self.of_query(query).await?;
        let known = self.known.lock();
        let mut near = Near::default();
        for (place, (tool, key)) in catalog.tools().iter().zip(&keys).enumerate() {
            if !accepts(&tool.definition.server) {
                continue;
            }
            match known.get(key) {
                Some(vector) if vector.len() == query.len() => {
                    let products = vector.iter().zip(&query).map(|(a, b)| a * b);
                    near.ranked.push((place, products.sum()));
                }
                _ => near.missing += 1,
            }
        }
        near.ranked.sort_unstable_by(|(a, first), (b, second)| {
            second.total_cmp(first).then_with(|| a.cmp(b))
        });
        near.ranked.truncate(limit);
        Ok(near)
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
        vector.ok_or_else(|| "it gave no vector".to_owned())
    }

    /// The client of the endpoint, unless the endpoint failed recently.
    async fn embedder(&self) -> Result<&Embedder, String> {
        let failed = self.failed.lock().clone();
        if let Some((when, reason)) = failed
            && when.elapsed() < FAILURE_PAUSE
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

/// The hashes of the texts of a catalog's tools, in its order.
fn keys(catalog: &Catalog) -> Vec<String> {
    let texts = catalog.tools().iter().map(vector_text);
    texts.map(|text| hash(&text)).collect()
}

fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

/// The vectors in a file; empty if the file is missing or damaged.
fn read(folder: &Folder, file: &str) -> Known {
    let read = folder.read(file, MAX_FILE);
    let parsed = read.and_then(|bytes| match bytes {
        Some(bytes) => Ok(serde_json::from_slice(&bytes)?),
        None => Ok(Known::new()),
    });
    let mut vectors: Known = parsed.unwrap_or_else(|error| {
        tracing::warn!(file, %error, "vectors cannot be read, and are computed again");
        Known::new()
    });
    let length = |vector: &Vector| vector.iter().map(|it| it * it).sum::<f32>();
    vectors.retain(|_, vector| (0.99..=1.01).contains(&length(vector)));
    vectors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_of_vectors_are_ignored() {
        let place = tempfile::TempDir::new().unwrap();
        let folder = Folder::open(place.path().to_owned()).unwrap();
        assert_eq!(read(&folder, "a"), Known::new());
        for (text, expected) in [
            (r#"{"1":[0.6,0.8]}"#, 1),
            ("", 0),
            ("{", 0),
            (r#"{"1":[1e30,0]}"#, 0),
            (r#"{"1":[]}"#, 0),
            (r#"{"1":[null]}"#, 0),
        ] {
            folder.write("a", text.as_bytes()).unwrap();
            assert_eq!(read(&folder, "a").len(), expected, "{text}");
        }
    }
}
