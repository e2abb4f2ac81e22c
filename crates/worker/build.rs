//! Makes the start-up snapshot: the isolate after `runtime-js` has run in it.

use std::path::{Path, PathBuf};

use deno_core::snapshot::{CreateSnapshotOptions, create_snapshot};
use deno_core::{ExtensionFileSource, v8_set_flags};

#[path = "src/ops.rs"]
#[expect(dead_code, reason = "no script runs while the snapshot is made")]
mod ops;

fn main() {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let runtime_js = manifest.join("../../runtime-js");
    println!("cargo::rerun-if-changed=build.rs");
    for folder in ["src/ops.rs", "../../runtime-js"] {
        println!("cargo::rerun-if-changed={folder}");
    }

    let files = numbered_files(&runtime_js).into_iter().map(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = format!("ext:callgate/{}", name.expect("a UTF-8 file name"));
        let path = path.to_str().expect("a UTF-8 path").to_owned();
        // Leaked: the snapshot needs names that live as long as this program.
        ExtensionFileSource::loaded_during_snapshot(String::leak(name), String::leak(path))
    });
    let files = files.collect();

    // The hash seed is part of the snapshot; without this, two builds differ.
    let _ = v8_set_flags(vec![
        String::new(),
        "--predictable".into(),
        "--random-seed=42".into(),
    ]);
    let snapshot = create_snapshot(
        CreateSnapshotOptions {
            cargo_manifest_dir: env!("CARGO_MANIFEST_DIR"),
            startup_snapshot: None,
            skip_op_registration: false,
            extensions: vec![ops::extension(files)],
            extension_transpiler: None,
            with_runtime_cb: None,
        },
        None,
    )
    .expect("runtime-js runs without an error");

    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    std::fs::write(out.join("isolate.snapshot"), &snapshot.output).expect("OUT_DIR is writable");
}

/// The files that start with a digit, in their order.
fn numbered_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of sources");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut files: Vec<PathBuf> = paths.collect();
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(|c: char| c.is_ascii_digit()) && name.ends_with(".js")
    });
    files.sort();
    files
}
