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
#[test]
fn a_file_that_all_may_write_has_to_be_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let root = tempfile::tempdir().expect("folder");
    let file = root.path().join(".mcp.json");
    std::fs::write(&file, "{}").expect("file");
    let allow = |mode| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("mode");
    };
    let check = |name: &str| {
        let error = find(root.path()).expect_err("refused");
        assert_eq!(error.kind(), ConfigErrorKind::Foreign, "{error}");
        let said = error.to_string();
        assert!(said.contains(name) && said.contains("--config"), "{said}");
    };
    allow(0o666);
    check(".mcp.json: may be written by every user");
    assert!(Config::load_with(&file, environment).is_ok());
    std::os::unix::fs::symlink(&file, root.path().join("callgate.json")).expect("link");
    check("callgate.json: may be written by every user");
    allow(0o664);
    let found = find(root.path()).expect("found");
    assert_eq!(found, Some(root.path().join("callgate.json")));
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
