//! The operations on records. Each runs in the transaction of its caller.

use jiff::Timestamp;
use rusqlite::{Connection, named_params};
use serde_json::{Value, json};

use super::folder::Folder;
use super::rows::{Params, execute, exists, of_users, records, text, texts, users, word};
use super::{REMOVED, blobs};
use crate::error::{StoreError, StoreErrorKind};
use crate::query::{Access, Cursor, QuestionFilter, RunFilter};
use crate::records::{CallRecord, QuestionRecord, QuestionState, RunRecord, RunStatus};
use crate::store::{Lost, Settled};

type Result<T> = std::result::Result<T, StoreError>;

const RUN: &str = "run";
const QUESTION: &str = "question";

pub(super) fn begin_run(connection: &Connection, run: &RunRecord) -> Result<()> {
    let sql = "INSERT INTO runs (id, started, record) VALUES (:id, :started, :record)";
    execute(
        connection,
        sql,
        named_params! {
            ":id": run.id,
            ":started": run.started.as_millisecond(),
            ":record": text(run)?,
        },
    )?;
    Ok(())
}

pub(super) fn end_run(connection: &Connection, run: &RunRecord) -> Result<()> {
    let (Some(ended), true) = (run.ended, run.status != RunStatus::Running) else {
        return Err(conflict(RUN, &run.id, "has not ended"));
    };
    let changed = execute(
        connection,
        "UPDATE runs SET record = :record
        WHERE id = :id AND user = :user AND status IN ('running', 'lost')",
        named_params! { ":id": run.id, ":user": run.user, ":record": text(run)? },
    )?;
    if changed == 0 {
        run_status(connection, Access::User(&run.user), &run.id)?;
        return Err(conflict(RUN, &run.id, "ended before"));
    }
    withdraw_all(connection, "run", &run.id, "the run ended", ended)?;
    Ok(())
}

pub(super) fn run(connection: &Connection, access: Access<'_>, id: &str) -> Result<RunRecord> {
    let sql = concat!("SELECT record FROM runs WHERE id = :id AND ", of_users!());
    one(connection, sql, RUN, access, id)
}

/// The status of a run. Its record may be one that this version cannot read.
fn run_status(connection: &Connection, access: Access<'_>, id: &str) -> Result<String> {
    let sql = concat!("SELECT status FROM runs WHERE id = :id AND ", of_users!());
    let params = named_params! { ":id": id, ":users": users(access) };
    let found = texts(connection, sql, params)?.pop();
    found.ok_or_else(|| StoreError::not_found(RUN, id))
}

/// Runs of a list after a place, without the condition for the script's text.
pub(super) fn runs(
    connection: &Connection,
    access: Access<'_>,
    filter: &RunFilter,
    after: Option<&Cursor>,
    limit: usize,
) -> Result<Vec<RunRecord>> {
    let (time, id) = after.map(Cursor::parts).transpose()?.unzip();
    let sql = concat!(
        "SELECT json_remove(record, '$.report') FROM runs
        WHERE (:since IS NULL OR started >= :since)
            AND (:until IS NULL OR started < :until)
            AND (:status IS NULL OR status = :status)
            AND (:tool IS NULL OR EXISTS (SELECT 1 FROM calls
                WHERE calls.run = runs.id AND (function = :tool OR tool = :tool)))
            AND (:time IS NULL OR (started, id) < (:time, :id))
            AND ",
        of_users!(),
        " ORDER BY started DESC, id DESC LIMIT :limit",
    );
    records(
        connection,
        sql,
        named_params! {
            ":since": filter.since.map(Timestamp::as_millisecond),
            ":until": filter.until.map(Timestamp::as_millisecond),
            ":status": word(filter.status),
            ":tool": filter.tool,
            ":time": time,
            ":id": id,
            ":users": users(access),
            ":limit": rows(limit),
        },
    )
}

/// Removes a run that is not running, with all that belongs to it.
pub(super) fn remove_run(
    connection: &Connection,
    folder: &Folder,
    access: Access<'_>,
    id: &str,
) -> Result<()> {
    if run_status(connection, access, id)? == "running" {
        return Err(conflict(RUN, id, "is running; cancel it first"));
    }
    let params = named_params! { ":id": id };
    // Its calls go with it.
    execute(connection, "DELETE FROM runs WHERE id = :id", params)?;
    execute(connection, "DELETE FROM questions WHERE run = :id", params)?;
    blobs::remove(connection, folder, id)
}

/// The oldest runs that started before a time and are not running: a few, and no more than are
/// needed for about these bytes.
pub(super) fn oldest(connection: &Connection, before: i64, bytes: u64) -> Result<Vec<String>> {
    let sql = "SELECT id FROM
            (SELECT id, started, sum(bytes) OVER (ORDER BY started, id) - bytes AS earlier FROM
                (SELECT id, started, length(record)
                    + (SELECT coalesce(sum(length(record)), 0) FROM calls WHERE run = runs.id)
                    + (SELECT coalesce(sum(bytes), 0) FROM blobs WHERE run = runs.id) AS bytes
                FROM runs WHERE status <> 'running' AND started < :before
                ORDER BY started, id LIMIT :limit))
        WHERE earlier < :bytes ORDER BY started, id";
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let params = named_params! { ":before": before, ":bytes": bytes, ":limit": rows(REMOVED) };
    texts(connection, sql, params)
}

/// Removes runs as [`oldest`] gives them; returns their number.
pub(super) fn remove_oldest(
    connection: &Connection,
    folder: &Folder,
    before: i64,
    bytes: u64,
) -> Result<u64> {
    let ids = oldest(connection, before, bytes)?;
    for id in &ids {
        remove_run(connection, folder, Access::All, id)?;
    }
    Ok(ids.len() as u64)
}

/// True if any process has swept the store in the hour before a time.
pub(super) fn is_swept(connection: &Connection, now: i64) -> Result<bool> {
    let sql = "SELECT 1 FROM meta WHERE name = 'swept' AND value BETWEEN :now - 3600000 AND :now";
    exists(connection, sql, named_params! { ":now": now })
}

pub(super) fn set_swept(connection: &Connection, now: i64) -> Result<()> {
    let sql = "INSERT INTO meta (name, value) VALUES ('swept', :now)
        ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    execute(connection, sql, named_params! { ":now": now })?;
    Ok(())
}

/// Removes old questions and blobs of runs that have no record.
pub(super) fn remove_stray(connection: &Connection, folder: &Folder, before: i64) -> Result<()> {
    let sql = "SELECT run FROM questions WHERE asked < :before AND state <> 'open'
            AND NOT EXISTS (SELECT 1 FROM runs WHERE id = questions.run)
        UNION SELECT run FROM blobs WHERE written < :before
            AND NOT EXISTS (SELECT 1 FROM runs WHERE id = blobs.run)";
    for run in texts(connection, sql, named_params! { ":before": before })? {
        let sql = "DELETE FROM questions WHERE run = :run AND state <> 'open'";
        execute(connection, sql, named_params! { ":run": run })?;
        blobs::remove(connection, folder, &run)?;
    }
    Ok(())
}

/// The number of all runs.
pub(super) fn count(connection: &Connection) -> Result<u64> {
    let count: i64 = connection.query_row("SELECT count(*) FROM runs", [], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// The size of all records and blobs.
pub(super) fn size(connection: &Connection) -> Result<u64> {
    let sql = "SELECT page_size * (page_count - freelist_count)
            + (SELECT coalesce(sum(bytes), 0) FROM
                (SELECT max(bytes) AS bytes FROM blobs GROUP BY hash))
        FROM pragma_page_size, pragma_page_count, pragma_freelist_count";
    let size: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(size.unsigned_abs())
}

pub(super) fn record_call(connection: &Connection, user: &str, call: &CallRecord) -> Result<()> {
    run_status(connection, Access::User(user), &call.run)?;
    let sql = "INSERT INTO calls (run, ordinal, record) VALUES (:run, :ordinal, :record)
        ON CONFLICT (run, ordinal) DO UPDATE SET record = excluded.record
        WHERE calls.record ->> '$.ended' IS NULL";
    execute(
        connection,
        sql,
        named_params! { ":run": call.run, ":ordinal": call.ordinal, ":record": text(call)? },
    )?;
    Ok(())
}

pub(super) fn calls(
    connection: &Connection,
    access: Access<'_>,
    run: &str,
    after: u32,
    limit: usize,
) -> Result<Vec<CallRecord>> {
    run_status(connection, access, run)?;
    let sql = "SELECT record FROM calls WHERE run = :run AND ordinal > :after
        ORDER BY ordinal LIMIT :limit";
    let params = named_params! { ":run": run, ":after": after, ":limit": rows(limit) };
    records(connection, sql, params)
}

pub(super) fn open_question(connection: &Connection, question: &QuestionRecord) -> Result<()> {
    if question.state != QuestionState::Open || question.answer.is_some() {
        return Err(conflict(QUESTION, &question.id, "is not open"));
    }
    check_run(connection, &question.user, &question.run)?;
    let sql = "INSERT INTO questions (id, asked, expires, record)
        VALUES (:id, :asked, :expires, :record)";
    execute(
        connection,
        sql,
        named_params! {
            ":id": question.id,
            ":asked": question.asked.as_millisecond(),
            ":expires": question.expires.as_millisecond(),
            ":record": text(question)?,
        },
    )?;
    Ok(())
}

/// Changes members of a question if it is open.
pub(super) fn settle(
    connection: &Connection,
    access: Access<'_>,
    id: &str,
    members: &Value,
) -> Result<Settled> {
    let sql = concat!(
        "UPDATE questions SET record = json_patch(record, :members)
        WHERE id = :id AND state = 'open' AND ",
        of_users!(),
    );
    let params = named_params! {
        ":id": id,
        ":members": text(members)?,
        ":users": users(access),
    };
    let is_first = execute(connection, sql, params)? == 1;
    let question = question(connection, access, id)?;
    Ok(Settled { is_first, question })
}

/// Expires the open question with this id, or all of them; returns their number.
pub(super) fn expire(
    connection: &Connection,
    access: Access<'_>,
    id: Option<&str>,
    now: Timestamp,
) -> Result<u64> {
    let sql = concat!(
        "UPDATE questions SET record = json_remove(
            json_set(record, '$.state', 'expired', '$.closed', record ->> '$.expires'), '$.texts')
        WHERE state = 'open' AND expires <= :now AND (:id IS NULL OR id = :id) AND ",
        of_users!(),
    );
    let now = now.as_millisecond();
    let params = named_params! { ":now": now, ":id": id, ":users": users(access) };
    execute(connection, sql, params)
}

pub(super) fn question(
    connection: &Connection,
    access: Access<'_>,
    id: &str,
) -> Result<QuestionRecord> {
    let sql = concat!(
        "SELECT record FROM questions WHERE id = :id AND ",
        of_users!()
    );
    one(connection, sql, QUESTION, access, id)
}

pub(super) fn questions(
    connection: &Connection,
    access: Access<'_>,
    filter: &QuestionFilter,
    limit: usize,
) -> Result<Vec<QuestionRecord>> {
    let after = filter.after.as_ref();
    let (time, id) = after.map(Cursor::parts).transpose()?.unzip();
    let sql = concat!(
        "SELECT json_remove(record, '$.texts.whole', '$.texts.arguments') FROM questions
        WHERE (:state IS NULL OR state = :state)
            AND (:run IS NULL OR run = :run)
            AND (:owner IS NULL OR owner = :owner)
            AND (:time IS NULL OR (asked, id) > (:time, :id))
            AND ",
        of_users!(),
        " ORDER BY asked, id LIMIT :limit",
    );
    records(
        connection,
        sql,
        named_params! {
            ":state": word(filter.state),
            ":run": filter.run,
            ":owner": filter.owner,
            ":time": time,
            ":id": id,
            ":users": users(access),
            ":limit": rows(limit),
        },
    )
}

/// The owners of runs that have not ended, and of open questions.
pub(super) fn owners(connection: &Connection) -> Result<Vec<String>> {
    let sql = "SELECT owner FROM runs WHERE status = 'running'
        UNION SELECT owner FROM questions WHERE state = 'open'";
    texts(connection, sql, &[])
}

/// Closes the records of an owner that is no longer alive.
pub(super) fn close_owner(connection: &Connection, owner: &str, now: Timestamp) -> Result<Lost> {
    let runs = execute(
        connection,
        "UPDATE runs SET record = json_set(record, '$.status', 'lost', '$.ended', :now)
        WHERE owner = :owner AND status = 'running'",
        named_params! { ":owner": owner, ":now": now.to_string() },
    )?;
    let reason = "the process of the run ended";
    let questions = withdraw_all(connection, "owner", owner, reason, now)?;
    Ok(Lost { runs, questions })
}

/// Adds the row of a blob.
pub(super) fn add_blob(
    connection: &Connection,
    user: &str,
    run: &str,
    hash: &str,
    bytes: usize,
) -> Result<()> {
    check_run(connection, user, run)?;
    let sql = "INSERT INTO blobs (hash, run, user, bytes, written)
        VALUES (:hash, :run, :user, :bytes, :written) ON CONFLICT DO NOTHING";
    execute(
        connection,
        sql,
        named_params! {
            ":hash": hash,
            ":run": run,
            ":user": user,
            ":bytes": rows(bytes),
            ":written": Timestamp::now().as_millisecond(),
        },
    )?;
    Ok(())
}

/// True if a run of the access has this blob.
pub(super) fn has_blob(connection: &Connection, access: Access<'_>, hash: &str) -> Result<bool> {
    let sql = concat!("SELECT 1 FROM blobs WHERE hash = :hash AND ", of_users!());
    exists(
        connection,
        sql,
        named_params! { ":hash": hash, ":users": users(access) },
    )
}

/// Withdraws the open questions with this value in a column.
fn withdraw_all(
    connection: &Connection,
    column: &str,
    value: &str,
    reason: &str,
    now: Timestamp,
) -> Result<u64> {
    let sql = format!(
        "UPDATE questions SET record = json_patch(record, :members)
        WHERE {column} = :value AND state = 'open'"
    );
    let members = text(&withdrawn(reason, now))?;
    execute(
        connection,
        &sql,
        named_params! { ":value": value, ":members": members },
    )
}

/// The members of a question that is withdrawn.
pub(super) fn withdrawn(reason: &str, now: Timestamp) -> Value {
    let state = QuestionState::Withdrawn;
    json!({ "state": state, "closed": now, "withdrawn": reason, "texts": null })
}

/// Checks that a run is not of a different user. Its record may follow later.
fn check_run(connection: &Connection, user: &str, run: &str) -> Result<()> {
    let sql = "SELECT 1 FROM runs WHERE id = :run AND user <> :user";
    if exists(
        connection,
        sql,
        named_params! { ":run": run, ":user": user },
    )? {
        return Err(StoreError::not_found(RUN, run));
    }
    Ok(())
}

/// The record that a query finds for an id.
fn one<T: serde::de::DeserializeOwned>(
    connection: &Connection,
    sql: &str,
    noun: &str,
    access: Access<'_>,
    id: &str,
) -> Result<T> {
    let params: Params<'_> = named_params! { ":id": id, ":users": users(access) };
    let found = records(connection, sql, params)?.pop();
    found.ok_or_else(|| StoreError::not_found(noun, id))
}

fn conflict(noun: &str, id: &str, problem: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Conflict, format!("{noun} `{id}` {problem}"))
}

/// A number of rows or bytes for a column.
fn rows(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
