//! Internal crate of Callgate: the record of runs, calls and questions.
//!
//! [`Store`] is the trait; [`SqliteStore`] keeps the records in a folder that several processes share.
//! All operations block: call them on a thread of their own or with `spawn_blocking`. The ledger is the
//! promise and the store a copy that may lag. Only a question needs its record before it is shown.

mod error;
mod query;
mod records;
mod sqlite;
mod store;

pub use error::{StoreError, StoreErrorKind};
pub use query::{Access, Cursor, Page, QuestionFilter, RunFilter};
pub use records::{
    AnswerRecord, Body, CallRecord, Choice, Configuration, Offer, QuestionRecord, QuestionState,
    QuestionTexts, RunRecord, RunStatus,
};
pub use sqlite::{SqliteStore, StoreWarning};
pub use store::{Lost, OpenStore, Owner, Pruned, Settled, Store};
