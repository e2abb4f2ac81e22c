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

#[test]
fn a_folder_is_no_file() {
    let root = tempfile::tempdir().expect("folder");
    let shown = root.path().to_str().expect("a text");
    for (named, shown) in [(root.path(), shown), (Path::new("."), ".")] {
        let error = Config::load_with(named, environment).expect_err("refused");
        let expected = format!(
            "{shown}: cannot be read: it is a folder; name a file, such as {shown}/callgate.json"
        );
        assert_eq!(error.to_string(), expected);
    }
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

#[cfg(unix)]
#[test]
fn every_folder_that_links_lead_through_counts() {
    use std::os::unix::fs::symlink;
    // Where the file is found, and by which links on the way; the folder `weak` is neither
    // where the first one is nor where the last one leads.
    for links in [
        // A chain of files.
        &[
            ("a/callgate.json", "../weak/l"),
            ("weak/l", "../c/real.json"),
        ][..],
        // A chain of folders.
        &[
            ("a/callgate.json", "../weak/l/real.json"),
            ("weak/l", "../c"),
        ],
        &[
            ("a/callgate.json", "../l/real.json"),
            ("l", "weak/m"),
            ("weak/m", "../c"),
        ],
        // Back out of a folder that a link leads into: its parent, not the link's.
        &[
            ("a/callgate.json", "../l/../m"),
            ("l", "weak/in"),
            ("weak/m", "../c/real.json"),
        ],
    ] {
        let root = tempfile::tempdir().expect("folder");
        let root = root.path().canonicalize().expect("a path");
        for folder in ["a", "weak/in", "c"] {
            std::fs::create_dir_all(root.join(folder)).expect("folders");
        }
        for folder in ["a", "weak", "weak/in", "c"] {
            allow(&root.join(folder), 0o755);
        }
        std::fs::write(root.join("c/real.json"), "{}").expect("file");
        allow(&root.join("c/real.json"), 0o644);
        for (link, target) in links {
            symlink(target, root.join(link)).expect("link");
        }
        let found = find(&root.join("a")).expect("found");
        assert_eq!(found, Some(root.join("a/callgate.json")), "{links:?}");
        allow(&root.join("weak"), 0o777);
        let said = refused(&root.join("a"));
        let folder = root.join("weak");
        let expected = format!(
            "folder that other users may write to ({})",
            folder.display()
        );
        assert!(said.contains(&expected), "{links:?}: {said}");
        allow(&root.join("weak"), 0o1777);
        assert!(find(&root.join("a")).is_ok(), "{links:?}");
    }
}

#[cfg(unix)]
#[test]
fn links_that_lead_nowhere_are_no_file() {
    use std::os::unix::fs::symlink;
    let root = tempfile::tempdir().expect("folder");
    let real = root.path().canonicalize().expect("a path");
    let said = |links: usize, last: &str| {
        let folder = real.join(format!("{links}{last}"));
        std::fs::create_dir(&folder).expect("folder");
        std::fs::write(folder.join("real"), "{}").expect("file");
        allow(&folder.join("real"), 0o644);
        for n in 1..links {
            symlink(format!("l{n}"), folder.join(format!("l{}", n + 1))).expect("link");
        }
        symlink(last, folder.join("l1")).expect("link");
        symlink(format!("l{links}"), folder.join("callgate.json")).expect("link");
        match find(&folder) {
            Ok(found) => {
                let config = found.map(|file| Config::load_with(&file, environment).is_ok());
                format!("{config:?}")
            }
            Err(error) => {
                let folder = format!("{}/", folder.display());
                format!("{:?}: {error}", error.kind()).replace(&folder, "")
            }
        }
    };
    // With `callgate.json` itself, as many as Linux follows, and one more.
    assert_eq!(said(39, "real"), "Some(true)");
    let circle = "Read: callgate.json: cannot be read: it leads over more than 40 symbolic links, \
                  maybe in a circle; put the file itself there, or a link to it";
    assert_eq!(said(40, "real"), circle);
    assert_eq!(said(1, "l1"), circle);
    expect!["Read: callgate.json: cannot be read: No such file or directory (os error 2)"]
        .assert_eq(&said(1, "missing"));
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
        expect![
            "Read: folder.json: cannot be read: it is a folder; name a file, such as folder.json/callgate.json"
        ],
    );
    std::fs::write(root.path().join("bytes.json"), [0xff]).expect("file");
    check("bytes.json", expect!["Syntax: bytes.json: not UTF-8 text"]);
}
