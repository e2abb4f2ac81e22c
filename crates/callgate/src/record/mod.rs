//! The record of runs in a store.
//!
//! No run waits for the store: events go into a queue, and one thread of the process writes them.
//! While the queue is full, calls are left out of the record.

mod sink;
#[cfg(test)]
mod tests;
mod writer;

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use callgate_store::{
    Body, CallRecord, OpenStore, RunRecord, RunStatus, SqliteStore, StoreError, StoreErrorKind,
};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

pub use self::sink::StoreSink;
use crate::config::{Bodies, StoreConfig};

/// The limit of bytes in the queue.
const MAX_QUEUED: usize = 64 << 20;
/// The size of a message in the queue, without its texts.
const MESSAGE_BYTES: usize = 1 << 10;
/// Time that the start of a command waits for the store.
const OPEN_LIMIT: Duration = Duration::from_secs(2);
/// Time that the end of a gate waits for the queue.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);
/// Time between two tries to open the store.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// Opens the store of a configuration.
///
/// # Errors
///
/// Those of [`SqliteStore::open`], and `Unavailable` if the store has no place.
pub fn open_store(config: &StoreConfig) -> Result<SqliteStore, StoreError> {
    let folder = config.folder().ok_or_else(|| {
        let message = "neither XDG_STATE_HOME nor HOME is set; set one, or \"path\" in \"store\"";
        StoreError::new(StoreErrorKind::Unavailable, message)
    })?;
    SqliteStore::open(&folder)
}

/// Writes the runs of a process to a store, on a thread of its own.
pub struct Recorder {
    queue: Sender<(usize, Message)>,
    /// Bytes in the queue.
    queued: Arc<AtomicUsize>,
    /// True once it is logged that calls are left out.
    has_dropped: AtomicBool,
    opened: watch::Receiver<Option<Arc<OpenStore>>>,
    bodies: Bodies,
}

/// A change of the record.
enum Message {
    Started {
        record: Box<RunRecord>,
        script: Option<String>,
    },
    Call {
        call: Box<CallRecord>,
        arguments: Option<String>,
        result: Option<String>,
    },
    Reported {
        run: String,
        report: Value,
        output: Body,
        /// The output's text, if it is kept.
        text: Option<String>,
    },
    Ended {
        run: String,
        time: Timestamp,
        status: RunStatus,
        counts: Value,
    },
    Flush(oneshot::Sender<()>),
}

impl Recorder {
    /// Starts the thread, which opens the store. If that fails, it is logged once, and nothing is
    /// recorded; after a failure that may pass it is tried again each minute.
    pub fn start(config: StoreConfig) -> Arc<Self> {
        let (queue, messages) = mpsc::channel();
        let (open, opened) = watch::channel(None);
        let queued = Arc::new(AtomicUsize::new(0));
        let (of_writer, bodies) = (Arc::clone(&queued), config.bodies);
        let write = move || writer::run(&config, RETRY_INTERVAL, &messages, &of_writer, &open);
        let thread = thread::Builder::new().name("callgate-store".to_owned());
        if let Err(error) = thread.spawn(write) {
            log_unrecorded(&error);
        }
        Arc::new(Self {
            queue,
            queued,
            has_dropped: AtomicBool::new(false),
            opened,
            bodies,
        })
    }

    /// The store, once it is open; `None` if it cannot be opened now, or takes too long.
    pub async fn opened(&self) -> Option<Arc<OpenStore>> {
        let mut receiver = self.opened.clone();
        // The first change comes with the first try. This end has seen none.
        let _ = timeout(OPEN_LIMIT, receiver.changed()).await;
        receiver.borrow().clone()
    }

    /// True if the texts of a run or call are kept.
    fn keeps(&self, has_failed: bool) -> bool {
        match self.bodies {
            Bodies::None => false,
            Bodies::Errors => has_failed,
            Bodies::All => true,
        }
    }

    /// Puts a message with texts of this size into the queue. False if nothing is recorded.
    fn send(&self, text_bytes: usize, message: Message) -> bool {
        let bytes = MESSAGE_BYTES + text_bytes;
        let queued = self.queued.fetch_add(bytes, Ordering::Relaxed);
        // Starts and ends of runs are few.
        if queued + bytes > MAX_QUEUED && matches!(message, Message::Call { .. }) {
            self.queued.fetch_sub(bytes, Ordering::Relaxed);
            if !self.has_dropped.swap(true, Ordering::Relaxed) {
                tracing::error!(
                    "the store is too slow, so calls are missing in the record of runs"
                );
            }
            return true;
        }
        let is_sent = self.queue.send((bytes, message)).is_ok();
        if !is_sent {
            self.queued.fetch_sub(bytes, Ordering::Relaxed);
        }
        is_sent
    }

    /// Waits until the messages so far are written, for a limited time.
    async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.send(0, Message::Flush(done)) && timeout(FLUSH_LIMIT, flushed).await.is_err() {
            tracing::error!("the store is too slow, so the last runs may be recorded as lost");
        }
    }
}

fn log_unrecorded(reason: &dyn Display) {
    tracing::error!(
        "runs are not recorded: {reason}; \"store\": false in the configuration turns the record off"
    );
}
