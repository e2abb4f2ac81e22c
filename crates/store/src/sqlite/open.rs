//! Opening a database: settings, migrations, damage.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::folder::{FileId, Folder};
use crate::error::{StoreError, StoreErrorKind};

/// The limit of waiting for other writers.
const BUSY_LIMIT: Duration = Duration::from_secs(2);
const CACHED_STATEMENTS: usize = 64;

/// The migrations in order; `user_version` counts those that a database has.
const MIGRATIONS: [&str; 1] = [include_str!("migrations/001.sql")];

/// The setting of a new database. It has an effect before the first table only, and takes the lock
/// of writers.
const NEW: &str = "PRAGMA auto_vacuum = INCREMENTAL";

const SETTINGS: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA foreign_keys = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA secure_delete = ON;
";

/// An open database.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) file: FileId,
    /// The new place of the damaged database, if this process set one aside.
    pub(super) set_aside: Option<PathBuf>,
}

/// Opens the database of a folder, made if it does not exist. A damaged one is set aside; `suspect`
/// is the file in which an error showed damage.
pub(super) fn open(folder: &Folder, suspect: Option<FileId>) -> Result<Opened, StoreError> {
    folder.prepare()?;
    let lock = folder.lock()?;
    let mut set_aside = None;
    // Another process may have set it aside first.
    if suspect.is_some() && suspect == folder.file_id() && is_damaged(folder) {
        set_aside = Some(folder.set_aside()?);
    }
    let connection = match connect(folder) {
        Err(error) if error.kind() == StoreErrorKind::Damaged => {
            set_aside = Some(folder.set_aside()?);
            connect(folder)?
        }
        connection => connection?,
    };
    let Some(file) = folder.file_id() else {
        let message = "its file was removed while it was opened; try again";
        return Err(StoreError::new(StoreErrorKind::Unavailable, message));
    };
    drop(lock);
    Ok(Opened {
        connection,
        file,
        set_aside,
    })
}

fn connect(folder: &Folder) -> Result<Connection, StoreError> {
    folder.make_database()?;
    let mut connection = raw(folder)?;
    if applied(&connection)? == 0 {
        connection.execute_batch(NEW)?;
    }
    connection.execute_batch(SETTINGS)?;
    migrate(&mut connection)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    Ok(connection)
}

fn raw(folder: &Folder) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(folder.database(), flags)?;
    connection.busy_timeout(BUSY_LIMIT)?;
    // The last connection to a file that was set aside would remove the log of its successor, which
    // has the same name.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// True if the whole database is damaged, and not only one connection's view of it.
fn is_damaged(folder: &Folder) -> bool {
    let verdict = raw(folder).and_then(|connection| {
        let sql = "PRAGMA quick_check(1)";
        Ok(connection.query_row(sql, [], |row| row.get::<_, String>(0))?)
    });
    match verdict {
        Ok(verdict) => verdict != "ok",
        Err(error) => error.kind() == StoreErrorKind::Damaged,
    }
}

/// Applies the migrations that are missing. A database of a newer version is used as it is if that
/// permits it.
fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    if applied(connection)? == MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Other processes may have migrated it.
    let applied = applied(&transaction)?;
    if applied > MIGRATIONS.len() {
        let sql = "SELECT value FROM meta WHERE name = 'min_reader'";
        let needed: i64 = transaction.query_row(sql, [], |row| row.get(0))?;
        if usize::try_from(needed).is_ok_and(|needed| needed <= MIGRATIONS.len()) {
            return Ok(());
        }
        let message = "a newer version of Callgate made it; update this one, or name a different \
                       folder";
        return Err(StoreError::new(StoreErrorKind::Newer, message));
    }
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(applied) {
        transaction.execute_batch(migration)?;
        transaction.execute_batch(&format!("PRAGMA user_version = {}", index + 1))?;
    }
    transaction.commit()?;
    Ok(())
}

/// Gives free pages back to the system, and empties the log, which has texts of closed questions.
pub(super) fn release(connection: &Connection) -> Result<(), StoreError> {
    let mut statement = connection.prepare("PRAGMA incremental_vacuum(2000)")?;
    let mut rows = statement.query([])?;
    // Each step releases one page.
    while rows.next()?.is_some() {}
    drop(rows);
    // While others use the log, it stays until the next time.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

fn applied(connection: &Connection) -> Result<usize, StoreError> {
    let applied: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    usize::try_from(applied).map_err(|_| {
        let message = format!("the file is damaged (it has version {applied}); move it away");
        StoreError::new(StoreErrorKind::Damaged, message)
    })
}
