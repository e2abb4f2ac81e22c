//! `roots`: the folders that servers are told to work in.

use std::path::{Component, Path, PathBuf};

use callgate_broker::Root;
use jsonc_parser::ast::ObjectProp;
use url::Url;

use super::error::ConfigErrorKind;
use super::reader::Reader;

/// Reads the list. Whether a folder is there is not looked at: a server may be
/// the one to make it.
pub(super) fn read(reader: &mut Reader<'_>, property: &ObjectProp<'_>) -> Vec<Root> {
    let folder = reader.variables.folder.to_owned();
    let mut roots = Vec::new();
    for (text, range) in reader.strings(property, "the file") {
        let Some(path) = reader.expand(text, range, "\"roots\"") else {
            continue;
        };
        match root(&folder, &path) {
            Some(root) => roots.push(root),
            None => reader.error(
                range,
                ConfigErrorKind::Value,
                "\"roots\" must hold paths of folders, such as \".\"",
            ),
        }
    }
    roots
}

fn root(folder: &Path, path: &str) -> Option<Root> {
    if path.trim().is_empty() {
        return None;
    }
    let path = plain(&folder.join(path));
    let name = path.file_name().map(|name| name.to_string_lossy().into());
    Some(Root {
        uri: Url::from_file_path(&path).ok()?.into(),
        name,
    })
}

/// The path without `.` and `..`, by its text.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
