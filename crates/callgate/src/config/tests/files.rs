//! The search for the configuration file, and the file's folder.

use super::*;

#[test]
fn nearest_config_file_is_found_first() {
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
fn jsonc_is_found_and_both_are_refused() {
    let root = tempfile::tempdir().expect("folder");
    let file = |name: &str| root.path().join(name);
    std::fs::write(file(".mcp.json"), "{}").expect("file");
    std::fs::write(file("callgate.jsonc"), "{} // ours").expect("file");
    assert_eq!(
        find(root.path()).expect("found"),
        Some(file("callgate.jsonc"))
    );
    assert!(is_found_name(&file("callgate.jsonc")));
    std::fs::write(file("callgate.json"), "{}").expect("file");
    let said = find(root.path()).expect_err("two files").to_string();
    for name in ["callgate.json: ", "callgate.jsonc is"] {
        assert!(said.contains(name), "{said}");
    }
}

fn allow(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("mode");
}

/// The error for a folder whose file is used only if `--config` names it.
fn refused(folder: &Path) -> String {
    let error = find(folder).expect_err("refused");
    let said = error.to_string();
    assert!(said.contains("--config"), "{said}");
    said
}

#[test]
fn config_file_writable_by_others_is_refused() {
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
    // Only root can give a file to a group without being a member of that group.
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

#[test]
fn config_file_replaceable_by_others_is_refused() {
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
fn every_folder_on_a_symlink_path_is_checked() {
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

#[test]
fn broken_symlinks_are_refused() {
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
                error.to_string().replace(&folder, "")
            }
        }
    };
    // With `callgate.json` itself, as many as Linux follows, and one more.
    assert_eq!(said(39, "real"), "Some(true)");
    let circle = "callgate.json: cannot be read: it leads over more than 40 symbolic links, \
                  maybe in a circle; put the file itself there, or a link to it";
    assert_eq!(said(40, "real"), circle);
    assert_eq!(said(1, "l1"), circle);
    let missing = "callgate.json: cannot be read: No such file or directory (os error 2)";
    assert_eq!(said(1, "missing"), missing);
}

fn mkfifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo starts").success());
}

#[test]
fn unreadable_config_files_are_refused() {
    let root = tempfile::tempdir().expect("folder");
    let path = |name: &str| root.path().join(name);
    std::fs::create_dir(path("folder.json")).expect("folder");
    std::fs::write(path("bytes.json"), [0xff]).expect("file");
    mkfifo(&path("pipe.json"));
    std::os::unix::fs::symlink("/dev/zero", path("zero.json")).expect("link");
    std::os::unix::net::UnixListener::bind(path("socket.json")).expect("socket");
    let large = std::fs::File::create(path("large.json")).expect("file");
    large.set_len(1 << 40).expect("a file with a hole");
    let no_file = "cannot be read: it is a pipe, a socket or a device, and not a file";
    for (name, expected) in [
        (
            "missing.json",
            "cannot be read: No such file or directory (os error 2)",
        ),
        ("folder.json", "cannot be read: it is a folder"),
        ("bytes.json", "not UTF-8 text"),
        ("pipe.json", no_file),
        ("zero.json", no_file),
        ("socket.json", no_file),
        ("large.json", "cannot be read: it is over 67108864 bytes"),
    ] {
        let error = Config::load_with(&path(name), environment).expect_err(name);
        let said = error
            .to_string()
            .replace(&*root.path().to_string_lossy(), "ROOT");
        assert_eq!(said, format!("ROOT/{name}: {expected}"));
    }
}

/// A file in which every key that takes the folder has it.
const TEXT: &str = r#"{
  "mcpServers": { "fs": {
    "command": "./bin/fs", "args": ["${workspaceFolder}", "--data=${workspaceFolder}/data"],
    "cwd": "."
  } },
  "permissions": {
    "allow": [{ "tool": "fs_*", "arguments": [{ "at": "/path", "prefix": "${workspaceFolder}" }] }],
    "deny": [
      { "tool": "fs_*", "arguments": [{ "at": "/path", "prefix": "${workspaceFolder}/secret/" }] },
      { "tool": "fs_*", "arguments": [{ "at": "/path", "glob": "${workspaceFolder}/keys/**" }] }
    ]
  },
  "roots": [".", "${workspaceFolder}/data"],
  "ledger": { "path": "calls.jsonl" }
}"#;

/// All that holds the folder, with `FOLDER` for that path.
fn shown(config: &Config, folder: &Path) -> String {
    let Stdio {
        command, args, cwd, ..
    } = stdio(config);
    let mut lines = vec![
        format!("{:?} {:?}", config.folder, config.path),
        format!("{command} {args:?} {cwd:?}"),
    ];
    lines.extend(
        config
            .permissions
            .iter()
            .map(|rule| rule.to_json().to_string()),
    );
    lines.extend(config.roots.iter().map(|root| root.uri.clone()));
    lines.push(format!("{:?}", ledger(config).0));
    lines
        .join("\n")
        .replace(&*folder.to_string_lossy(), "FOLDER")
}

const EXPECTED: &str = r#""FOLDER" "FOLDER/callgate.json"
FOLDER/./bin/fs ["FOLDER", "--data=FOLDER/data"] Some("FOLDER/.")
{"tool":"fs_*","arguments":[{"at":"/path","prefix":"FOLDER"}]}
{"tool":"fs_*","arguments":[{"at":"/path","prefix":"FOLDER/secret/"}]}
{"tool":"fs_*","arguments":[{"at":"/path","glob":"FOLDER/keys/**"}]}
file://FOLDER
file://FOLDER/data
"FOLDER/calls.jsonl""#;

/// A folder with the file and one within it; and its real path.
fn project() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().expect("folder");
    let folder = root.path().canonicalize().expect("a path").join("project");
    std::fs::create_dir_all(folder.join("sub")).expect("folders");
    std::fs::write(folder.join("callgate.json"), TEXT).expect("file");
    (root, folder)
}

#[test]
fn project_folder_does_not_depend_on_path_spelling() {
    let (_root, folder) = project();
    let plain = folder.display();
    for named in [
        format!("{plain}/callgate.json"),
        // What `--config ../callgate.json` is from within `sub`.
        format!("{plain}/sub/../callgate.json"),
        format!("{plain}/./sub/.././callgate.json"),
        format!("{plain}//callgate.json"),
        format!("/{plain}/callgate.json"),
    ] {
        let config = Config::load_with(Path::new(&named), environment).expect(&named);
        assert_eq!(shown(&config, &folder), EXPECTED, "{named}");
    }
}

#[test]
fn project_folder_at_root_has_one_slash() {
    let config = read_in("/", "callgate.json", TEXT).expect("a configuration");
    let expected = EXPECTED.replace("FOLDER/", "/").replace("FOLDER", "/");
    assert_eq!(shown(&config, Path::new("no such text")), expected);
}

#[test]
fn project_folder_behind_symlink_is_resolved() {
    let (root, folder) = project();
    let root = root.path().canonicalize().expect("a path");
    std::os::unix::fs::symlink(&folder, root.join("link")).expect("link");
    for named in ["link/callgate.json", "project/../link/callgate.json"] {
        let config = Config::load_with(&root.join(named), environment).expect(named);
        assert_eq!(shown(&config, &folder), EXPECTED, "{named}");
    }
    // From behind a link `..` leads to where the link's folder is.
    std::os::unix::fs::symlink(folder.join("sub"), root.join("inner")).expect("link");
    let named = root.join("inner/../callgate.json");
    let config = Config::load_with(&named, environment).expect("a configuration");
    assert_eq!(shown(&config, &folder), EXPECTED);
    // The folder is where a link to the file is, and not where the file is.
    let linked = root.join("linked");
    std::fs::create_dir(&linked).expect("folder");
    let file = linked.join("callgate.json");
    std::os::unix::fs::symlink(folder.join("callgate.json"), &file).expect("link");
    let config = Config::load_with(&file, environment).expect("a configuration");
    assert_eq!(shown(&config, &linked), EXPECTED);
}
