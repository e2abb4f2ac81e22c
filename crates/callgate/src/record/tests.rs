//! Records in a store that is slow, full, damaged, or opened late.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use callgate_store::{Access, Body, CallRecord, OpenStore, RunRecord, RunStatus, SqliteStore};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::{Message, Recorder, writer};
use crate::config::{Bodies, StoreConfig};

/// The settings of a store in a folder, which keeps all texts.
fn config(folder: &Path) -> StoreConfig {
    StoreConfig {
        path: Some(folder.to_owned()),
        bodies: Bodies::All,
        ..StoreConfig::default()
    }
}

fn started(run: &str, script: Option<&str>) -> Message {
    let mut record = RunRecord::default();
    record.id = run.to_owned();
    record.started = Timestamp::now();
    record.script = script.map(|_| Body::default());
    Message::Started {
        record: Box::new(record),
        script: script.map(str::to_owned),
    }
}

fn call(run: &str, ordinal: u32, arguments: &str) -> Message {
    let mut call = CallRecord::default();
    call.run = run.to_owned();
    call.ordinal = ordinal;
    call.arguments = Some(Body::default());
    Message::Call {
        call: Box::new(call),
        arguments: Some(arguments.to_owned()),
        result: None,
    }
}

fn ended(run: &str) -> Message {
    Message::Ended {
        run: run.to_owned(),
        time: Timestamp::now(),
        status: RunStatus::Completed,
        counts: Value::Null,
    }
}

/// The ordinals of the calls of a run, and whether their arguments are kept.
fn calls(store: &OpenStore, run: &str) -> Vec<(u32, bool)> {
    let calls = store.store.calls(Access::All, run, 0, 0).expect("calls");
    let has_text = |body: &Option<Body>| body.as_ref().is_some_and(|body| body.blob.is_some());
    let calls = calls.iter();
    calls
        .map(|call| (call.ordinal, has_text(&call.arguments)))
        .collect()
}

#[tokio::test]
async fn call_is_recorded_without_its_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorder = Recorder::start(config(folder.path()));
    let store = recorder.opened().await.expect("the store");
    recorder.send(0, started("r-1", None));
    recorder.send(0, call("r-1", 1, "{}"));
    recorder.flush().await;
    let blobs = folder.path().join("blobs");
    fs::rename(&blobs, folder.path().join("moved")).expect("the texts");
    fs::write(&blobs, "in the way").expect("a file");
    recorder.send(0, call("r-1", 2, "{}"));
    recorder.flush().await;
    assert_eq!(calls(&store, "r-1"), [(1, true), (2, false)]);
}

#[tokio::test]
async fn run_keeps_a_quarter_of_the_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config(folder.path());
    config.bytes = 40_000;
    let recorder = Recorder::start(config);
    let store = recorder.opened().await.expect("the store");
    recorder.send(0, started("r-1", None));
    for (ordinal, bytes) in [(1, 8_000), (2, 3_000), (3, 2_000)] {
        recorder.send(bytes, call("r-1", ordinal, &"7".repeat(bytes)));
    }
    recorder.flush().await;
    let expected = [(1, true), (2, false), (3, true)];
    assert_eq!(calls(&store, "r-1"), expected);
}

#[tokio::test]
async fn many_texts_stay_within_the_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config(folder.path());
    config.bytes = 1 << 20;
    let recorder = Recorder::start(config);
    for number in 0..40 {
        let run = format!("r-{number}");
        recorder.send(0, started(&run, None));
        let text = format!("{number:04}").repeat(25_000);
        recorder.send(text.len(), call(&run, 1, &text));
        recorder.send(0, ended(&run));
    }
    recorder.flush().await;
    let store = SqliteStore::open(folder.path()).expect("the store");
    let (runs, bytes) = store.usage().expect("the usage");
    assert!(bytes < 3 << 19, "{bytes}");
    assert!(runs >= 5, "{runs}");
}

#[tokio::test]
async fn run_is_begun_again_in_a_new_database() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorder = Recorder::start(config(folder.path()));
    let store = recorder.opened().await.expect("the store");
    for run in ["r-1", "r-2"] {
        recorder.send(0, started(run, Some("return 8")));
    }
    recorder.send(0, call("r-1", 1, "{}"));
    recorder.flush().await;
    // As by a process that set it aside.
    fs::remove_file(folder.path().join("store.db")).expect("the database");
    recorder.send(0, call("r-1", 2, "{}"));
    for run in ["r-1", "r-2"] {
        recorder.send(0, ended(run));
    }
    recorder.flush().await;
    assert_eq!(calls(&store, "r-1"), [(2, true)]);
    for run in ["r-1", "r-2"] {
        let run = store.store.run(Access::All, run).expect("the run");
        assert_eq!(run.status, RunStatus::Completed);
        // The text was one of the old database.
        assert_eq!(run.script, Some(Body::default()));
    }
}

#[tokio::test]
async fn store_is_opened_later_if_it_can_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("state");
    fs::write(&place, "in the way").expect("a file");
    let (queue, messages) = mpsc::channel();
    let (open, mut opened) = watch::channel(None);
    let (config, queued) = (config(&place), AtomicUsize::new(0));
    let retry = Duration::from_millis(5);
    let thread = thread::spawn(move || writer::run(&config, retry, &messages, &queued, &open));
    opened.changed().await.expect("the first try");
    assert!(opened.borrow().is_none());
    fs::remove_file(&place).expect("no file");
    assert!(opened.wait_for(Option::is_some).await.is_ok());
    drop(queue);
    thread.join().expect("the end of the thread");
}

#[tokio::test]
async fn start_does_not_wait_for_a_slow_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let lock = fs::File::create(folder.path().join("store.lock")).expect("a file");
    lock.lock().expect("the lock of the store");
    let recorder = Recorder::start(config(folder.path()));
    // The thread waits longer for the lock.
    let opened = timeout(Duration::from_secs(4), recorder.opened()).await;
    assert!(opened.is_ok_and(|opened| opened.is_none()));
}

#[tokio::test]
async fn queue_is_empty_once_the_thread_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("plan.txt"), "ours").expect("a file");
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path(), open).expect("a mode");
    let recorder = Recorder::start(config(folder.path()));
    assert!(recorder.opened().await.is_none());
    let flush = || Message::Flush(oneshot::channel().0);
    while recorder.send(0, flush()) {
        tokio::task::yield_now().await;
    }
    let before = recorder.queued.load(Ordering::Relaxed);
    assert!(!recorder.send(1 << 20, flush()));
    assert_eq!(recorder.queued.load(Ordering::Relaxed), before);
}
