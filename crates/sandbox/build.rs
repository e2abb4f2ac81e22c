//! Hashes the sources of worker and host, which must be from the same build.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

fn main() {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    println!("cargo::rerun-if-changed=build.rs");
    let mut sources = DefaultHasher::new();
    for folder in ["src", "../worker/src", "../script/src", "../../runtime-js"] {
        println!("cargo::rerun-if-changed={folder}");
        hash_files(&manifest.join(folder), &mut sources);
    }
    let sources = sources.finish();
    println!("cargo::rustc-env=CALLGATE_SOURCES={sources:016x}");
}

/// Hashes the files of a folder and of those in it.
fn hash_files(folder: &Path, hasher: &mut DefaultHasher) {
    let entries = std::fs::read_dir(folder).expect("a folder of sources");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    for path in paths {
        path.file_name().hash(hasher);
        if path.is_dir() {
            hash_files(&path, hasher);
        } else {
            std::fs::read(&path).expect("a readable file").hash(hasher);
        }
    }
}
