use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::{Message, Recorder, writer};
use crate::config::StoreConfig;

/// The settings of a store in a folder.
fn config(folder: &Path) -> StoreConfig {
    StoreConfig {
        path: Some(folder.to_owned()),
        ..StoreConfig::default()
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
