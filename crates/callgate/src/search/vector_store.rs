//! Vectors on disk: one file for each endpoint and model.
//!
//! A file is `callgate vectors 1` and a line feed; the number of dimensions and
//! of vectors, 4 bytes each; each vector's key and its numbers; and the SHA-256
//! of all that. Numbers are little-endian. A file that is anything else is not
//! read, and made anew.

use std::collections::{HashMap, HashSet};

use sha2::{Digest as _, Sha256};

use super::vector_text::Key;
use super::vectors::Vector;
use crate::cache::Folder;

const MAGIC: &[u8] = b"callgate vectors 1\n";
/// The bytes before the first vector.
const HEADER: usize = MAGIC.len() + 8;
/// The most bytes of a file.
const MAX_FILE: usize = 256 << 20;
/// The most numbers of a vector.
const MAX_DIMENSIONS: usize = 16_384;
/// The most vectors of tools that are kept, here and in memory, though the catalog has
/// them no more: they may come back.
const MAX_OLD: usize = 20_000;

/// Where vectors of one endpoint and model are kept.
#[derive(Debug, Clone)]
pub(super) struct Store {
    /// A folder, and the name of a file in it.
    file: Option<(Folder, String)>,
}

impl Store {
    /// The place in this folder, and what is there.
    pub(super) fn open(folder: Option<&Folder>, identity: &str) -> (Self, HashMap<Key, Vector>) {
        let file = folder.map(|folder| {
            let hash = Sha256::digest(identity);
            let hash = hash.iter().take(16).map(|byte| format!("{byte:02x}"));
            let name: String = hash.chain([".bin".to_owned()]).collect();
            (folder.clone(), name)
        });
        let read = match &file {
            Some((folder, name)) => read(folder, name).unwrap_or_else(|reason| {
                tracing::warn!(name, reason, "the kept vectors are not read, and made anew");
                HashMap::new()
            }),
            None => HashMap::new(),
        };
        (Self { file }, read)
    }

    /// Writes those that are as long as those of `current`.
    pub(super) fn save(
        &self,
        current: &[Key],
        known: &HashMap<Key, Vector>,
    ) -> std::io::Result<()> {
        let (Some((folder, name)), Some(dimensions)) = (
            &self.file,
            current
                .iter()
                .find_map(|key| known.get(key))
                .map(|vector| vector.len()),
        ) else {
            return Ok(());
        };
        let fits = |(_, vector): &(&Key, &Vector)| vector.len() == dimensions;
        let mut kept: Vec<_> = known.iter().filter(fits).collect();
        kept.sort_unstable_by_key(|(key, _)| **key);
        let per_vector = 32 + 4 * dimensions;
        kept.truncate((MAX_FILE - HEADER - 32) / per_vector);
        let mut bytes = Vec::with_capacity(HEADER + kept.len() * per_vector + 32);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&(dimensions as u32).to_le_bytes());
        bytes.extend_from_slice(&(kept.len() as u32).to_le_bytes());
        for (key, vector) in kept {
            bytes.extend_from_slice(&key.0);
            for number in vector.iter() {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        let hash = Sha256::digest(&bytes);
        bytes.extend_from_slice(&hash);
        folder.write(name, &bytes)
    }
}

/// Drops those that are not of `current`, but for as many as there may be.
pub(super) fn forget_old(current: &[Key], known: &mut HashMap<Key, Vector>) {
    // As it mostly is.
    if known.len() <= MAX_OLD {
        return;
    }
    let wanted: HashSet<&Key> = current.iter().collect();
    let old = known.keys().filter(|key| !wanted.contains(key));
    let mut old: Vec<Key> = old.copied().collect();
    // The same ones each time, so that those that are left stay.
    old.sort_unstable();
    for key in old.iter().skip(MAX_OLD) {
        known.remove(key);
    }
    known.shrink_to(2 * known.len());
}

/// What a file has; nothing if there is none.
fn read(folder: &Folder, name: &str) -> Result<HashMap<Key, Vector>, String> {
    let bytes = folder.read(name, MAX_FILE as u64);
    match bytes.map_err(|error| error.to_string())? {
        Some(bytes) => parse(&bytes).map_err(str::to_owned),
        None => Ok(HashMap::new()),
    }
}

fn parse(bytes: &[u8]) -> Result<HashMap<Key, Vector>, &'static str> {
    let (body, hash) = bytes.split_last_chunk::<32>().ok_or("it is too short")?;
    let (dimensions, count, mut rest) = header(body).ok_or("it is of another kind")?;
    if Sha256::digest(body).as_slice() != hash {
        return Err("it is damaged");
    }
    let per_vector = 4 * dimensions;
    if dimensions == 0
        || dimensions > MAX_DIMENSIONS
        || count.checked_mul(32 + per_vector) != Some(rest.len())
    {
        return Err("it has another length than it says");
    }
    let mut vectors = HashMap::with_capacity(count);
    while let Some((key, after)) = rest.split_first_chunk::<32>() {
        let (numbers, after) = after
            .split_at_checked(per_vector)
            .ok_or("it is too short")?;
        let (numbers, _none) = numbers.as_chunks::<4>();
        let vector: Vector = numbers
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        let length: f32 = vector.iter().map(|number| number * number).sum();
        if !((0.99..=1.01).contains(&length)) {
            return Err("it has a vector whose length is not 1");
        }
        vectors.insert(Key(*key), vector);
        rest = after;
    }
    Ok(vectors)
}

/// Dimensions, number of vectors, and what follows.
fn header(body: &[u8]) -> Option<(usize, usize, &[u8])> {
    let rest = body.strip_prefix(MAGIC)?;
    let (dimensions, rest) = rest.split_first_chunk::<4>()?;
    let (count, rest) = rest.split_first_chunk::<4>()?;
    let number = |bytes: &[u8; 4]| usize::try_from(u32::from_le_bytes(*bytes)).ok();
    Some((number(dimensions)?, number(count)?, rest))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn some() -> HashMap<Key, Vector> {
        let vector = |numbers: [f32; 2]| Vector::from(numbers);
        HashMap::from([
            (Key([1; 32]), vector([0.6, 0.8])),
            (Key([2; 32]), vector([0.0, -1.0])),
        ])
    }

    #[test]
    fn what_is_saved_is_there_again() {
        let place = tempfile::TempDir::new().unwrap();
        let folder = Folder::open(place.path().to_owned()).unwrap();
        let (store, nothing) = Store::open(Some(&folder), "a");
        assert_eq!(nothing, HashMap::new());
        store.save(&[Key([1; 32])], &some()).unwrap();
        assert_eq!(Store::open(Some(&folder), "a").1, some());
        // Of another model, there is nothing.
        assert_eq!(Store::open(Some(&folder), "b").1, HashMap::new());
        // Nor is there anything else in the folder.
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_old_is_forgotten_but_for_so_many() {
        let key = |number: usize| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&number.to_be_bytes());
            Key(key)
        };
        let vector = Vector::from([1.0]);
        let of = |count: usize| -> HashMap<Key, Vector> {
            (0..count).map(|n| (key(n), Arc::clone(&vector))).collect()
        };
        let mut known = of(MAX_OLD + 10);
        // One among those that stay, one among those that go, and one that is not there yet.
        let current = [key(0), key(MAX_OLD + 9), key(usize::MAX)];
        forget_old(&current, &mut known);
        let mut expected = of(MAX_OLD + 1);
        expected.insert(key(MAX_OLD + 9), Arc::clone(&vector));
        assert!(known == expected);
        // Again, there is nothing to forget.
        forget_old(&current, &mut known);
        assert!(known == expected);
    }

    #[test]
    fn without_a_folder_nothing_is_kept() {
        let (store, nothing) = Store::open(None, "a");
        assert_eq!(nothing, HashMap::new());
        store.save(&[Key([1; 32])], &some()).unwrap();
    }

    #[test]
    fn any_damage_is_found() {
        let place = tempfile::TempDir::new().unwrap();
        let folder = Folder::open(place.path().to_owned()).unwrap();
        let (store, _) = Store::open(Some(&folder), "a");
        store.save(&[Key([1; 32])], &some()).unwrap();
        let path = place.path().join(&store.file.as_ref().unwrap().1);
        let good = std::fs::read(&path).unwrap();
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 1;
            assert!(parse(&bad).is_err(), "byte {place}");
            assert!(parse(&good[..place]).is_err(), "{place} bytes");
        }
        std::fs::write(&path, b"{}").unwrap();
        assert_eq!(Store::open(Some(&folder), "a").1, HashMap::new());
        // And it is made anew.
        store.save(&[Key([1; 32])], &some()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), good);
    }

    #[test]
    fn files_that_lie() {
        let check = |dimensions: u32, count: u32, body: &[u8], expected: &str| {
            let mut bytes = MAGIC.to_vec();
            bytes.extend_from_slice(&dimensions.to_le_bytes());
            bytes.extend_from_slice(&count.to_le_bytes());
            bytes.extend_from_slice(body);
            let hash = Sha256::digest(&bytes);
            bytes.extend_from_slice(&hash);
            assert_eq!(parse(&bytes).unwrap_err(), expected);
        };
        let length = "it has another length than it says";
        check(u32::MAX, u32::MAX, &[], length);
        check(0, 0, &[], length);
        check(1, 2, &[0; 36], length);
        check(1, 1, &[0; 36], "it has a vector whose length is not 1");
        let mut nan = [0; 36];
        nan[32..].copy_from_slice(&f32::NAN.to_le_bytes());
        check(1, 1, &nan, "it has a vector whose length is not 1");
    }
}
