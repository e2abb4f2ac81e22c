//! Vectors on disk: one JSON file for each endpoint and model.

use std::collections::HashMap;
use std::io;

use sha2::{Digest as _, Sha256};

use super::vector_text::{Key, Vector};
use crate::cache::Folder;

/// Size limit of a file, in bytes. A larger file is ignored, and its vectors are computed again.
const MAX_FILE: u64 = 256 << 20;

/// The file of one endpoint and model.
#[derive(Debug, Clone)]
pub(super) struct Store {
    folder: Folder,
    name: String,
}

impl Store {
    pub(super) fn new(folder: &Folder, identity: &str) -> Self {
        let hash = Sha256::digest(identity);
        let hash = hash.iter().take(16).map(|byte| format!("{byte:02x}"));
        Self {
            folder: folder.clone(),
            name: hash.chain([".json".to_owned()]).collect(),
        }
    }

    /// The vectors in the file; none if there is no file or a damaged one.
    pub(super) fn read(&self) -> HashMap<Key, Vector> {
        let read = self.folder.read(&self.name, MAX_FILE);
        let parsed = read.and_then(|bytes| match bytes {
            Some(bytes) => Ok(serde_json::from_slice(&bytes)?),
            None => Ok(HashMap::new()),
        });
        let mut vectors = parsed.unwrap_or_else(|error| {
            let name = &self.name;
            tracing::warn!(name, %error, "the file of vectors cannot be read; the vectors are computed again");
            HashMap::new()
        });
        let length = |vector: &Vector| vector.iter().map(|it| it * it).sum::<f32>();
        vectors.retain(|_, vector| (0.99..=1.01).contains(&length(vector)));
        vectors
    }

    pub(super) fn write(&self, known: &HashMap<Key, Vector>) -> io::Result<()> {
        self.folder.write(&self.name, &serde_json::to_vec(known)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_kept_and_damage_is_found() {
        let place = tempfile::TempDir::new().unwrap();
        let folder = Folder::open(place.path().to_owned()).unwrap();
        let store = Store::new(&folder, "a");
        assert_eq!(store.read(), HashMap::new());
        let vectors = [("1", [0.6, 0.8]), ("2", [0.0, -1.0])];
        let vectors = vectors.map(|(key, vector)| (Key(key.to_owned()), Vector::from(vector)));
        let vectors = HashMap::from(vectors);
        store.write(&vectors).unwrap();
        assert_eq!(store.read(), vectors);
        assert_eq!(Store::new(&folder, "another model").read(), HashMap::new());
        for damaged in [
            "",
            "{",
            r#"{"1":[1e30,0]}"#,
            r#"{"1":[]}"#,
            r#"{"1":[null]}"#,
        ] {
            folder.write(&store.name, damaged.as_bytes()).unwrap();
            assert_eq!(store.read(), HashMap::new(), "{damaged}");
        }
    }
}
