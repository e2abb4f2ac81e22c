//! The folder of a store: its permissions, locks and files.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::error::{StoreError, StoreErrorKind};

/// The file of the store's own lock.
const LOCK: &str = "store.lock";
/// The start of the name of a database that was set aside; its time follows.
const DAMAGED: &str = "store.db.damaged-";
/// The limit of waiting for the store's lock.
const LOCK_LIMIT: Duration = Duration::from_secs(5);
const LOCK_STEP: Duration = Duration::from_millis(10);

/// File systems over a network, by the numbers that `statfs` gives.
#[cfg(target_os = "linux")]
const NETWORK: [(u32, &str); 7] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9P"),
    (0x5346_414f, "AFS"),
    (0x00c3_6400, "Ceph"),
];
/// The number of all file systems of user programs, of which SSHFS is one.
#[cfg(target_os = "linux")]
const FUSE: u32 = 0x6573_5546;

/// A file, whatever its name is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

/// The folder of a store, for its user alone.
#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes the folder if it does not exist, and removes the access of other users. A folder that
    /// they use is refused.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        if is_shared(path) {
            let message = format!(
                "the folder {} has other files and is open to other users; name a folder for the \
                 store alone",
                path.display()
            );
            return Err(StoreError::new(StoreErrorKind::Foreign, message));
        }
        make_private(path)?;
        // SQLite is told to follow no link.
        Ok(Self(path.canonicalize()?))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn database(&self) -> PathBuf {
        self.0.join("store.db")
    }

    pub(super) fn owners(&self) -> PathBuf {
        self.0.join("owners")
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.0.join("blobs")
    }

    /// Makes the folders that are missing.
    pub(super) fn prepare(&self) -> Result<(), StoreError> {
        for folder in [&self.0, &self.owners(), &self.blobs()] {
            make_private(folder)?;
        }
        Ok(())
    }

    /// Waits for the store's own lock, which is held while the database is made, migrated or set
    /// aside, until the file is dropped.
    pub(super) fn lock(&self) -> Result<File, StoreError> {
        let file = private_file().create(true).open(self.0.join(LOCK))?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        let end = Instant::now() + LOCK_LIMIT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < end => thread::sleep(LOCK_STEP),
                Err(TryLockError::WouldBlock) => {
                    let message = "another process is opening it for too long; try again";
                    return Err(StoreError::new(StoreErrorKind::Locked, message));
                }
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
    }

    /// The file at the database's path; `None` if there is none.
    pub(super) fn file_id(&self) -> Option<FileId> {
        let found = fs::symlink_metadata(self.database()).ok()?;
        Some(FileId {
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// Makes an empty database file if there is none. Call it with the lock.
    ///
    /// An existing file is not opened: closing it would release the locks that SQLite has on it in
    /// this process. SQLite gives its other files the permissions of this one.
    pub(super) fn make_database(&self) -> Result<(), StoreError> {
        let path = self.database();
        match private_file().create_new(true).open(&path) {
            Ok(file) => {
                // Logs of a database that is gone.
                for suffix in ["-wal", "-shm"] {
                    remove_file(&with_suffix(&path, suffix))?;
                }
                Ok(file.set_permissions(Permissions::from_mode(0o600))?)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let found = fs::symlink_metadata(&path)?;
                if !found.is_file() {
                    let message = "store.db is not a file; move it away";
                    return Err(StoreError::new(StoreErrorKind::Unavailable, message));
                }
                if found.mode() & 0o077 != 0 {
                    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Renames the database and its logs. Call it with the lock. Other processes that have them open
    /// notice that the path has a different file.
    pub(super) fn set_aside(&self) -> io::Result<PathBuf> {
        let time = Timestamp::now().strftime("%Y%m%dT%H%M%S.%3fZ");
        let aside = self.0.join(format!("{DAMAGED}{time}"));
        for suffix in ["", "-wal", "-shm"] {
            let renamed = fs::rename(
                with_suffix(&self.database(), suffix),
                with_suffix(&aside, suffix),
            );
            if let Err(error) = renamed
                && error.kind() != ErrorKind::NotFound
            {
                return Err(error);
            }
        }
        Ok(aside)
    }

    /// The databases that were set aside, the oldest first.
    pub(super) fn damaged(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        found.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(DAMAGED) && !name.ends_with("-wal") && !name.ends_with("-shm")
        });
        found.sort();
        found
    }

    /// The name of the file system if it is one over a network, where locks may not work.
    #[cfg(target_os = "linux")]
    pub(super) fn network_file_system(&self) -> Option<&'static str> {
        let kind = rustix::fs::statfs(self.0.as_path()).ok()?.f_type as u32;
        if kind == FUSE {
            let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
            return is_sshfs(&mounts, &self.0).then_some("SSHFS");
        }
        let network = NETWORK.iter().find(|(number, _)| *number == kind);
        network.map(|(_, name)| *name)
    }

    /// Not known on this system.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn network_file_system(&self) -> Option<&'static str> {
        None
    }
}

/// True if the innermost mount of a path is one of SSHFS. `mounts` has the form of `/proc/mounts`.
#[cfg(target_os = "linux")]
fn is_sshfs(mounts: &str, path: &Path) -> bool {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?.replace("\\040", " "), fields.next()?))
    });
    let around = mounts.filter(|(place, _)| path.starts_with(place));
    // Of mounts at one place, the last one is in force.
    let innermost = around.max_by_key(|(place, _)| place.len());
    innermost.is_some_and(|(_, kind)| kind == "fuse.sshfs")
}

/// True if a folder is open to other users and has files, but no store.
fn is_shared(path: &Path) -> bool {
    let is_open = fs::metadata(path).is_ok_and(|found| found.mode() & 0o077 != 0);
    let mut entries = fs::read_dir(path).into_iter().flatten();
    is_open && entries.next().is_some() && !path.join(LOCK).exists()
}

/// Makes a folder that only this user can use, whatever the umask is.
pub(super) fn make_private(path: &Path) -> Result<(), StoreError> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let found = fs::metadata(path)?;
    if !callgate_files::is_own(&found)? {
        let message = format!(
            "the folder {} belongs to a different user; choose a folder of your own",
            path.display()
        );
        return Err(StoreError::new(StoreErrorKind::Foreign, message));
    }
    if found.mode() & 0o777 != 0o700 {
        fs::set_permissions(path, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Options for a file that only this user can use.
pub(super) fn private_file() -> OpenOptions {
    let mut options = File::options();
    options.write(true).truncate(false).mode(0o600);
    options
}

/// Removes a file if it exists.
pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn innermost_mount_decides_about_sshfs() {
        let mounts = "/dev/sda1 / ext4 rw 0 0\n\
                      ana@host:/ /srv/far\\040away fuse.sshfs rw 0 0\n\
                      tmpfs /srv/far\\040away/near tmpfs rw 0 0\n";
        assert!(is_sshfs(mounts, Path::new("/srv/far away/state")));
        assert!(!is_sshfs(mounts, Path::new("/srv/far away/near/state")));
        assert!(!is_sshfs(mounts, Path::new("/srv/far")));
    }
}
