//! A store in a folder: an SQLite database, blobs as files, and a lock file for each owner.
//!
//! Several processes share it by SQLite's write-ahead log. `store.lock` is held while the database is
//! made, migrated, or set aside because it is damaged. Other processes then see a different file at
//! the path, and open it. A database that was set aside is not read again.

mod blobs;
mod folder;
mod open;
mod owners;
mod records;
mod rows;
mod warning;

use std::path::{Path, PathBuf};
use std::sync::Weak;

use jiff::Timestamp;
use parking_lot::Mutex;
use rusqlite::{Connection, TransactionBehavior};
use serde_json::json;

use self::folder::{FileId, Folder};
use self::open::Opened;
use self::owners::OwnerLock;
pub use self::warning::StoreWarning;
use crate::error::{StoreError, StoreErrorKind};
use crate::query::{Access, Cursor, Page, QuestionFilter, RunFilter, page_size};
use crate::records::{AnswerRecord, CallRecord, QuestionRecord, QuestionState, RunRecord};
use crate::store::{Lost, Owner, Pruned, Settled, Store};

type Result<T> = std::result::Result<T, StoreError>;

/// The limit of batches that are searched for a text for one page.
const MAX_BATCHES: usize = 10;

/// The limit of runs or files that one transaction removes, so that other writers wait shortly.
const REMOVED: usize = 20;

/// How safe a write is from a power failure. All writes are safe from the end of a process.
const USUAL: &str = "PRAGMA synchronous = NORMAL";
const SYNCED: &str = "PRAGMA synchronous = FULL";

/// A [`Store`] in a folder. In one process its operations run one after the other.
#[derive(Debug)]
pub struct SqliteStore {
    folder: Folder,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    open: Opened,
    /// The databases that were set aside.
    damaged: Vec<PathBuf>,
    /// The owners that were registered here.
    owners: Vec<Weak<OwnerLock>>,
    /// See [`Store::changes`].
    changes: u64,
    /// The last `data_version`, which changes with writes of other connections.
    data_version: i64,
}

impl SqliteStore {
    /// Opens the store in a folder. Folder and database are made if they do not exist, for this user
    /// alone. A damaged database is set aside.
    ///
    /// # Errors
    ///
    /// `Foreign` for a folder of a different user, or one with other files that is open to others;
    /// `Newer` for a database that needs a newer program; and those of operations.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_folder(path).map_err(|error| error.at(path))
    }

    fn open_folder(path: &Path) -> Result<Self> {
        let folder = Folder::open(path)?;
        let mut open = open::open(&folder, None)?;
        let state = State {
            damaged: open.set_aside.take().into_iter().collect(),
            open,
            owners: Vec::new(),
            changes: 0,
            data_version: 0,
        };
        let state = Mutex::new(state);
        Ok(Self { folder, state })
    }

    /// The warnings about the folder: its file system, and databases that any process set aside.
    pub fn warnings(&self) -> Vec<StoreWarning> {
        self.warnings_with(self.folder.damaged())
    }

    /// The warnings about the folder's file system, and about databases that this value set aside.
    pub fn new_warnings(&self) -> Vec<StoreWarning> {
        self.warnings_with(self.state.lock().damaged.clone())
    }

    fn warnings_with(&self, damaged: Vec<PathBuf>) -> Vec<StoreWarning> {
        let kind = self.folder.network_file_system();
        let network = kind.map(|kind| StoreWarning::NetworkFileSystem {
            folder: self.folder.path().to_owned(),
            kind,
        });
        let damaged = damaged
            .into_iter()
            .map(|set_aside| StoreWarning::Damaged { set_aside });
        network.into_iter().chain(damaged).collect()
    }

    /// The number of runs, and the size of all records and blobs.
    ///
    /// # Errors
    ///
    /// Those of operations.
    pub fn usage(&self) -> Result<(u64, u64)> {
        self.read(|it| Ok((records::count(it)?, records::size(it)?)))
    }

    /// Reads by single statements, without a transaction around them.
    fn read<T>(&self, act: impl Fn(&Connection) -> Result<T>) -> Result<T> {
        self.with(|state| act(&state.open.connection))
    }

    /// Writes in one transaction. `act` may run twice.
    fn write<T>(&self, safety: &str, mut act: impl FnMut(&Connection) -> Result<T>) -> Result<T> {
        self.with(|state| {
            let connection = &mut state.open.connection;
            // It cannot be set in a transaction.
            connection.execute_batch(safety)?;
            let behavior = TransactionBehavior::Immediate;
            let transaction = connection.transaction_with_behavior(behavior)?;
            let value = act(&transaction)?;
            transaction.commit()?;
            state.changes += 1;
            Ok(value)
        })
    }

    /// Does an operation, on a new connection if the database was set aside, and again if it is
    /// damaged or was set aside meanwhile.
    fn with<T>(&self, mut act: impl FnMut(&mut State) -> Result<T>) -> Result<T> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let first = self.follow(state).and_then(|_| act(state));
        let done = first.or_else(|error| {
            let is_reopened = if error.kind() == StoreErrorKind::Damaged {
                let suspect = state.open.file;
                self.reopen(state, Some(suspect)).map(|()| true)
            } else {
                self.follow(state)
            };
            if is_reopened? { act(state) } else { Err(error) }
        });
        done.map_err(|error| error.at(self.folder.path()))
    }

    /// Opens the database anew if a different file is at its path; returns true if so.
    fn follow(&self, state: &mut State) -> Result<bool> {
        let is_replaced = self.folder.file_id() != Some(state.open.file);
        if is_replaced {
            self.reopen(state, None)?;
        }
        Ok(is_replaced)
    }

    fn reopen(&self, state: &mut State, suspect: Option<FileId>) -> Result<()> {
        let mut open = open::open(&self.folder, suspect)?;
        state.damaged.extend(open.set_aside.take());
        owners::renew(&self.folder, &mut state.owners)?;
        state.open = open;
        state.changes += 1;
        state.data_version = 0;
        Ok(())
    }

    /// Removes questions and blobs of runs without a record, and files of processes that ended. It
    /// looks at all files.
    fn sweep(&self, oldest: i64) -> Result<()> {
        self.write(USUAL, |it| records::remove_stray(it, &self.folder, oldest))?;
        for files in blobs::old(&self.folder)?.chunks(REMOVED) {
            let abandoned = self.read(|it| blobs::without_row(it, files))?;
            if !abandoned.is_empty() {
                self.write(USUAL, |it| {
                    let mut files = abandoned.iter();
                    files.try_for_each(|file| blobs::remove_abandoned(it, file))
                })?;
            }
        }
        Ok(owners::tidy(&self.folder)?)
    }

    /// True if a run's script is kept and has a text.
    fn has_text(&self, run: &RunRecord, text: &str) -> bool {
        let script = run.script.as_ref();
        let hash = script.and_then(|script| script.blob.as_deref());
        let script = hash.and_then(|hash| blobs::read(&self.folder, hash).ok().flatten());
        script.is_some_and(|script| String::from_utf8_lossy(&script).contains(text))
    }
}

impl Store for SqliteStore {
    fn register_owner(&self) -> Result<Owner> {
        let registered = owners::register(&self.folder);
        let (owner, lock) = registered.map_err(|error| error.at(self.folder.path()))?;
        self.state.lock().owners.push(lock);
        Ok(owner)
    }

    fn close_lost(&self, now: Timestamp) -> Result<Lost> {
        let mut all = Lost::default();
        for owner in self.read(records::owners)? {
            if !owners::is_alive(&self.folder, &owner) {
                let lost = self.write(USUAL, |it| records::close_owner(it, &owner, now))?;
                all.runs += lost.runs;
                all.questions += lost.questions;
            }
        }
        Ok(all)
    }

    fn begin_run(&self, run: &RunRecord) -> Result<()> {
        self.write(USUAL, |it| records::begin_run(it, run))
    }

    fn end_run(&self, run: &RunRecord) -> Result<()> {
        self.write(USUAL, |it| records::end_run(it, run))
    }

    fn run(&self, access: Access<'_>, id: &str) -> Result<RunRecord> {
        self.read(|it| records::run(it, access, id))
    }

    fn runs(&self, access: Access<'_>, filter: &RunFilter) -> Result<Page<RunRecord>> {
        let limit = page_size(filter.limit);
        let mut items = Vec::new();
        let mut next = filter.after.clone();
        for _ in 0..MAX_BATCHES {
            let batch = self.read(|it| records::runs(it, access, filter, next.as_ref(), limit))?;
            let is_last = batch.len() < limit;
            for run in batch {
                next = Some(Cursor::after(run.started, &run.id));
                // Scripts are read between the queries.
                let text = filter.text.as_deref();
                if text.is_none_or(|text| self.has_text(&run, text)) {
                    items.push(run);
                }
                if items.len() == limit {
                    return Ok(Page { items, next });
                }
            }
            if is_last {
                next = None;
                break;
            }
        }
        Ok(Page { items, next })
    }

    fn remove_run(&self, access: Access<'_>, id: &str) -> Result<()> {
        self.write(USUAL, |it| {
            records::remove_run(it, &self.folder, access, id)
        })
    }

    fn record_call(&self, user: &str, call: &CallRecord) -> Result<()> {
        self.write(USUAL, |it| records::record_call(it, user, call))
    }

    fn calls(
        &self,
        access: Access<'_>,
        run: &str,
        after: u32,
        limit: usize,
    ) -> Result<Vec<CallRecord>> {
        self.read(|it| records::calls(it, access, run, after, page_size(limit)))
    }

    fn open_question(&self, question: &QuestionRecord) -> Result<()> {
        self.write(SYNCED, |it| records::open_question(it, question))
    }

    fn answer_question(
        &self,
        access: Access<'_>,
        id: &str,
        answer: &AnswerRecord,
    ) -> Result<Settled> {
        let state = QuestionState::Answered;
        let members = json!({
            "state": state, "closed": answer.at, "answer": answer, "texts": null,
        });
        self.write(SYNCED, |it| {
            records::expire(it, access, Some(id), answer.at)?;
            records::settle(it, access, id, &members)
        })
    }

    fn withdraw_question(
        &self,
        user: &str,
        id: &str,
        reason: &str,
        now: Timestamp,
    ) -> Result<Settled> {
        let members = records::withdrawn(reason, now);
        let access = Access::User(user);
        self.write(SYNCED, |it| records::settle(it, access, id, &members))
    }

    fn expire_questions(&self, access: Access<'_>, now: Timestamp) -> Result<u64> {
        self.write(SYNCED, |it| records::expire(it, access, None, now))
    }

    fn question(&self, access: Access<'_>, id: &str) -> Result<QuestionRecord> {
        self.read(|it| records::question(it, access, id))
    }

    fn questions(
        &self,
        access: Access<'_>,
        filter: &QuestionFilter,
    ) -> Result<Page<QuestionRecord>> {
        let limit = page_size(filter.limit);
        let items = self.read(|it| records::questions(it, access, filter, limit))?;
        let last = items.last().filter(|_| items.len() == limit);
        let next = last.map(|last| Cursor::after(last.asked, &last.id));
        Ok(Page { items, next })
    }

    fn put_blob(&self, user: &str, run: &str, bytes: &[u8]) -> Result<String> {
        let hash = blobs::hash(bytes);
        let file = blobs::write(&self.folder, bytes);
        let mut file = Some(file.map_err(|error| error.at(self.folder.path()))?);
        self.write(USUAL, |it| {
            records::add_blob(it, user, run, &hash, bytes.len())?;
            // The file is there before others see the row.
            file.take()
                .map_or(Ok(()), |file| blobs::place(&self.folder, &hash, file))
        })?;
        Ok(hash)
    }

    fn blob(&self, access: Access<'_>, hash: &str) -> Result<Vec<u8>> {
        let has_blob = self.read(|it| records::has_blob(it, access, hash))?;
        let bytes = if has_blob {
            blobs::read(&self.folder, hash)?
        } else {
            None
        };
        bytes.ok_or_else(|| StoreError::not_found("blob", hash))
    }

    fn prune(&self, oldest: Timestamp, bytes: u64) -> Result<Pruned> {
        let oldest = oldest.as_millisecond();
        let mut pruned = Pruned::default();
        loop {
            pruned.bytes = self.read(records::size)?;
            let (before, excess) = match pruned.bytes.saturating_sub(bytes) {
                0 => (oldest, u64::MAX),
                excess => (i64::MAX, excess),
            };
            // Reading needs no lock of writers.
            let found = self.read(|it| records::oldest(it, before, excess))?;
            if found.is_empty() {
                break;
            }
            pruned.runs += self.write(USUAL, |it| {
                records::remove_oldest(it, &self.folder, before, excess)
            })?;
        }
        let now = Timestamp::now().as_millisecond();
        let is_swept = self.read(|it| records::is_swept(it, now))?;
        if !is_swept {
            self.write(USUAL, |it| records::set_swept(it, now))?;
            self.sweep(oldest)?;
        }
        if !is_swept || pruned.runs > 0 {
            self.read(open::release)?;
        }
        Ok(pruned)
    }

    fn changes(&self) -> Result<u64> {
        self.with(|state| {
            let sql = "PRAGMA data_version";
            let version: i64 = state.open.connection.query_row(sql, [], |row| row.get(0))?;
            if version != state.data_version {
                state.data_version = version;
                state.changes += 1;
            }
            Ok(state.changes)
        })
    }
}
