//! The trait of stores.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::error::StoreError;
use crate::query::{Access, Page, QuestionFilter, RunFilter};
use crate::records::{AnswerRecord, CallRecord, QuestionRecord, RunRecord};

/// Keeps the records of runs, calls and questions.
///
/// Several processes may use one store, which need not be a file. Each operation is one transaction
/// unless its text says otherwise: it happens as a whole or not at all, and others see it as a whole.
/// An operation reaches records of the user it is given, or that its record names; all others are
/// [`NotFound`](crate::StoreErrorKind::NotFound). Operations block, for seconds while others write.
pub trait Store: Send + Sync {
    /// Registers this process, or a part of it, as an owner of runs and questions. The owner is alive
    /// until the value is dropped or the process ends in any way.
    fn register_owner(&self) -> Result<Owner, StoreError>;

    /// Finds owners that are no longer alive: their runs become lost, and their open questions
    /// withdrawn. Of all users; atomic for each owner.
    fn close_lost(&self, now: Timestamp) -> Result<Lost, StoreError>;

    /// Adds a run. `Conflict` if there is one with this id.
    fn begin_run(&self, run: &RunRecord) -> Result<(), StoreError>;

    /// Replaces the record of a run that has ended, and withdraws its open questions. A lost run can
    /// still end. `Conflict` if it ended before, or has not ended.
    fn end_run(&self, run: &RunRecord) -> Result<(), StoreError>;

    /// The run with this id.
    fn run(&self, access: Access<'_>, id: &str) -> Result<RunRecord, StoreError>;

    /// Runs, the newest first, without their reports. Not atomic: a run that is added or changed
    /// meanwhile may be missing.
    fn runs(&self, access: Access<'_>, filter: &RunFilter) -> Result<Page<RunRecord>, StoreError>;

    /// Removes a run with its calls, questions and blobs. `Conflict` if it is running.
    fn remove_run(&self, access: Access<'_>, id: &str) -> Result<(), StoreError>;

    /// Adds a call of a run, or replaces the one with its ordinal. Changes nothing if that one is
    /// complete, so a call can be recorded again harmlessly.
    fn record_call(&self, user: &str, call: &CallRecord) -> Result<(), StoreError>;

    /// The calls of a run with ordinals over `after`, in their order. `limit` is as in
    /// [`RunFilter::limit`].
    fn calls(
        &self,
        access: Access<'_>,
        run: &str,
        after: u32,
        limit: usize,
    ) -> Result<Vec<CallRecord>, StoreError>;

    /// Adds an open question, which is on the disk when this returns. The record of its run may
    /// follow. `Conflict` if there is a question with this id, or it is not open.
    fn open_question(&self, question: &QuestionRecord) -> Result<(), StoreError>;

    /// Answers a question: a compare-and-set, which takes effect if the question is open and does
    /// not expire before `answer.at`. The answer is on the disk when this returns. Otherwise the
    /// question shows the reason: the first answer, its expiry or its withdrawal. So the same answer
    /// may be sent twice.
    fn answer_question(
        &self,
        access: Access<'_>,
        id: &str,
        answer: &AnswerRecord,
    ) -> Result<Settled, StoreError>;

    /// Withdraws a question: a compare-and-set, which takes effect if it is open.
    fn withdraw_question(
        &self,
        user: &str,
        id: &str,
        reason: &str,
        now: Timestamp,
    ) -> Result<Settled, StoreError>;

    /// Expires the open questions with an expiry up to this time; returns their number.
    fn expire_questions(&self, access: Access<'_>, now: Timestamp) -> Result<u64, StoreError>;

    /// The question with this id.
    fn question(&self, access: Access<'_>, id: &str) -> Result<QuestionRecord, StoreError>;

    /// Questions, the oldest first, without `whole` and `arguments` of their texts.
    fn questions(
        &self,
        access: Access<'_>,
        filter: &QuestionFilter,
    ) -> Result<Page<QuestionRecord>, StoreError>;

    /// Keeps bytes as long as a run, and returns their hash for [`Body::blob`](crate::Body::blob).
    /// The record of the run may follow, and names the blob only once this has returned.
    fn put_blob(&self, user: &str, run: &str, bytes: &[u8]) -> Result<String, StoreError>;

    /// The bytes with this hash.
    fn blob(&self, access: Access<'_>, hash: &str) -> Result<Vec<u8>, StoreError>;

    /// Removes runs that started before `oldest` and are not running, and the oldest others until the
    /// store has at most `bytes`. Of all users; atomic for each run.
    fn prune(&self, oldest: Timestamp, bytes: u64) -> Result<Pruned, StoreError>;

    /// A number that grows when a record may have changed, by this process or others. It is cheap
    /// enough to be asked for several times a second.
    fn changes(&self) -> Result<u64, StoreError>;
}

/// An owner of runs and questions, alive until it is dropped.
pub struct Owner {
    id: String,
    _lock: Box<dyn Send + Sync>,
}

impl Owner {
    /// An owner that is alive until `lock` is dropped.
    pub fn new(id: String, lock: Box<dyn Send + Sync>) -> Self {
        Self { id, _lock: lock }
    }

    /// The id for records.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Owner").field(&self.id).finish()
    }
}

/// A store that this process has opened.
pub struct OpenStore {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The owner of this process's runs and questions.
    pub owner: Owner,
}

impl OpenStore {
    /// Registers this process as an owner.
    /// The error: as of [`Store::register_owner`].
    pub fn new(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let owner = store.register_owner()?;
        Ok(Self { store, owner })
    }
}

/// Numbers of records that [`Store::close_lost`] closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lost {
    pub runs: u64,
    pub questions: u64,
}

/// The result of a compare-and-set on a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// True if it took effect.
    pub is_first: bool,
    /// The question as it is now.
    pub question: QuestionRecord,
}

/// The result of [`Store::prune`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The number of runs that were removed.
    pub runs: u64,
    /// The size of the records and blobs that remain.
    pub bytes: u64,
}
