//! Queries: users, filters and pages.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{StoreError, StoreErrorKind};
use crate::records::{QuestionState, RunStatus};

const DEFAULT_PAGE: usize = 50;
const MAX_PAGE: usize = 500;

/// The users with records that an operation reaches; records of other users are not found. A program
/// without users has one, with the empty name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access<'a> {
    /// One user.
    User(&'a str),
    /// The named users, for an approver.
    Users(&'a [String]),
    /// All users that have a name, for an operator of a server with users.
    Named,
    /// All users.
    All,
}

/// A place in a list, to continue after. Its text has no meaning for callers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(String);

impl Cursor {
    /// The place after a record, by its time and id.
    pub(crate) fn after(time: Timestamp, id: &str) -> Self {
        Self(format!("{}.{id}", time.as_millisecond()))
    }

    /// The time in milliseconds, and the id.
    pub(crate) fn parts(&self) -> Result<(i64, &str), StoreError> {
        let parts = self.0.split_once('.');
        let parts = parts.and_then(|(time, id)| Some((time.parse().ok()?, id)));
        let message = "the list has no such place; start it anew";
        parts.ok_or_else(|| StoreError::new(StoreErrorKind::NotFound, message))
    }
}

impl From<String> for Cursor {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The records. There may be fewer than the limit, even none, although more follow.
    pub items: Vec<T>,
    /// The place to continue; `None` at the end of the list.
    pub next: Option<Cursor>,
}

/// Conditions of a list of runs. All must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RunFilter {
    /// Runs that started at this time or later.
    pub since: Option<Timestamp>,
    /// Runs that started before this time.
    pub until: Option<Timestamp>,
    pub status: Option<RunStatus>,
    /// Runs with a call of this function or tool.
    pub tool: Option<String>,
    /// Runs with this text in their script. Runs without a kept script do not match.
    pub text: Option<String>,
    /// The place to continue.
    pub after: Option<Cursor>,
    /// The limit of records, up to 500; 0 for the default of 50.
    pub limit: usize,
}

/// Conditions of a list of questions. All must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct QuestionFilter {
    pub state: Option<QuestionState>,
    /// Questions of this run.
    pub run: Option<String>,
    /// Questions of this owner. A query does not set it.
    #[serde(skip)]
    pub owner: Option<String>,
    /// The place to continue.
    pub after: Option<Cursor>,
    /// As [`RunFilter::limit`].
    pub limit: usize,
}

/// The limit of records in a page.
pub(crate) fn page_size(limit: usize) -> usize {
    match limit {
        0 => DEFAULT_PAGE,
        limit => limit.min(MAX_PAGE),
    }
}
