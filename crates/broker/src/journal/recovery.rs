//! What processes that were killed left beside a journal's file: lines that it had yet to take.

use std::collections::HashSet;
use std::fs::{self, DirEntry, File};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirEntryExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::file::{Bounds, LineFile};
use super::reader::pieces;
use super::state::drain;
use super::wal::{Adopted, Place, SUFFIX, Wal};

/// What became of the lines that processes which were killed left beside a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Recovered {
    /// How many lines came into the ledger's file.
    pub lines: usize,
    /// The files that stay beside it, and why.
    pub left: Vec<(PathBuf, String)>,
    /// How many files are of processes that are there.
    pub in_use: usize,
}

/// Takes over what was left for a journal by processes that are gone, and has its file take the
/// lines: but for those that it had taken when they were killed. What cannot be read or written
/// stays where it is, for the next time.
pub(super) fn recover(file: &mut LineFile, bounds: &Bounds) -> Recovered {
    let mut recovered = Recovered::default();
    for path in left_beside(file.path()) {
        let taken = Wal::adopt(&path).map_err(|error| error.to_string());
        let taken = taken.and_then(|wal| {
            let mut wal = match wal {
                Adopted::Wal(wal) => wal,
                Adopted::InUse => {
                    recovered.in_use += 1;
                    return Ok(());
                }
                Adopted::Gone => return Ok(()),
            };
            let known = already(file.path(), &wal).map_err(|error| error.to_string())?;
            wal.advance(known);
            let before = lines(&wal).count();
            let drained = drain(&mut wal, file, bounds);
            recovered.lines += before - lines(&wal).count();
            drained.map_err(|error| error.to_string())
        });
        if let Err(reason) = taken {
            recovered.left.push((path, reason));
        }
    }
    recovered
}

/// The files beside a journal's that may have such lines, the oldest first.
pub(super) fn left_beside(journal: &Path) -> Vec<PathBuf> {
    let is_one = |rest: &[u8]| {
        // One that somebody has compressed is nobody's any more.
        rest.strip_prefix(SUFFIX.as_bytes())
            .is_some_and(|rest| memchr::memchr(b'.', rest).is_none())
    };
    let files = named_like(journal).filter(|(rest, _)| is_one(rest));
    let mut files: Vec<_> = files
        .map(|(_, file)| {
            let modified = file.metadata().and_then(|known| known.modified()).ok();
            (modified, journal.with_file_name(file.file_name()))
        })
        .collect();
    files.sort();
    files.into_iter().map(|(_, path)| path).collect()
}

/// The files of a journal's folder whose names begin as its own does, each with the rest of its
/// name. A folder that cannot be read has none that could be.
fn named_like(journal: &Path) -> impl Iterator<Item = (Vec<u8>, DirEntry)> {
    let name = journal.file_name().unwrap_or_default().as_bytes();
    let folder = match journal.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(move |file| {
        let other = file.file_name();
        let rest = other.as_bytes().strip_prefix(name)?.to_owned();
        Some((rest, file))
    })
}

/// How many bytes of the lines the file has which was about to take them, wherever it was moved
/// aside since: a process may be killed after a `write`, and before it has noted that.
fn already(journal: &Path, wal: &Wal) -> io::Result<usize> {
    let place = wal.aimed();
    let Some(mut file) = the_file(journal, place).filter(|_| !wal.text().is_empty()) else {
        return Ok(0);
    };
    let mut sought: HashSet<&[u8]> = lines(wal).collect();
    file.seek(SeekFrom::Start(place.size))?;
    let mut file = BufReader::new(file);
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line)? > 0 {
        for piece in pieces(&line) {
            sought.remove(piece);
        }
        line.clear();
    }
    // They are written in this order.
    let taken = lines(wal).take_while(|line| !sought.contains(line));
    Ok(taken.map(|line| line.len() + 1).sum())
}

/// Its lines, without their ends: a record is there also where its end is not.
fn lines(wal: &Wal) -> impl Iterator<Item = &[u8]> {
    let text = wal.text();
    text.strip_suffix(b"\n")
        .into_iter()
        .flat_map(|text| text.split(|byte| *byte == b'\n'))
}

/// That of a place, if it has a name that begins as the journal's does: so rotation leaves it.
fn the_file(journal: &Path, place: Place) -> Option<File> {
    let find = || {
        named_like(journal).find_map(|(_, file)| {
            if file.ino() != place.inode {
                return None;
            }
            let opened = File::open(journal.with_file_name(file.file_name())).ok()?;
            let known = opened.metadata().ok()?;
            // Its name may be another file's by now.
            (known.dev() == place.device && known.ino() == place.inode).then_some(opened)
        })
    };
    // It may get another name while the folder is read.
    find().or_else(find)
}

#[cfg(test)]
mod tests;
