//! Which file is read.

use super::*;

#[test]
fn the_nearest_folder_wins_and_our_own_file_in_it() {
    let root = tempfile::tempdir().expect("folder");
    let inner = root.path().join("a/b");
    std::fs::create_dir_all(&inner).expect("folders");
    let check = |add: &str, found: &str| {
        std::fs::write(root.path().join(add), "{}").expect("file");
        assert_eq!(
            find(&inner).expect("found"),
            Some(root.path().join(found)),
            "with {add}"
        );
    };
    check(".mcp.json", ".mcp.json");
    check("callgate.json", "callgate.json");
    check("a/.mcp.json", "a/.mcp.json");
    check("a/b/.mcp.json", "a/b/.mcp.json");
    check("a/b/callgate.json", "a/b/callgate.json");
}

#[cfg(unix)]
fn allow(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("mode");
}

/// What is said of the file that is found in a folder, and may not be used unnamed.
#[cfg(unix)]
fn refused(folder: &Path) -> String {
    let error = find(folder).expect_err("refused");
    assert_eq!(error.kind(), ConfigErrorKind::Foreign, "{error}");
    let said = error.to_string();
    assert!(said.contains("--config"), "{said}");
    said
}

#[cfg(unix)]
#[test]
fn a_file_that_others_may_write_has_to_be_named() {
    let root = tempfile::tempdir().expect("folder");
    let file = root.path().join(".mcp.json");
    std::fs::write(&file, "{}").expect("file");
    let check = |name: &str| {
        let said = refused(root.path());
        let expected = format!("{name}: may be written by other users");
        assert!(said.contains(&expected), "{said}");
    };
    allow(&file, 0o666);
    check(".mcp.json");
    assert!(Config::load_with(&file, environment).is_ok());
    // Nobody but root can give it to a group that is not their own.
    if std::os::unix::fs::chown(&file, None, Some(65_534)).is_ok() {
        allow(&file, 0o664);
        check(".mcp.json");
    }
    allow(&file, 0o666);
    std::os::unix::fs::symlink(&file, root.path().join("callgate.json")).expect("link");
    check("callgate.json");
    allow(&file, 0o644);
    let found = find(root.path()).expect("found");
    assert_eq!(found, Some(root.path().join("callgate.json")));
}

#[cfg(unix)]
#[test]
fn a_file_that_others_may_replace_has_to_be_named() {
    let root = tempfile::tempdir().expect("folder");
    let root = root.path().canonicalize().expect("a path");
    let (outer, inner, link) = (root.join("a"), root.join("a/b"), root.join("link"));
    std::fs::create_dir_all(&inner).expect("folders");
    std::fs::write(inner.join("callgate.json"), "{}").expect("file");
    allow(&inner.join("callgate.json"), 0o644);
    std::os::unix::fs::symlink(&inner, &link).expect("link");
    for folder in [&outer, &inner] {
        let expected = format!(
            "is in a folder that other users may write to ({})",
            folder.display()
        );
        for from in [&inner, &link] {
            allow(&outer, 0o755);
            allow(&inner, 0o755);
            assert!(find(from).is_ok_and(|found| found.is_some()));
            allow(folder, 0o777);
            let said = refused(from);
            assert!(said.contains(&expected), "{said}");
            // As `/tmp` is.
            allow(folder, 0o1777);
            assert!(find(from).is_ok_and(|found| found.is_some()));
        }
    }
    // It is the file's own folders that count.
    std::fs::create_dir(inner.join("c")).expect("folder");
    allow(&outer, 0o755);
    allow(&inner, 0o755);
    allow(&inner.join("c"), 0o777);
    let found = find(&inner.join("c")).expect("found");
    assert_eq!(found, Some(inner.join("callgate.json")));
}

#[test]
fn files_that_cannot_be_read() {
    let root = tempfile::tempdir().expect("folder");
    let check = |name: &str, expected: Expect| {
        let error = Config::load_with(&root.path().join(name), environment).expect_err(name);
        let root = format!("{}/", root.path().display());
        expected.assert_eq(&format!("{:?}: {error}", error.kind()).replace(&root, ""));
    };
    check(
        "missing.json",
        expect!["Read: missing.json: cannot be read: No such file or directory (os error 2)"],
    );
    std::fs::create_dir(root.path().join("folder.json")).expect("folder");
    check(
        "folder.json",
        expect!["Read: folder.json: cannot be read: Is a directory (os error 21)"],
    );
    std::fs::write(root.path().join("bytes.json"), [0xff]).expect("file");
    check("bytes.json", expect!["Syntax: bytes.json: not UTF-8 text"]);
}
