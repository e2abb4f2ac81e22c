//! Owners: each holds a lock file, which the system unlocks when the process ends in any way.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use uuid::Uuid;

use super::folder::{Folder, private_file, remove_file};
use crate::error::StoreError;
use crate::store::Owner;

const SUFFIX: &str = ".lock";

/// The lock of an owner. Dropping it removes the file.
pub(super) struct OwnerLock {
    path: PathBuf,
    file: Mutex<File>,
}

impl Drop for OwnerLock {
    fn drop(&mut self) {
        if let Err(error) = remove_file(&self.path) {
            tracing::debug!(%error, "an owner's lock file cannot be removed");
        }
    }
}

/// Registers an owner. The lock is that of the owner, for [`renew`].
pub(super) fn register(folder: &Folder) -> Result<(Owner, Weak<OwnerLock>), StoreError> {
    folder.prepare()?;
    let id = Uuid::new_v4().simple().to_string();
    let path = path(folder, &id);
    let file = Mutex::new(locked(folder, &path)?);
    let lock = Arc::new(OwnerLock { path, file });
    let weak = Arc::downgrade(&lock);
    Ok((Owner::new(id, Box::new(lock)), weak))
}

/// Makes the files of living owners again that were removed with the folder.
pub(super) fn renew(folder: &Folder, owners: &mut Vec<Weak<OwnerLock>>) -> Result<(), StoreError> {
    owners.retain(|owner| owner.strong_count() > 0);
    for owner in owners.iter().filter_map(Weak::upgrade) {
        if !owner.path.exists() {
            *owner.file.lock() = locked(folder, &owner.path)?;
        }
    }
    Ok(())
}

/// Makes a lock file. It gets its name once it is locked, so that it never looks as if its owner
/// were gone.
fn locked(folder: &Folder, path: &Path) -> io::Result<File> {
    let name = format!(".new-{}", Uuid::new_v4().simple());
    let new = folder.owners().join(name);
    let file = private_file().create_new(true).open(&new)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.lock()?;
    fs::rename(&new, path)?;
    Ok(file)
}

/// True if an owner holds its lock, or if that cannot be found out.
pub(super) fn is_alive(folder: &Folder, id: &str) -> bool {
    if !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return false;
    }
    match File::open(path(folder, id)) {
        // A shared lock, so that several processes can look at once.
        Ok(file) => file.try_lock_shared().is_err(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// Removes the lock files of owners that are no longer alive.
pub(super) fn tidy(folder: &Folder) -> io::Result<()> {
    for entry in fs::read_dir(folder.owners())? {
        let name = entry?.file_name();
        let id = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
        if let Some(id) = id.filter(|id| !is_alive(folder, id)) {
            remove_file(&path(folder, id))?;
        }
    }
    Ok(())
}

fn path(folder: &Folder, id: &str) -> PathBuf {
    folder.owners().join(format!("{id}{SUFFIX}"))
}
