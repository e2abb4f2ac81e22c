//! Fuzz targets: functions over bytes that strangers write. Each must return, whatever the bytes are.
//!
//! `cargo xtask fuzz` runs them under libFuzzer; `tests/seeds.rs` runs them over the seeds.

use std::path::Path;

use callgate::config::{self, Config};
use callgate_auth::Redact;
use callgate_policy::flow::{Detector, Side};
use callgate_sandbox::wire::{Decoder, WorkerFrame};
use callgate_schema::{Author, Declared, Schema};
use serde_json::Value;

#[path = "../../typegen/tests/any_input/entry.rs"]
mod declarations;

/// Bytes of a script: the parser may take exponential time for some texts, in a process that is
/// killed.
const MAX_SCRIPT: usize = 512;
/// Bytes of a frame from a worker.
const MAX_FRAME: usize = 1 << 20;

/// A function under test.
pub type Target = fn(&[u8]);

/// All targets, by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("client-message", client_message),
    ("config", config),
    ("config-of-client", config_of_client),
    ("declarations", declarations::check),
    ("flows", flows),
    ("redaction", redaction),
    ("schema", schema),
    ("script", script),
    ("server-message", callgate_servers::fuzzing::read_message),
    ("worker-frames", worker_frames),
];

/// The target of this name.
pub fn target(name: &str) -> Option<Target> {
    let mut targets = TARGETS.iter();
    targets.find(|(known, _)| *known == name).map(|it| it.1)
}

/// A message of a client to `serve`.
fn client_message(bytes: &[u8]) {
    callgate_serve::fuzzing::read_message(bytes);
}

/// The project's own configuration, read, and a rule added to it.
fn config(bytes: &[u8]) {
    load("callgate.json", bytes);
}

/// A configuration file of another client.
fn config_of_client(bytes: &[u8]) {
    load(".mcp.json", bytes);
}

fn load(name: &str, bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("a file");
    let loaded = Config::load_with(&path, |_| None);
    let _allowed = config::allow(&path, &["\"fs_read\"".to_owned()]);
    if loaded.is_ok() {
        still_loads(&path);
    }
}

/// A configuration that was fine is so with one more rule.
fn still_loads(path: &Path) {
    if let Err(error) = Config::load_with(path, |_| None) {
        panic!("the edited file is wrong: {error}");
    }
}

/// Parts of the bytes, between zeros.
fn parts(bytes: &[u8]) -> impl Iterator<Item = String> {
    let parts = bytes.split(|byte| *byte == 0);
    parts.map(|part| String::from_utf8_lossy(part).into_owned())
}

/// Data of one server in the arguments for another one.
fn flows(bytes: &[u8]) {
    let mut parts = parts(bytes);
    let (script, arguments) = (parts.next(), parts.next().unwrap_or_default());
    let detector = Detector::new(&script.unwrap_or_default());
    for (ordinal, result) in parts.enumerate() {
        detector.learn(&Side::new("a_read", "a", "read"), ordinal, &result);
    }
    detector.find(&Side::new("b_write", "b", "write"), &arguments, "{}");
}

/// Secrets in a message.
fn redaction(bytes: &[u8]) {
    let mut parts = parts(bytes);
    let text = parts.next().unwrap_or_default();
    let secrets: Vec<(String, String)> = parts.map(|it| ("secret".to_owned(), it)).collect();
    let redact = Redact::new(secrets);
    let _ = redact.redact(&text);
    let _ = redact.message(&text);
    let _ = redact.redact_start(&text, 64);
}

/// A value against a server's schema.
fn schema(bytes: &[u8]) {
    let mut parts = parts(bytes);
    let schema = parts.next().unwrap_or_default();
    let value = parts.next().unwrap_or_default();
    let Ok(schema) = serde_json::from_str::<Value>(&schema) else {
        return;
    };
    let _ = Schema::new(schema.clone(), Author::Script);
    Declared::new(schema).fit(&value);
}

/// A script of a model.
fn script(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if text.len() <= MAX_SCRIPT {
        let _ = callgate_script::prepare(&text);
        let _ = callgate_script::rewritten(&text);
    }
}

/// Frames of a worker.
fn worker_frames(bytes: &[u8]) {
    let mut decoder = Decoder::<WorkerFrame>::new(MAX_FRAME);
    decoder.space(bytes.len()).extend_from_slice(bytes);
    while let Ok(Some(_)) = decoder.next() {}
}
