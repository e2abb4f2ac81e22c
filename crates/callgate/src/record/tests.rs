use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::{Message, Recorder};
use crate::config::StoreConfig;

/// The settings of a store in a folder.
fn config(folder: &Path) -> StoreConfig {
    StoreConfig {
        path: Some(folder.to_owned()),
        ..StoreConfig::default()
    }
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
