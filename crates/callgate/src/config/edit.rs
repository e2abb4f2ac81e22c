//! Adds rules to a configuration file, and keeps the rest of it: comments, layout, mode, owner.

use std::fmt::Display;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write as _, read_to_string};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;

use jsonc_parser::cst::{CstInputValue, CstRootNode};
use tempfile::NamedTempFile;

use super::error::shown;
use super::find::MAX_BYTES;
use super::tree::SYNTAX;
use super::trust;

/// The reason why a configuration file was not changed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EditError(String);

/// Adds rules to `permissions`, `allow` of a configuration file. Each is a JSON value as that
/// list has them.
///
/// The new text replaces the old one at once, so that no reader sees half of it.
///
/// # Errors
///
/// [`EditError`]; nothing has been written then.
pub fn allow(path: &Path, rules: &[String]) -> Result<(), EditError> {
    rewrite(path, |old| with_rules(old, rules))
}

/// Checks that a configuration file takes rules, as [`allow`] does. The file is not changed.
///
/// # Errors
///
/// The error of `allow`, as far as that does not depend on the rules.
pub fn takes_rules(path: &Path) -> Result<(), EditError> {
    rewrite(path, |old| {
        with_rules(old, &["\"rule\"".to_owned()])?;
        Ok::<_, String>(old.to_owned())
    })
}

/// Replaces the text of a configuration file, also of another client's, by the result of `change`, at
/// once and with its owner and mode. A file whose text stays the same is not written.
///
/// # Errors
///
/// [`EditError`]; nothing has been written then.
pub fn rewrite<E: Display>(
    path: &Path,
    change: impl FnOnce(&str) -> Result<String, E>,
) -> Result<(), EditError> {
    let file = shown(path);
    let file = file.display();
    let failed = |error: io::Error| EditError(format!("{file}: {error}"));
    let other = |message: &str| failed(io::Error::other(message));
    let found = path;
    // A link is kept, and the file it leads to is replaced.
    let path = path.canonicalize().map_err(failed)?;
    // Before it is opened: opening a pipe could wait forever.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(other("it is not a regular file"));
    }
    let locked = locked(&path).map_err(failed)?;
    let metadata = locked.metadata().map_err(failed)?;
    // The folder's permissions would allow a replacement of a file that may not be written.
    let writable = OpenOptions::new().append(true).open(&path);
    if writable.is_err() || metadata.permissions().readonly() {
        return Err(other("it may not be written to"));
    }
    if metadata.len() > MAX_BYTES {
        return Err(other(&format!("it is over {MAX_BYTES} bytes")));
    }
    let old = read_to_string(&locked).map_err(failed)?;
    let new = change(&old).map_err(|reason| {
        EditError(format!(
            "{file} cannot take a rule: {reason}; write it under \"permissions\", \"allow\""
        ))
    })?;
    let after = beside(&path, new.as_bytes(), &metadata).map_err(failed)?;
    let set = after.as_file().set_permissions(metadata.permissions());
    set.map_err(failed)?;
    if new == old {
        return Ok(());
    }
    if callgate_files::read_text(&path, MAX_BYTES).map_err(failed)? != old {
        return Err(EditError(format!(
            "{file} was changed by another program; nothing was written, so try again"
        )));
    }
    after.persist(&path).map_err(|error| failed(error.error))?;
    // Without the record, the change is asked about: no reason to undo it.
    if let Err(error) = trust::carry_over(found, &old, &new) {
        tracing::warn!(%error, "the changed configuration has to be accepted again");
    }
    // The new name lasts once the folder is written, too.
    if let Some(Ok(folder)) = path.parent().map(File::open) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Opens the file, locked against other edits. A file that was replaced during the wait is
/// opened again.
fn locked(path: &Path) -> io::Result<File> {
    loop {
        let file = File::open(path)?;
        if let Err(error) = file.lock()
            && error.kind() != ErrorKind::Unsupported
        {
            return Err(error);
        }
        let (opened, named) = (file.metadata()?, path.metadata()?);
        if (opened.dev(), opened.ino()) == (named.dev(), named.ino()) {
            return Ok(file);
        }
    }
}

/// Writes a file next to another, with its owner. Other users cannot read it.
fn beside(path: &Path, bytes: &[u8], old: &Metadata) -> io::Result<NamedTempFile> {
    let folder = path.parent().unwrap_or(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut new = tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .tempfile_in(folder)?;
    new.write_all(bytes)?;
    give_to_owner(new.as_file(), old)?;
    new.as_file().sync_all()?;
    Ok(new)
}

/// Gives a file to the owner of the old one.
fn give_to_owner(file: &File, old: &Metadata) -> io::Result<()> {
    let now = file.metadata()?;
    let changed = |now: u32, old: u32| (now != old).then_some(old);
    let (user, group) = (changed(now.uid(), old.uid()), changed(now.gid(), old.gid()));
    if user.is_none() && group.is_none() {
        return Ok(());
    }
    let owner = if user.is_some() { "user" } else { "group" };
    fchown(file, user, group).map_err(|_| {
        io::Error::other(format!(
            "it belongs to another {owner}, and replacing it would change that"
        ))
    })
}

/// The text with `rules`, each a JSON value in one line, at the end of `permissions`, `allow`.
/// The error: the fault of the text, as a clause about the file.
pub(super) fn with_rules(text: &str, rules: &[String]) -> Result<String, String> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let root = CstRootNode::parse(body, &SYNTAX).map_err(|error| error.to_string())?;
    let top = root.object_value().ok_or("it holds no object")?;
    let in_lines = top.properties().is_empty() || root.single_indent_text().is_some();
    let permissions = top.object_value_or_create("permissions");
    let permissions = permissions.ok_or("its \"permissions\" are not an object")?;
    let is_new = permissions.get("allow").is_none();
    let allow = permissions.array_value_or_create("allow");
    let allow = allow.ok_or("its \"allow\" is not a list")?;
    if is_new && in_lines {
        permissions.ensure_multiline();
        allow.ensure_multiline();
    }
    for rule in rules {
        // A number is written as its text: each rule stays in one line.
        allow.append(CstInputValue::Number(rule.clone()));
    }
    Ok(format!("{mark}{root}"))
}
