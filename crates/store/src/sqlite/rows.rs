//! Records as rows.

use rusqlite::types::Type;
use rusqlite::{Connection, Row, ToSql};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::error::{StoreError, StoreErrorKind};
use crate::query::Access;

/// Values by the names of their parameters.
pub(super) type Params<'a> = &'a [(&'a str, &'a dyn ToSql)];

/// The condition that an access covers a row's user. [`users`] is bound to `:users`.
macro_rules! of_users {
    () => {
        "(:users IS NULL OR user IN (SELECT value FROM json_each(:users))
            OR (:users = '{}' AND user <> ''))"
    };
}
pub(super) use of_users;

/// The users of an access as a JSON list; `{}` for those with a name, and `None` for all.
pub(super) fn users(access: Access<'_>) -> Option<String> {
    match access {
        Access::User(user) => Some(json!([user]).to_string()),
        Access::Users(users) => Some(json!(users).to_string()),
        Access::Named => Some("{}".to_owned()),
        Access::All => None,
    }
}

/// A record as JSON text.
pub(super) fn text<T: Serialize>(record: &T) -> Result<String, StoreError> {
    let text = serde_json::to_string(record);
    text.map_err(|error| StoreError::new(StoreErrorKind::Unavailable, error.to_string()))
}

/// The word of a status or state, as in a record.
pub(super) fn word<T: Serialize>(value: Option<T>) -> Option<String> {
    json!(value).as_str().map(str::to_owned)
}

/// Changes rows; returns their number.
pub(super) fn execute(
    connection: &Connection,
    sql: &str,
    params: Params<'_>,
) -> Result<u64, StoreError> {
    let changed = connection.prepare_cached(sql)?.execute(params)?;
    Ok(u64::try_from(changed).unwrap_or(u64::MAX))
}

/// True if there is a row.
pub(super) fn exists(
    connection: &Connection,
    sql: &str,
    params: Params<'_>,
) -> Result<bool, StoreError> {
    Ok(connection.prepare_cached(sql)?.exists(params)?)
}

/// The texts in the first column of the rows.
pub(super) fn texts(
    connection: &Connection,
    sql: &str,
    params: Params<'_>,
) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params, |row| row.get::<_, String>(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The records in the first column of the rows.
pub(super) fn records<T: DeserializeOwned>(
    connection: &Connection,
    sql: &str,
    params: Params<'_>,
) -> Result<Vec<T>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params, record::<T>)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn record<T: DeserializeOwned>(row: &Row<'_>) -> rusqlite::Result<T> {
    let record = serde_json::from_str(row.get_ref(0)?.as_str()?);
    record
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))
}
