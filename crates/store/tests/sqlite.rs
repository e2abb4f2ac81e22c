//! The store in a folder: the suite of every store, and what only files have.

mod suite;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::thread;

use callgate_store::{
    Access, QuestionTexts, SqliteStore, Store as _, StoreErrorKind, StoreWarning,
};
use rusqlite::Connection;
use suite::{Place, at, question, run};
use tempfile::TempDir;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("state/callgate")
    }

    fn database(&self) -> PathBuf {
        self.path().join("store.db")
    }

    /// A connection that the store knows nothing of.
    fn raw(&self) -> Connection {
        Connection::open(self.database()).expect("no error")
    }

    /// Moves everything from the log to the database, and overwrites the database.
    fn damage(&self) {
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        self.raw().execute_batch(checkpoint).expect("no error");
        let bytes = fs::metadata(self.database()).expect("no error").len();
        let noise = vec![0x5a; bytes.try_into().expect("no error")];
        let mut file = fs::OpenOptions::new()
            .write(true)
            .open(self.database())
            .expect("no error");
        file.write_all(&noise).expect("no error");
    }

    /// The files and folders with these words in their names.
    fn named(&self, word: &str) -> Vec<PathBuf> {
        let mut found = all_below(&self.path());
        found.retain(|path| path.to_string_lossy().contains(word));
        found
    }
}

impl Place for Folder {
    type Store = SqliteStore;

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path()).expect("no error")
    }
}

fn all_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).expect("no error") {
        let path = entry.expect("no error").path();
        if path.is_dir() {
            found.extend(all_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

macro_rules! suite {
    ($($test:ident)*) => {
        $(
            #[test]
            fn $test() {
                suite::$test(&Folder::new());
            }
        )*
    };
}

suite! {
    records_return_as_they_were_written
    records_of_other_users_are_not_found
    records_in_a_wrong_state_conflict
    one_of_eight_answers_is_first
    late_and_repeated_answers_have_no_effect
    expired_questions_leave_the_open_ones
    lists_have_pages_and_filters
    lists_leave_long_texts_out
    records_of_dead_owners_are_lost
    blobs_last_as_long_as_their_runs
    prune_removes_old_then_large
    changes_grow_with_writes_of_all
}

#[test]
fn two_connections_migrate_a_new_store_once() {
    let folder = Folder::new();
    thread::scope(|scope| {
        for number in 0..4 {
            let folder = &folder;
            scope.spawn(move || {
                let run = run(&format!("r{number}"), "ana", number);
                folder.open().begin_run(&run).expect("no error");
            });
        }
    });
    let store = folder.open();
    for number in 0..4 {
        store
            .run(Access::All, &format!("r{number}"))
            .expect("no error");
    }
    assert!(folder.named("damaged").is_empty());
}

#[test]
fn store_opens_while_others_write() {
    let folder = Folder::new();
    let first = folder.open();
    first.begin_run(&run("r1", "ana", 0)).expect("no error");
    let raw = folder.raw();
    raw.execute_batch("BEGIN IMMEDIATE").expect("no error");
    folder.open().run(Access::All, "r1").expect("no error");
}

#[test]
fn files_and_folders_are_for_their_user_alone() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path()).expect("no error");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("no error");
    let store = folder.open();
    let _owner = store.register_owner().expect("no error");
    store
        .put_blob("ana", "r1", b"let a = 1;")
        .expect("no error");
    store.begin_run(&run("r1", "ana", 0)).expect("no error");
    let paths = all_below(&folder.path());
    assert!(paths.len() > 8, "{paths:?}");
    for path in paths {
        let found = fs::metadata(&path).expect("no error");
        let expected = if found.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(found.mode() & 0o777, expected, "{}", path.display());
    }
}

#[test]
fn folder_of_another_user_is_refused() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path()).expect("no error");
    // Only root can give a folder away; the folder of root is another user's otherwise.
    let theirs = match chown(folder.path(), Some(12_345), None) {
        Ok(()) => folder.path(),
        Err(_) => PathBuf::from("/usr"),
    };
    let error = SqliteStore::open(&theirs).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Foreign);
}

#[test]
fn shared_folder_with_other_files_is_refused() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path()).expect("no error");
    fs::write(folder.path().join("plan.txt"), "ours").expect("no error");
    let set_mode = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode));
    set_mode(0o750).expect("no error");
    let error = SqliteStore::open(&folder.path()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Foreign);
    assert!(error.to_string().contains("other files"), "{error}");
    let found = fs::metadata(folder.path()).expect("no error");
    assert_eq!(found.mode() & 0o777, 0o750);
    // A store that was opened for others is closed to them again.
    set_mode(0o700).expect("no error");
    folder.open();
    set_mode(0o750).expect("no error");
    folder.open();
    let found = fs::metadata(folder.path()).expect("no error");
    assert_eq!(found.mode() & 0o777, 0o700);
}

#[test]
fn newer_store_decides_who_may_use_it() {
    let folder = Folder::new();
    folder
        .open()
        .begin_run(&run("r1", "ana", 0))
        .expect("no error");
    let raw = folder.raw();
    raw.execute_batch("ALTER TABLE runs ADD COLUMN later TEXT; PRAGMA user_version = 40")
        .expect("no error");
    let store = folder.open();
    store.begin_run(&run("r2", "ana", 1)).expect("no error");
    raw.execute_batch("UPDATE meta SET value = 40 WHERE name = 'min_reader'")
        .expect("no error");
    let error = SqliteStore::open(&folder.path()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Newer);
    assert!(folder.named("damaged").is_empty());
}

#[test]
fn record_with_an_unknown_word_is_newer() {
    let folder = Folder::new();
    let store = folder.open();
    store.begin_run(&run("r1", "ana", 0)).expect("no error");
    let sql = "UPDATE runs SET record = json_set(record, '$.status', 'paused')";
    folder.raw().execute_batch(sql).expect("no error");
    let error = store.run(Access::All, "r1").unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Newer);
}

#[test]
fn usage_counts_runs_of_all() {
    let folder = Folder::new();
    let (store, other) = (folder.open(), folder.open());
    for (id, user) in [("r1", "ana"), ("r2", "ben")] {
        other.begin_run(&run(id, user, 0)).expect("no error");
    }
    let (_, before) = store.usage().expect("no error");
    store.put_blob("ana", "r1", &[7; 5_000]).expect("no error");
    let (runs, bytes) = store.usage().expect("no error");
    assert_eq!(runs, 2);
    assert!(bytes >= before + 5_000, "{before} {bytes}");
}

#[test]
fn unreadable_runs_can_be_removed() {
    let folder = Folder::new();
    let store = folder.open();
    for id in ["r1", "r2"] {
        store.begin_run(&run(id, "ana", 0)).expect("no error");
    }
    let sql = "UPDATE runs SET record = json_set(record, '$.status', 'paused', '$.ended', 'dusk')";
    folder.raw().execute_batch(sql).expect("no error");
    store.remove_run(Access::All, "r1").expect("no error");
    let pruned = store.prune(at(1), u64::MAX).expect("no error");
    assert_eq!(pruned.runs, 1);
}

#[test]
fn damaged_store_is_replaced_by_its_next_opener() {
    let folder = Folder::new();
    let store = folder.open();
    store.begin_run(&run("r1", "ana", 0)).expect("no error");
    folder.damage();
    let opener = folder.open();
    let warnings = opener.warnings();
    let [.., StoreWarning::Damaged { set_aside }] = warnings.as_slice() else {
        panic!("{warnings:?}");
    };
    assert!(set_aside.is_file());
    opener.begin_run(&run("r2", "ana", 1)).expect("no error");
    // The other connection has the old file open.
    store.run(Access::All, "r2").expect("no error");
    store.begin_run(&run("r3", "ana", 2)).expect("no error");
    drop(store);
    opener.run(Access::All, "r3").expect("no error");
    folder.open().run(Access::All, "r3").expect("no error");
}

#[test]
fn damage_under_an_open_store_is_set_aside() {
    let folder = Folder::new();
    let (store, other) = (folder.open(), folder.open());
    store.begin_run(&run("r1", "ana", 0)).expect("no error");
    folder.damage();
    let error = store.run(Access::All, "r1").unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NotFound);
    assert_eq!(store.new_warnings().len(), 1);
    store.begin_run(&run("r2", "ana", 1)).expect("no error");
    other.run(Access::All, "r2").expect("no error");
    assert!(other.new_warnings().is_empty());
    // All see the file in the folder.
    assert_eq!(other.warnings(), store.new_warnings());
}

#[test]
fn foreign_file_at_the_place_is_set_aside() {
    for content in [b"notes, and no database at all".repeat(90), vec![0; 9_000]] {
        let folder = Folder::new();
        fs::create_dir_all(folder.path()).expect("no error");
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(folder.path(), private).expect("no error");
        fs::write(folder.database(), &content).expect("no error");
        folder
            .open()
            .begin_run(&run("r1", "ana", 0))
            .expect("no error");
        let damaged = folder.named("damaged");
        assert!(
            damaged
                .iter()
                .any(|path| fs::read(path).expect("no error") == content)
        );
    }
}

#[test]
fn removed_folder_is_made_again() {
    let folder = Folder::new();
    let store = folder.open();
    store.begin_run(&run("r1", "ana", 0)).expect("no error");
    fs::remove_dir_all(folder.path()).expect("no error");
    store.begin_run(&run("r2", "ana", 0)).expect("no error");
    store.put_blob("ana", "r2", b"1").expect("no error");
    folder.open().run(Access::All, "r2").expect("no error");
}

#[test]
fn owner_outlives_a_removed_folder() {
    let folder = Folder::new();
    let store = folder.open();
    let owner = store.register_owner().expect("no error");
    fs::remove_dir_all(folder.path()).expect("no error");
    let mut run = run("r1", "ana", 0);
    run.owner = owner.id().to_owned();
    store.begin_run(&run).expect("no error");
    let other = folder.open();
    assert_eq!(other.close_lost(at(1)).expect("no error").runs, 0);
    drop(owner);
    assert_eq!(other.close_lost(at(2)).expect("no error").runs, 1);
}

#[test]
fn blob_file_is_there_before_its_row() {
    let folder = Folder::new();
    let store = folder.open();
    let hash = store
        .put_blob("ana", "r1", b"let b = 2;")
        .expect("no error");
    let file = folder.path().join("blobs").join(&hash[..2]).join(&hash);
    assert_eq!(fs::read(&file).expect("no error"), b"let b = 2;");
    assert!(folder.named(".new-").is_empty());
    // A row that cannot be written leaves no file.
    let raw = folder.raw();
    raw.execute_batch("BEGIN IMMEDIATE").expect("no error");
    let error = store.put_blob("ana", "r1", b"let c = 3;").unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Locked);
    raw.execute_batch("ROLLBACK").expect("no error");
    assert!(folder.named(".new-").is_empty());
    store.blob(Access::All, &hash).expect("no error");
    // A file that a power failure has cut is not served.
    fs::write(&file, b"let").expect("no error");
    let error = store.blob(Access::All, &hash).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NotFound);
}

/// Writes a file that is two hours old.
fn write_old(path: &Path) {
    fs::write(path, b"half").expect("no error");
    let past = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 60 * 60);
    let file = fs::File::options().write(true).open(path);
    file.expect("no error")
        .set_modified(past)
        .expect("no error");
}

#[test]
fn prune_removes_abandoned_files_when_they_are_old() {
    let folder = Folder::new();
    let store = folder.open();
    let blobs = folder.path().join("blobs");
    fs::create_dir(blobs.join("ab")).expect("no error");
    let (old, new) = (blobs.join("ab/abandoned"), blobs.join(".new-file"));
    write_old(&old);
    fs::write(&new, b"half").expect("no error");
    store.prune(at(0), u64::MAX).expect("no error");
    assert!(!old.exists());
    assert!(new.exists());
}

#[test]
fn files_are_swept_once_an_hour() {
    let folder = Folder::new();
    folder.open().prune(at(0), u64::MAX).expect("no error");
    let old = folder.path().join("blobs/.new-old");
    write_old(&old);
    let other = folder.open();
    // With nothing to remove, no lock is needed.
    let raw = folder.raw();
    raw.execute_batch("BEGIN IMMEDIATE").expect("no error");
    other.prune(at(0), u64::MAX).expect("no error");
    raw.execute_batch("ROLLBACK").expect("no error");
    assert!(old.exists());
    let sql = "UPDATE meta SET value = value - 3600001 WHERE name = 'swept'";
    raw.execute_batch(sql).expect("no error");
    other.prune(at(0), u64::MAX).expect("no error");
    assert!(!old.exists());
}

#[test]
fn texts_of_closed_questions_leave_the_disk() {
    let folder = Folder::new();
    let store = folder.open();
    let mut texts = QuestionTexts::default();
    texts.short = "pays invoice 8812".to_owned();
    texts.whole = "pays invoice 8812 ".repeat(900);
    for (id, texts) in [("q1", Some(texts)), ("q2", None)] {
        let mut asked = question(id, "r1", "ana");
        asked.texts = texts;
        store.open_question(&asked).expect("no error");
    }
    let withdrawn = store.withdraw_question("ana", "q1", "done", at(20));
    assert!(withdrawn.expect("no error").is_first);
    store.prune(at(0), u64::MAX).expect("no error");
    store.question(Access::All, "q1").expect("no error");
    for path in folder.named("store.db") {
        let bytes = fs::read(&path).expect("no error");
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("8812"), "{}", path.display());
    }
}

#[test]
fn errors_of_the_store_name_folder_and_advice() {
    let folder = Folder::new();
    let store = folder.open();
    let raw = folder.raw();
    raw.execute_batch("BEGIN IMMEDIATE").expect("no error");
    let error = store.begin_run(&run("r1", "ana", 0)).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Locked);
    assert!(error.to_string().contains("state/callgate"), "{error}");
    assert!(error.to_string().ends_with("; try again"), "{error}");
}
