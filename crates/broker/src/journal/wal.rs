//! The lines that a journal's file has yet to take, in memory that the kernel keeps for a file
//! of their own beside it: a write-ahead log.
//!
//! A line is a copy away from there, where a `write` to the file would cost as much as a good
//! part of the call. Of a process that is killed the lines stay behind, and whoever opens the
//! journal next has its file take them: see [`recovery`](super::recovery).

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, fallocate, fstatfs};
use rustix::process::geteuid;

use super::file::length;
use super::record::START;
use crate::unique::unique_id;

/// What stands behind the name of the journal's file, before something unique.
pub(super) const SUFFIX: &str = ".wal-";

/// With what such a file begins. Another layout has another number.
const MAGIC: [u8; 16] = *b"callgate wal 1\n\0";

/// Where the words of the header are, in bytes; each is a `u64` as this machine has them.
const PENDING: usize = 16;
const DEVICE: usize = 24;
const INODE: usize = 32;
const SIZE: usize = 40;

/// Where lines may begin, and where they end.
const LINES: usize = 64;
const BYTES: usize = 128 << 10;

/// Where the space that is claimed for a file is there whenever it is written to. Elsewhere,
/// as where each write goes to another place of the disk, a full disk would end the process
/// (`SIGBUS`).
const FILE_SYSTEMS: [u64; 4] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x0102_1994, // tmpfs
    0x794C_7630, // overlayfs: the file is in the upper layer
];

/// How far a file was when it was to take lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// It was at least so long, in bytes.
    pub(super) size: u64,
}

/// Lines that the file has yet to take. Whoever has it open has it locked.
#[derive(Debug)]
pub(super) struct Wal {
    path: PathBuf,
    locked: File,
    map: Arc<MmapRaw>,
    /// Where the lines are in it.
    pending: Range<usize>,
    /// Whether another thread reads lines.
    is_lent: bool,
}

impl Wal {
    /// Makes one for a journal's file, for its owner alone to read and write.
    pub(super) fn create(journal: &Path) -> io::Result<Self> {
        // Whoever comes upon one before it is locked takes it for one that was left.
        let made = Self::try_create(journal).transpose();
        let made = made.or_else(|| Self::try_create(journal).transpose());
        made.unwrap_or_else(|| Err(io::Error::other("other processes deleted it")))
    }

    /// [`Self::create`]; `None` if another process has deleted it.
    fn try_create(journal: &Path) -> io::Result<Option<Self>> {
        let mut path = journal.as_os_str().to_owned();
        path.push(SUFFIX);
        path.push(unique_id());
        let path = PathBuf::from(path);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path)?;
        let made = claim(&path, &file);
        if made.is_err() {
            // The error says more than another one would.
            let _removed = fs::remove_file(&path);
        }
        let Some(map) = made? else { return Ok(None) };
        let mut wal = Self {
            map: Arc::new(map),
            path,
            locked: file,
            pending: LINES..LINES,
            is_lent: false,
        };
        // What has no such beginning has no lines.
        wal.set(PENDING, packed(&wal.pending));
        wal.copy(0, &MAGIC);
        Ok(Some(wal))
    }

    /// Takes one over from a process that is gone.
    pub(super) fn adopt(path: &Path) -> io::Result<Adopted> {
        let mut options = OpenOptions::new();
        // Where others may make files, none of them says what is in the ledger.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        options.read(true).write(true).custom_flags(flags);
        let file = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Adopted::Gone),
            opened => opened?,
        };
        let known = file.metadata()?;
        let is_own = known.uid() == geteuid().as_raw() && known.mode() & 0o022 == 0;
        if !known.is_file() || !is_own || known.nlink() > 1 {
            return Err(io::Error::other("it is no file of this user's own"));
        }
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(Adopted::InUse),
            locked => locked?,
        }
        // Another process may have been here first.
        if !leads_to(path, &file)? {
            return Ok(Adopted::Gone);
        }
        // It may have been copied to another one.
        has_fit_file_system(&file)?;
        let mut header = [0; LINES];
        match file.metadata()?.len() {
            0 => {}
            short if short < length(BYTES) => return Err(io::Error::other("it is too short")),
            _ => file.read_exact_at(&mut header, 0)?,
        }
        if header.starts_with(&[0; MAGIC.len()]) {
            // Whoever made it was killed before it had anything.
            fs::remove_file(path)?;
            return Ok(Adopted::Gone);
        }
        if !header.starts_with(&MAGIC) {
            return Err(io::Error::other("it is of another version, or damaged"));
        }
        let pending = header.get(PENDING..).and_then(<[u8]>::first_chunk);
        let pending = unpacked(pending.copied().map_or(0, u64::from_ne_bytes));
        if pending.start < LINES || pending.start > pending.end || pending.end > BYTES {
            return Err(io::Error::other("it is damaged"));
        }
        let mut text = vec![0; pending.len()];
        file.read_exact_at(&mut text, length(pending.start))?;
        if !text.split_inclusive(|byte| *byte == b'\n').all(is_line) {
            // So a crash of the system may leave it.
            return Err(io::Error::other("it is damaged"));
        }
        Ok(Adopted::Wal(Self {
            path: path.to_owned(),
            map: Arc::new(MmapOptions::new().len(BYTES).map_raw(&file)?),
            locked: file,
            pending,
            is_lent: false,
        }))
    }

    /// Whether whoever comes next would find it.
    pub(super) fn is_there(&self) -> bool {
        self.locked.metadata().is_ok_and(|known| known.nlink() > 0)
    }

    /// The lines.
    pub(super) fn text(&self) -> &[u8] {
        // SAFETY: what is mapped is written to by `copy` and `advance` alone, which take this by a
        // mutable reference.
        unsafe { mapped(&self.map, self.pending.clone()) }
    }

    /// The lines that are there now, for another thread to read until they are
    /// [taken back](Self::take_back).
    pub(super) fn lend(&mut self) -> Lent {
        self.is_lent = true;
        Lent {
            map: Arc::clone(&self.map),
            lines: self.pending.clone(),
        }
    }

    /// Whether another thread reads lines.
    pub(super) fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// Takes them back: nobody reads them any more.
    pub(super) fn take_back(&mut self, _lent: Lent) {
        self.is_lent = false;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Notes a line, if there is room for it. Then it outlives this process.
    pub(super) fn append(&mut self, line: &[u8]) -> bool {
        let end = self.pending.end + line.len();
        if end > BYTES {
            return false;
        }
        self.copy(self.pending.end, line);
        self.pending.end = end;
        self.set(PENDING, packed(&self.pending));
        true
    }

    /// What was last [aimed](Self::aim) at.
    pub(super) fn aimed(&self) -> Place {
        let word = |at| self.word(at).load(Ordering::Acquire);
        Place {
            device: word(DEVICE),
            inode: word(INODE),
            size: word(SIZE),
        }
    }

    /// Notes how far the file is that is about to take lines: whoever finds them here later
    /// looks whether it has.
    pub(super) fn aim(&self, place: Place) {
        // Whenever this ends, the place is none beyond what was written: from the beginning of
        // a file all of it is looked at.
        self.set(SIZE, 0);
        self.set(DEVICE, place.device);
        self.set(INODE, place.inode);
        self.set(SIZE, place.size);
    }

    /// Drops the first bytes of the lines: the file has taken them.
    pub(super) fn advance(&mut self, bytes: usize) {
        assert!(!self.is_lent, "another thread reads them");
        self.pending.start = (self.pending.start + bytes).min(self.pending.end);
        self.set(PENDING, packed(&self.pending));
        let Range { start, end } = self.pending;
        let front = LINES..LINES + self.pending.len();
        // There is to be room behind them. No more is copied than was dropped.
        if front.end <= start && front.len() <= bytes {
            // SAFETY: both places are mapped, nothing else is in the one that is written to, and
            // no reference to it is held.
            unsafe {
                let from = self.map.as_ptr().add(start);
                let to = self.map.as_mut_ptr().add(front.start);
                std::ptr::copy_nonoverlapping(from, to, end - start);
            }
            self.pending = front;
            self.set(PENDING, packed(&self.pending));
        }
    }

    /// Sets a word of the header, after all that was written before: whoever is killed has done
    /// all that stands before what it has done.
    fn set(&self, at: usize, word: u64) {
        self.word(at).store(word, Ordering::Release);
        // Nor anything that stands behind it.
        compiler_fence(Ordering::SeqCst);
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the header is mapped as long as this is there, its words are aligned as the
        // mapping is, and they are reached in this way alone.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(at).cast()) }
    }

    fn copy(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= BYTES, "it is asked for before");
        // SAFETY: so many bytes are mapped, and no reference to them is held.
        unsafe {
            let to = self.map.as_mut_ptr().add(at);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }
}

/// Lines that another thread reads.
#[derive(Debug)]
pub(super) struct Lent {
    map: Arc<MmapRaw>,
    lines: Range<usize>,
}

impl Lent {
    pub(super) fn text(&self) -> &[u8] {
        // SAFETY: lines that were lent are not written to until this is given back.
        unsafe { mapped(&self.map, self.lines.clone()) }
    }
}

/// # Safety
///
/// Nothing in this place is written to as long as this is there.
unsafe fn mapped(map: &MmapRaw, place: Range<usize>) -> &[u8] {
    debug_assert!(place.end <= BYTES, "it is mapped");
    // SAFETY: so many bytes are mapped, and no other process writes to the file: it is the
    // owner's alone, and locked.
    unsafe { std::slice::from_raw_parts(map.as_ptr().add(place.start), place.len()) }
}

impl Drop for Wal {
    fn drop(&mut self) {
        if self.pending.is_empty() {
            // What is left behind without lines whoever comes next deletes.
            let _removed = fs::remove_file(&self.path);
        }
    }
}

/// What comes of taking one over.
pub(super) enum Adopted {
    Wal(Wal),
    /// Its process is there.
    InUse,
    /// It was deleted, or had nothing, and is now.
    Gone,
}

/// Locks a new file, and claims its space; `None` if another process has deleted it.
fn claim(path: &Path, file: &File) -> io::Result<Option<MmapRaw>> {
    has_fit_file_system(file)?;
    file.lock()?;
    if !leads_to(path, file)? {
        return Ok(None);
    }
    fallocate(file, FallocateFlags::empty(), 0, length(BYTES))?;
    MmapOptions::new().len(BYTES).map_raw(file).map(Some)
}

/// An error where claimed space may not be there.
fn has_fit_file_system(file: &File) -> io::Result<()> {
    let kind = fstatfs(file)?.f_type;
    match FILE_SYSTEMS.contains(&(u64::try_from(kind).unwrap_or_default() & u64::from(u32::MAX))) {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "a file system of type {kind:#x} may have no room for what was claimed"
        ))),
    }
}

fn is_line(line: &[u8]) -> bool {
    line.starts_with(START.as_bytes()) && line.ends_with(b"\n")
}

/// Where lines are, in one word, so that it changes as one.
fn packed(pending: &Range<usize>) -> u64 {
    let [start, end] = [pending.start, pending.end].map(|at| u64::try_from(at).unwrap_or_default());
    start << 32 | end
}

fn unpacked(word: u64) -> Range<usize> {
    let [start, end] = [word >> 32, word & u64::from(u32::MAX)];
    let at = |word| usize::try_from(word).unwrap_or(usize::MAX);
    at(start)..at(end)
}

/// Whether this is the file at a path.
fn leads_to(path: &Path, file: &File) -> io::Result<bool> {
    let known = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok(there.dev() == known.dev() && there.ino() == known.ino()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
