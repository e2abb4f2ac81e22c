//! What processes that were killed left beside a journal's file: lines that it had yet to take.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::file::{Bounds, LineFile, aside};
use super::reader::pieces;
use super::state::drain;
use super::wal::{Place, SUFFIX, Wal};

/// What became of the lines that processes which were killed left beside a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Recovered {
    /// How many lines came into the ledger's file.
    pub lines: usize,
    /// The files that stay beside it, and why.
    pub left: Vec<(PathBuf, String)>,
}

/// Takes over what was left for a journal by processes that are gone, and has its file take the
/// lines: but for those that it had taken when they were killed. What cannot be read or written
/// stays where it is, for the next time.
pub(super) fn recover(file: &mut LineFile, bounds: &Bounds) -> Recovered {
    let mut recovered = Recovered::default();
    for path in left_beside(file.path()) {
        let taken = Wal::adopt(&path).map_err(|error| error.to_string());
        let taken = taken.and_then(|wal| {
            let Some(mut wal) = wal else { return Ok(()) };
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
    let (Some(name), Some(folder)) = (journal.file_name(), journal.parent()) else {
        return Vec::new();
    };
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let is_one = |other: &OsStr| {
        let rest = other.as_bytes().strip_prefix(name.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(SUFFIX.as_bytes()))
    };
    // A folder that cannot be read has none that could be.
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = files.filter(|file| is_one(&file.file_name()));
    let mut files: Vec<_> = files
        .map(|file| {
            let modified = file.metadata().and_then(|known| known.modified()).ok();
            (modified, journal.with_file_name(file.file_name()))
        })
        .collect();
    files.sort();
    files.into_iter().map(|(_, path)| path).collect()
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

fn the_file(journal: &Path, place: Place) -> Option<File> {
    let is_it = |known: &Metadata| known.dev() == place.device && known.ino() == place.inode;
    if fs::metadata(journal).is_ok_and(|known| is_it(&known)) {
        return File::open(journal).ok();
    }
    let aside = (1..).map(|number| aside(journal, number));
    for path in aside {
        if is_it(&fs::metadata(&path).ok()?) {
            return File::open(path).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests;
