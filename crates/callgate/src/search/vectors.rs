//! Vectors of tools: made by an endpoint of embeddings, kept, and compared with
//! that of a query.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use callgate_broker::Broker;
use callgate_catalog::Catalog;
use callgate_models::Embedder;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;

use super::vector_store::{self as store, Store};
use super::vector_text as text;
pub(crate) use super::vector_text::Key;
use crate::cache::Folder;
use crate::live_catalog::LiveCatalog;
use crate::models::Models;

/// Texts that are sent before what came back is kept.
const STEP: usize = 64;
/// How often what came back is written to disk while there is more to come: a process that
/// ends has the less to ask for again.
const SAVED_EVERY: Duration = Duration::from_secs(5);
/// How long an endpoint that failed is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(30);
/// The longest pause before vectors that were not to be had are tried again.
const MAX_PAUSE: Duration = Duration::from_secs(900);
/// How long a search waits for the vector of its query.
const PATIENCE: Duration = Duration::from_secs(10);
/// Queries whose vectors are kept.
const MAX_QUERIES: usize = 256;

/// A vector of length 1.
pub(crate) type Vector = Arc<[f32]>;

/// The vectors of one gate.
pub(crate) struct Vectors {
    models: Arc<Models>,
    /// The folder for files of vectors; `None` keeps them in memory alone.
    folder: Option<Folder>,
    known: RwLock<HashMap<Key, Vector>>,
    /// The keys of the tools of the catalog that was last asked about.
    keys: Mutex<(Arc<Catalog>, Arc<[Key]>)>,
    queries: Mutex<HashMap<String, Vector>>,
    /// Held while vectors are made, so that none is made twice.
    making: AsyncMutex<Option<Store>>,
    failed: Mutex<Option<(Instant, String)>>,
}

/// The tools nearest to a query.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Near {
    /// Places in the catalog and cosines, the nearest first.
    pub(crate) ranked: Vec<(usize, f32)>,
    /// How many tools have no vector yet.
    pub(crate) missing: usize,
}

impl Vectors {
    pub(crate) fn new(models: Arc<Models>, folder: Option<Folder>) -> Self {
        Self {
            models,
            folder,
            known: RwLock::default(),
            keys: Mutex::default(),
            queries: Mutex::default(),
            making: AsyncMutex::default(),
            failed: Mutex::default(),
        }
    }

    /// Whether there is an endpoint to make them.
    pub(crate) fn can_be_made(&self) -> bool {
        self.models.has_embeddings()
    }

    /// Makes vectors of what tools there are, and again when the tools change.
    pub(crate) fn follow(
        self: &Arc<Self>,
        live: &Arc<LiveCatalog>,
        broker: &Broker,
    ) -> JoinHandle<()> {
        let mut changes = broker.watch();
        let (vectors, live) = (Arc::clone(self), Arc::downgrade(live));
        tokio::spawn(async move {
            let mut pause = LEFT_ALONE;
            loop {
                // It is dropped with the gate.
                let Some(catalog) = live.upgrade().map(|live| live.catalog()) else {
                    return;
                };
                let changed = match vectors.make(&catalog).await {
                    Ok(()) => {
                        pause = LEFT_ALONE;
                        changes.changed().await
                    }
                    Err(reason) => {
                        tracing::warn!(reason, "tools have no vectors");
                        // It may be back before the tools change.
                        let waited = tokio::time::timeout(pause, changes.changed()).await;
                        pause = (2 * pause).min(MAX_PAUSE);
                        waited.unwrap_or(Ok(()))
                    }
                };
                if changed.is_err() {
                    return;
                }
                // The catalog is made anew by another task.
                let Some(live) = live.upgrade() else {
                    return;
                };
                live.settled().await;
            }
        })
    }

    /// Makes the vectors that the tools of a catalog lack.
    ///
    /// # Errors
    ///
    /// Why the endpoint gave none, as a sentence; what it gave before is kept.
    pub(crate) async fn make(&self, catalog: &Arc<Catalog>) -> Result<(), String> {
        let mut store = self.making.lock().await;
        let embedder = self.embedder().await?;
        if store.is_none() {
            let (opened, read) = Store::open(self.folder.as_ref(), &embedder.identity());
            self.known().extend(read);
            *store = Some(opened);
        }
        let keys = self.keys(catalog).await;
        store::forget_old(&keys, &mut self.known());
        let missing: Vec<usize> = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            let mut seen = std::collections::HashSet::new();
            let lacks = |(_, key): &(usize, &Key)| !known.contains_key(*key) && seen.insert(**key);
            keys.iter()
                .enumerate()
                .filter(lacks)
                .map(|(place, _)| place)
                .collect()
        };
        if missing.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        let mut saved = began;
        let mut made = Ok(());
        for step in missing.chunks(STEP) {
            let of = |place: &usize| catalog.tools().get(*place).map(text::of);
            let texts: Vec<String> = step.iter().filter_map(of).collect();
            match embedder.embed(&texts).await {
                Ok(vectors) => {
                    let with = step.iter().filter_map(|place| keys.get(*place)).copied();
                    let vectors = vectors.into_iter().map(Vector::from);
                    self.known().extend(with.zip(vectors));
                    if saved.elapsed() >= SAVED_EVERY {
                        self.save(store.as_ref(), &keys).await;
                        saved = Instant::now();
                    }
                }
                Err(error) => {
                    made = Err(self.note_failure(error.to_string()));
                    break;
                }
            }
        }
        tracing::debug!(
            tools = missing.len(),
            ms = began.elapsed().as_millis() as u64,
            ok = made.is_ok(),
            "vectors were made"
        );
        self.save(store.as_ref(), &keys).await;
        made
    }

    /// Writes what there is to disk.
    async fn save(&self, store: Option<&Store>, keys: &Arc<[Key]>) {
        let Some(store) = store.cloned() else { return };
        let known = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            known.clone()
        };
        let keys = Arc::clone(keys);
        let saved = tokio::task::spawn_blocking(move || store.save(&keys, &known)).await;
        if let Ok(Err(error)) = saved {
            tracing::warn!(%error, "the vectors of tools are not kept on disk");
        }
    }

    /// The tools that `accepts` takes by how near they are to a query, at most
    /// `limit`. Vectors that are missing are waited for as long as `patience` says.
    ///
    /// # Errors
    ///
    /// Why there is no vector of the query, as a sentence.
    pub(crate) async fn near(
        self: &Arc<Self>,
        catalog: &Arc<Catalog>,
        query: &str,
        accepts: impl Fn(&str) -> bool,
        limit: usize,
        patience: Duration,
    ) -> Result<Near, String> {
        let keys = self.keys(catalog).await;
        // Before the query's own, with which an endpoint that is at these would be late.
        if !patience.is_zero() && self.lacks(&keys) {
            let made = self.make_later(catalog);
            // What there is by then has to do.
            let _late = tokio::time::timeout(patience, made).await;
        }
        let query = self.of_query(query).await?;
        let mut near = self.compare(catalog, &keys, &query, &accepts);
        if near.missing > 0 && self.making.try_lock().is_ok() {
            // Whoever is not waited for need not be known.
            drop(self.make_later(catalog));
        }
        near.ranked.sort_unstable_by(|(a, first), (b, second)| {
            second.total_cmp(first).then_with(|| a.cmp(b))
        });
        near.ranked.truncate(limit);
        Ok(near)
    }

    /// Whether any of these has no vector.
    fn lacks(&self, keys: &[Key]) -> bool {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        keys.iter().any(|key| !known.contains_key(key))
    }

    /// How near tools are to a query, in the order of the catalog.
    fn compare(
        &self,
        catalog: &Catalog,
        keys: &[Key],
        query: &[f32],
        accepts: &impl Fn(&str) -> bool,
    ) -> Near {
        let mut near = Near::default();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        for (place, (tool, key)) in catalog.tools().iter().zip(keys).enumerate() {
            if !accepts(&tool.definition.server) {
                continue;
            }
            match known.get(key) {
                Some(vector) if vector.len() == query.len() => {
                    near.ranked.push((place, dot(vector, query)));
                }
                _ => near.missing += 1,
            }
        }
        near
    }

    /// Makes what is missing while others go on, or after whoever is at it already.
    fn make_later(self: &Arc<Self>, catalog: &Arc<Catalog>) -> JoinHandle<()> {
        let (vectors, catalog) = (Arc::clone(self), Arc::clone(catalog));
        tokio::spawn(async move {
            if let Err(reason) = vectors.make(&catalog).await {
                tracing::warn!(reason, "tools have no vectors");
            }
        })
    }

    async fn of_query(&self, query: &str) -> Result<Vector, String> {
        let kept = lock(&self.queries).get(query).cloned();
        if let Some(vector) = kept {
            return Ok(vector);
        }
        let embedder = self.embedder().await?;
        let texts = [query.to_owned()];
        let made = match tokio::time::timeout(PATIENCE, embedder.embed(&texts)).await {
            Ok(Ok(vectors)) => vectors.into_iter().next(),
            Ok(Err(error)) => return Err(self.note_failure(error.to_string())),
            Err(_elapsed) => {
                let limit = PATIENCE.as_secs();
                return Err(self.note_failure(format!("it gave no answer within {limit} s")));
            }
        };
        let Some(vector) = made.map(Vector::from) else {
            return Err("it gave nothing".to_owned());
        };
        let mut queries = lock(&self.queries);
        if queries.len() >= MAX_QUERIES {
            queries.clear();
        }
        queries.insert(query.to_owned(), Arc::clone(&vector));
        Ok(vector)
    }

    /// The embedder, unless it failed a moment ago.
    async fn embedder(&self) -> Result<&Embedder, String> {
        if let Some((when, reason)) = lock(&self.failed).as_ref()
            && when.elapsed() < LEFT_ALONE
        {
            return Err(reason.clone());
        }
        match self.models.embedder().await {
            Some(Ok(embedder)) => Ok(embedder),
            Some(Err(reason)) => Err(self.note_failure(reason)),
            None => Err("no endpoint of embeddings is configured (models.embeddings)".to_owned()),
        }
    }

    fn note_failure(&self, reason: String) -> String {
        *lock(&self.failed) = Some((Instant::now(), reason.clone()));
        reason
    }

    /// What the vectors of a catalog's tools are known by, in its order.
    async fn keys(&self, catalog: &Arc<Catalog>) -> Arc<[Key]> {
        {
            let (of, keys) = &*lock(&self.keys);
            if Arc::ptr_eq(of, catalog) {
                return Arc::clone(keys);
            }
        }
        let of = Arc::clone(catalog);
        let hashed = tokio::task::spawn_blocking(move || {
            let keys = of.tools().iter().map(|tool| Key::of(&text::of(tool)));
            keys.collect::<Arc<[Key]>>()
        });
        let keys = match hashed.await {
            Ok(keys) => keys,
            // Hashing does not panic, so the runtime is shutting down.
            Err(_) => std::future::pending().await,
        };
        *lock(&self.keys) = (Arc::clone(catalog), Arc::clone(&keys));
        keys
    }

    fn known(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<Key, Vector>> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Vectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vectors").finish_non_exhaustive()
    }
}

/// The cosine of two vectors of length 1.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    // In eight sums side by side, which the compiler makes one instruction of.
    let mut sums = [0.0_f32; 8];
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
