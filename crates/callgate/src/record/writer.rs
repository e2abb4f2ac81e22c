//! The thread that writes to the store.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use callgate_store::{
    Access, OpenStore, RunRecord, RunStatus, SqliteStore, Store, StoreError, StoreErrorKind,
};
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::watch;

use super::{Message, log_unrecorded, open_store};
use crate::config::{Bodies, StoreConfig};

/// Time between two removals of old runs.
const TIDY_INTERVAL: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Opens the store, and writes messages until all senders are gone. After a failure that may pass,
/// the store is opened at this interval; messages until then are dropped.
pub(super) fn run(
    config: &StoreConfig,
    retry: Duration,
    messages: &Receiver<(usize, Message)>,
    queued: &AtomicUsize,
    open: &watch::Sender<Option<Arc<OpenStore>>>,
) {
    let mut has_failed = false;
    let mut writer = loop {
        let error = match Writer::open(config.clone()) {
            Ok(writer) => break writer,
            Err(error) => error,
        };
        if !std::mem::replace(&mut has_failed, true) {
            log_unrecorded(&error);
        }
        open.send_replace(None);
        if !may_pass(&error) || !drain(messages, queued, retry) {
            return;
        }
    };
    open.send_replace(Some(Arc::clone(&writer.open)));
    let mut tidy_at = Instant::now();
    // The bytes that were written since old runs were removed.
    let mut bytes_since = 0;
    loop {
        let next = if bytes_since > config.bytes / 10 {
            Err(RecvTimeoutError::Timeout)
        } else {
            messages.recv_timeout(tidy_at.saturating_duration_since(Instant::now()))
        };
        match next {
            Ok((bytes, message)) => {
                let written = writer.write(message);
                writer.note(written);
                queued.fetch_sub(bytes, Ordering::Relaxed);
                bytes_since += bytes as u64;
            }
            Err(RecvTimeoutError::Timeout) => {
                let tidied = writer.tidy();
                writer.note(tidied);
                tidy_at = Instant::now() + TIDY_INTERVAL;
                bytes_since = 0;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// True if the store may be opened later.
fn may_pass(error: &StoreError) -> bool {
    use StoreErrorKind::{Full, Locked, Unavailable};
    matches!(error.kind(), Full | Locked | Unavailable)
}

/// Drops messages for a time. False if all senders are gone.
fn drain(messages: &Receiver<(usize, Message)>, queued: &AtomicUsize, time: Duration) -> bool {
    let end = Instant::now() + time;
    loop {
        match messages.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok((bytes, _)) => {
                queued.fetch_sub(bytes, Ordering::Relaxed);
            }
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

struct Writer {
    config: StoreConfig,
    store: Arc<SqliteStore>,
    open: Arc<OpenStore>,
    /// The runs that have not ended.
    runs: HashMap<String, OpenRun>,
    /// The number of the store's warnings that are logged.
    warned: usize,
    has_failed: bool,
}

struct OpenRun {
    record: RunRecord,
    /// The script, until it is known whether it is kept.
    script: Option<String>,
    /// The bytes of texts that may still be kept.
    left: u64,
    is_begun: bool,
}

impl Writer {
    fn open(config: StoreConfig) -> Result<Self, StoreError> {
        let store = Arc::new(open_store(&config)?);
        let open = OpenStore::new(Arc::<SqliteStore>::clone(&store))?;
        let mut writer = Self {
            config,
            store,
            open: Arc::new(open),
            runs: HashMap::new(),
            warned: 0,
            has_failed: false,
        };
        writer.log_warnings();
        Ok(writer)
    }

    fn write(&mut self, message: Message) -> Result<(), StoreError> {
        let store = &*self.store;
        match message {
            Message::Started { mut record, script } => {
                record.owner = self.open.owner.id().to_owned();
                let mut run = OpenRun {
                    record: *record,
                    script,
                    left: self.config.bytes / 4,
                    is_begun: false,
                };
                let kept = if self.config.bodies == Bodies::All {
                    run.keep_script(store)
                } else {
                    Ok(())
                };
                let begun = run.begin(store);
                self.runs.insert(run.record.id.clone(), run);
                kept.and(begun)
            }
            Message::Call {
                mut call,
                arguments,
                result,
            } => {
                let Some(run) = self.runs.get_mut(&call.run) else {
                    return Ok(());
                };
                run.begin(store)?;
                let mut kept = Ok(());
                let texts = [(&mut call.arguments, arguments), (&mut call.result, result)];
                for (body, text) in texts {
                    if let (Some(body), Some(text)) = (body, text) {
                        match run.keep(store, &text) {
                            Ok(blob) => body.blob = blob,
                            Err(error) => kept = Err(error),
                        }
                    }
                }
                let recorded = run.with_record(store, |run| store.record_call(&run.user, &call));
                recorded.and(kept)
            }
            Message::Reported {
                run,
                report,
                mut output,
                text,
            } => {
                let Some(run) = self.runs.get_mut(&run) else {
                    return Ok(());
                };
                run.record.report = Some(report);
                let kept = text.map_or(Ok(None), |text| run.keep(store, &text));
                output.blob = kept.clone().unwrap_or_default();
                run.record.output = Some(output);
                kept.map(drop)
            }
            Message::Ended {
                run,
                time,
                status,
                counts,
            } => {
                let Some(mut run) = self.runs.remove(&run) else {
                    return Ok(());
                };
                run.record.report.get_or_insert_with(|| json!({}))["counts"] = counts;
                run.end(store, time, status)
            }
            Message::Flush(done) => {
                self.log_warnings();
                let _ = done.send(());
                Ok(())
            }
        }
    }

    /// Closes the runs of processes that ended, and removes old runs.
    fn tidy(&mut self) -> Result<(), StoreError> {
        let now = Timestamp::now();
        let oldest = now.checked_sub(DAY.saturating_mul(self.config.days));
        self.store.close_lost(now)?;
        self.store
            .prune(oldest.unwrap_or(Timestamp::MIN), self.config.bytes)?;
        self.log_warnings();
        Ok(())
    }

    fn log_warnings(&mut self) {
        let warnings = self.store.new_warnings();
        for warning in warnings.iter().skip(self.warned) {
            tracing::error!("{warning}");
        }
        self.warned = warnings.len();
    }

    /// Logs the first failure.
    fn note(&mut self, written: Result<(), StoreError>) {
        if let Err(error) = written
            && !std::mem::replace(&mut self.has_failed, true)
        {
            log_unrecorded(&error);
        }
    }
}

impl OpenRun {
    /// Writes the run's first record, unless that is done.
    fn begin(&mut self, store: &SqliteStore) -> Result<(), StoreError> {
        if !self.is_begun {
            store.begin_run(&self.record)?;
            self.is_begun = true;
        }
        Ok(())
    }

    /// Does an operation on the run's record. If that is gone, as the database was replaced, it is
    /// begun again.
    fn with_record(
        &mut self,
        store: &SqliteStore,
        act: impl Fn(&RunRecord) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.begin(store)?;
        match act(&self.record) {
            Err(error) if error.kind() == StoreErrorKind::NotFound => {
                let access = Access::User(&self.record.user);
                let texts = self.record.script.iter_mut();
                for text in texts.chain(&mut self.record.output) {
                    let blob = text.blob.take();
                    text.blob = blob.filter(|hash| store.blob(access, hash).is_ok());
                }
                self.is_begun = false;
                self.begin(store)?;
                act(&self.record)
            }
            done => done,
        }
    }

    fn end(
        &mut self,
        store: &SqliteStore,
        time: Timestamp,
        status: RunStatus,
    ) -> Result<(), StoreError> {
        let kept = if status == RunStatus::Completed {
            Ok(())
        } else {
            self.keep_script(store)
        };
        let ended = self.with_record(store, |run| {
            let mut run = run.clone();
            run.ended = Some(time);
            run.status = status;
            store.end_run(&run)
        });
        ended.and(kept)
    }

    /// Keeps the script, unless that is done.
    fn keep_script(&mut self, store: &SqliteStore) -> Result<(), StoreError> {
        if let Some(text) = self.script.take() {
            let blob = self.keep(store, &text)?;
            if let Some(script) = &mut self.record.script {
                script.blob = blob;
            }
        }
        Ok(())
    }

    /// Keeps a text, and returns its hash; `None` if the run has too much text.
    fn keep(&mut self, store: &SqliteStore, text: &str) -> Result<Option<String>, StoreError> {
        let Some(left) = self.left.checked_sub(text.len() as u64) else {
            return Ok(None);
        };
        let hash = store.put_blob(&self.record.user, &self.record.id, text.as_bytes())?;
        self.left = left;
        Ok(Some(hash))
    }
}
