//! Fuzz targets: functions over untrusted bytes. Each must return, whatever the bytes are.
//!
//! `cargo xtask fuzz` runs them under libFuzzer; `tests/seeds.rs` runs them over the seeds.

use std::path::Path;

use callgate::config;
use callgate::config::foreign;
use callgate_auth::Redact;
use callgate_policy::flow::{Detector, Side};
use callgate_sandbox::wire::{Decoder, WorkerFrame};
use callgate_schema::{Author, Declared, Schema, extent, tokens};
use callgate_serve::config::ServeConfig;
use serde_json::{Map, Value, json};

#[path = "../../typegen/tests/any_input/entry.rs"]
mod declarations;

/// Maximum bytes of a script. The parser takes exponential time for some longer texts; in production
/// it runs in a process that is killed.
const MAX_SCRIPT: usize = 512;
/// Maximum bytes of a frame from a worker.
const MAX_FRAME: usize = 1 << 20;

/// A configuration file with all sections.
type Loaded = config::Loaded<ServeConfig>;

/// A function under test.
pub type Target = fn(&[u8]);

pub const TARGETS: &[(&str, Target)] = &[
    ("client-message", client_message),
    ("config", config),
    ("config-of-client", config_of_client),
    ("declarations", declarations::check),
    ("flows", flows),
    ("json-text", json_text),
    ("patch", patch),
    ("redaction", redaction),
    ("schema", schema),
    ("script", script),
    ("server-message", callgate_servers::fuzzing::read_message),
    ("worker-frames", worker_frames),
];

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
    let loaded = Loaded::load(&path, |_| None);
    let _allowed = config::allow(&path, &["\"fs_read\"".to_owned()]);
    if loaded.is_ok() {
        still_loads(&path);
    }
}

/// A valid configuration stays valid with one more rule.
fn still_loads(path: &Path) {
    if let Err(error) = Loaded::load(path, |_| None) {
        panic!("the edited file is wrong: {error}");
    }
}

/// The parts of the bytes between zeros.
fn parts(bytes: &[u8]) -> impl Iterator<Item = String> {
    let parts = bytes.split(|byte| *byte == 0);
    parts.map(|part| String::from_utf8_lossy(part).into_owned())
}

/// Data of one server in the arguments for a second server.
fn flows(bytes: &[u8]) {
    let mut parts = parts(bytes);
    let (script, arguments) = (parts.next(), parts.next().unwrap_or_default());
    let detector = Detector::new(&script.unwrap_or_default());
    for (ordinal, result) in parts.enumerate() {
        detector.learn(&Side::new("a_read", "a", "read"), ordinal, &result);
    }
    detector.find(&Side::new("b_write", "b", "write"), &arguments, "{}");
}

/// Callgate's entry in a file of another client. All other data and all text are kept.
fn patch(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let entry = json!({ "command": "x", "args": ["serve"] });
    for (file, key) in [("a.json", "mcpServers"), ("a.toml", "mcp_servers")] {
        let file = Path::new(file);
        let members: Map<String, Value> = entry.as_object().cloned().expect("an object");
        let change = |text: &str| foreign::patch(file, text, key, "callgate", &members);
        let Ok(new) = change(&text) else {
            continue;
        };
        assert_eq!(change(&new).expect("a second change"), new);
        let value = |text: &str| foreign::value(file, text).expect("a file");
        let (mut before, mut after) = (value(&text), value(&new));
        let (old, added) = (take_entry(&mut before, key), take_entry(&mut after, key));
        assert_eq!(added.as_ref(), Some(&entry));
        assert_eq!(before, after);
        let mut kept = characters(&new).into_iter();
        let is_kept = characters(&text).iter().all(|c| kept.any(|it| it == *c));
        assert!(is_kept || old.is_some(), "text is lost: {new}");
    }
}

/// Takes Callgate's entry out of a client's settings, and then an empty list of servers.
fn take_entry(settings: &mut Value, key: &str) -> Option<Value> {
    if settings.is_null() {
        *settings = json!({});
    }
    let servers = settings.get_mut(key)?.as_object_mut()?;
    let entry = servers.remove("callgate");
    if servers.is_empty() {
        settings.as_object_mut()?.remove(key);
    }
    entry
}

/// The characters of a text, without white space and in sorted order.
fn characters(text: &str) -> Vec<char> {
    let characters = text.chars().filter(|c| !c.is_whitespace());
    let mut characters: Vec<char> = characters.collect();
    characters.sort_unstable();
    characters
}

/// Tokens of a text: joined, they are the text, and no value is without a token.
fn json_text(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let joined: String = tokens(&text).map(|token| token.text).collect();
    assert_eq!(joined, text);
    // serde_json reads an object with a private name as the JSON in its text.
    let has_names = text.contains("private") || text.contains('\\');
    if let Ok(value) = serde_json::from_str::<Value>(&text)
        && !has_names
    {
        assert!(count(&value) <= extent(&text).parts, "{text}");
    }
}

/// The number of values in a value.
fn count(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
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

/// Frames of a worker, which come in pieces. They take no more memory than the limit allows.
fn worker_frames(bytes: &[u8]) {
    let mut decoder = Decoder::<WorkerFrame>::new(MAX_FRAME);
    for piece in bytes.chunks(7) {
        decoder.space(piece.len()).extend_from_slice(piece);
        while let Ok(Some(_)) = decoder.next() {}
        assert!(decoder.space(1).capacity() <= 4 * (MAX_FRAME + bytes.len()));
    }
}
