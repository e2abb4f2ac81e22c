//! Vectors on disk: one file for each endpoint and model.
//!
//! A file has a magic line; the number of dimensions in 4 bytes; each vector's key and its numbers;
//! and the SHA-256 of all that. Numbers are little-endian. Any other file is replaced.

use std::collections::HashMap;
use std::io;

use sha2::{Digest as _, Sha256};

use super::vector_text::{Key, Vector};
use crate::cache::Folder;

const MAGIC: &[u8] = b"callgate vectors 2\n";
/// The most bytes of a file.
const MAX_FILE: usize = 256 << 20;
/// The most numbers of a vector.
const MAX_DIMENSIONS: usize = 16_384;

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
            name: hash.chain([".bin".to_owned()]).collect(),
        }
    }

    /// The vectors in the file; none if there is no file or a damaged one.
    pub(super) fn read(&self) -> HashMap<Key, Vector> {
        let read = self.folder.read(&self.name, MAX_FILE as u64);
        let parsed = match read {
            Ok(Some(bytes)) => parse(&bytes).map_err(str::to_owned),
            Ok(None) => Ok(HashMap::new()),
            Err(error) => Err(error.to_string()),
        };
        parsed.unwrap_or_else(|reason| {
            let name = &self.name;
            tracing::warn!(name, reason, "the kept vectors are not read, and made anew");
            HashMap::new()
        })
    }

    /// Writes the vectors of this length.
    pub(super) fn write(&self, dimensions: usize, known: &HashMap<Key, Vector>) -> io::Result<()> {
        let mut kept: Vec<_> = known
            .iter()
            .filter(|(_, vector)| vector.len() == dimensions)
            .collect();
        kept.sort_unstable_by_key(|(key, _)| **key);
        kept.truncate((MAX_FILE - MAGIC.len() - 36) / (32 + 4 * dimensions));
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&(dimensions as u32).to_le_bytes());
        for (key, vector) in kept {
            bytes.extend_from_slice(&key.0);
            bytes.extend(vector.iter().flat_map(|number| number.to_le_bytes()));
        }
        let hash = Sha256::digest(&bytes);
        bytes.extend_from_slice(&hash);
        self.folder.write(&self.name, &bytes)
    }
}

fn parse(bytes: &[u8]) -> Result<HashMap<Key, Vector>, &'static str> {
    let (body, hash) = bytes.split_last_chunk::<32>().ok_or("it is too short")?;
    let rest = body.strip_prefix(MAGIC).ok_or("it is of another kind")?;
    if Sha256::digest(body).as_slice() != hash {
        return Err("it is damaged");
    }
    let (dimensions, rest) = rest.split_first_chunk::<4>().ok_or("it is too short")?;
    let dimensions = u32::from_le_bytes(*dimensions) as usize;
    if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
        return Err("it has vectors of an impossible length");
    }
    let records = rest.chunks_exact(32 + 4 * dimensions);
    if !records.remainder().is_empty() {
        return Err("it ends within a vector");
    }
    let mut vectors = HashMap::new();
    for record in records {
        let (key, numbers) = record.split_first_chunk::<32>().ok_or("it is too short")?;
        let (numbers, _) = numbers.as_chunks::<4>();
        let vector: Vector = numbers.iter().map(|it| f32::from_le_bytes(*it)).collect();
        let length: f32 = vector.iter().map(|number| number * number).sum();
        if !((0.99..=1.01).contains(&length)) {
            return Err("it has a vector whose length is not 1");
        }
        vectors.insert(Key(*key), vector);
    }
    Ok(vectors)
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
        let vectors = HashMap::from([
            (Key([1; 32]), Vector::from([0.6, 0.8])),
            (Key([2; 32]), Vector::from([0.0, -1.0])),
        ]);
        store.write(2, &vectors).unwrap();
        assert_eq!(store.read(), vectors);
        assert_eq!(Store::new(&folder, "another model").read(), HashMap::new());
        let path = place.path().join(&store.name);
        let good = std::fs::read(&path).unwrap();
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 1;
            assert!(parse(&bad).is_err(), "byte {place}");
            assert!(parse(&good[..place]).is_err(), "{place} bytes");
        }
    }

    #[test]
    fn files_that_lie_are_refused() {
        let mut nan = [0; 36];
        nan[32..].copy_from_slice(&f32::NAN.to_le_bytes());
        for (dimensions, body) in [
            (u32::MAX, &[][..]),
            (0, &[]),
            (1, &[0; 37]),
            (1, &[0; 36]),
            (1, &nan),
        ] {
            let mut bytes = [MAGIC, &dimensions.to_le_bytes(), body].concat();
            let hash = Sha256::digest(&bytes);
            bytes.extend_from_slice(&hash);
            assert!(parse(&bytes).is_err(), "{dimensions} {body:?}");
        }
    }
}
