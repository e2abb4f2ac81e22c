//! The tasks that read the streams by which requests are answered. Each ends with its
//! request: what a server has on a stream that nobody waits for any more is memory and a
//! connection, and it may have the answer come by another stream.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::Response;
use rustc_hash::FxHashMap;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::link::Shared;

/// Those of one link, by the ids of the requests.
#[derive(Debug, Default)]
pub(super) struct Reading(Mutex<FxHashMap<u64, Reader>>);

#[derive(Debug)]
struct Reader {
    task: AbortHandle,
    /// Cancelled when nobody waits for the answer.
    left: CancellationToken,
}

impl Reading {
    /// Nobody waits for the answer: it has come, or has been given up. What comes by the stream
    /// right after it is heard.
    pub(super) fn left(&self, id: u64) {
        if let Some(reader) = self.readers().get(&id) {
            reader.left.cancel();
        }
    }

    /// Nothing more is heard of the stream, which is closed.
    pub(super) fn end(&self, id: u64) {
        if let Some(reader) = self.readers().remove(&id) {
            reader.task.abort();
        }
    }

    fn readers(&self) -> MutexGuard<'_, FxHashMap<u64, Reader>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Reads a stream in a task of its own.
    pub(super) fn read_on(self: &Arc<Self>, id: u64, response: Response) {
        let shared = Arc::clone(self);
        let left = CancellationToken::new();
        let is_left = left.clone();
        // Locked until the task is entered, so that it cannot leave before.
        let mut readers = self.reading.readers();
        let task = tokio::spawn(async move {
            let answer = shared.read_answer(id, response, is_left);
            shared.ended.run_until_cancelled(answer).await;
            shared.reading.readers().remove(&id);
        });
        let task = task.abort_handle();
        readers.insert(id, Reader { task, left });
    }
}
