//! Rules that are added to a file: everything else in it stays.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::*;
use crate::config::edit::with_rules;
use crate::config::{allow, rewrite, takes_rules};

const RULE: &str = r#"{ "tool": "git_log" }"#;

/// Texts, with what the rule adds to them in angle brackets.
#[test]
fn rule_edits_keep_the_layout() {
    for text in [
        // A list in lines.
        "{\n  \"permissions\": {\n    \"allow\": [\n      \"a_*\"«,\n      { \"tool\": \"git_log\" }»\n    ]\n  }\n}\n",
        // Comments and trailing commas.
        "// ours\n{\n  \"permissions\": {\n    \"allow\": [\n      \"a_*\", // all of a\n      \"c_*\", // the last\n      «{ \"tool\": \"git_log\" },\n      »// and a note\n    ],\n  }, // end\n}\n",
        "{\n\t\"permissions\": {\n\t\t\"allow\": [\n\t\t\t\"a_*\"«,» // the last\n\t\t«\t{ \"tool\": \"git_log\" }\n\t\t»]\n\t}\n}\n",
        // A list in one line.
        r#"{ "permissions": { "allow": ["a_*"«, { "tool": "git_log" }»] } }"#,
        r#"{ "permissions": { "allow": [«{ "tool": "git_log" }»] } }"#,
        // An empty list with a comment.
        "{\n  \"permissions\": {\n    \"allow\": [\n      // none yet\n    «  { \"tool\": \"git_log\" }\n    »]\n  }\n}\n",
        // No list.
        "{\n    \"permissions\": {\n        \"deny\": [\"x_*\"]«,» // never\n    «    \"allow\": [\n            { \"tool\": \"git_log\" }\n        ]\n    »}\n}\n",
        // No permissions.
        "{\n  \"mcpServers\": {\n  }«,» // none\n«  \"permissions\": {\n    \"allow\": [\n      { \"tool\": \"git_log\" }\n    ]\n  }\n»}\n",
        "{«\n  \"permissions\": {\n    \"allow\": [\n      { \"tool\": \"git_log\" }\n    ]\n  }\n»}",
        // Line ends.
        "{\r\n\t\"limits\": {},\r\n«\t\"permissions\": {\r\n\t\t\"allow\": [\r\n\t\t\t{ \"tool\": \"git_log\" }\r\n\t\t]\r\n\t},\r\n»}\r\n",
        // A byte order mark.
        "\u{feff}{ \"permissions\": { \"allow\": [«{ \"tool\": \"git_log\" }»] } }",
    ] {
        let parts = text.split(['«', '»']);
        let before: String = parts.step_by(2).collect();
        let after = text.replace(['«', '»'], "");
        let edited = with_rules(&before, &[RULE.to_owned()]);
        assert_eq!(edited.as_deref(), Ok(&*after), "{before}");
        let config = read("callgate.json", &after).expect(&after);
        let (rules, written) = (config.permissions.iter(), after.matches('_'));
        assert_eq!(rules.count(), written.count(), "{after}");
    }
}

/// Whatever the layout is, the rules are added, and every comment stays.
#[test]
fn rule_edits_keep_comments_in_odd_layouts() {
    for before in [
        "{ /* nothing */ }",
        "{\"mcpServers\":{}}",
        "{ \"permissions\": { \"allow\": [ /* nothing */ ] } }",
        "{ \"permissions\": { \"allow\": [\"a\", /* nothing */ ] } }",
        "{ \"permissions\": { \"allow\": [\n  \"a\"\n  , // nothing\n] } }",
        "{\n\"permissions\": {} } // nothing",
    ] {
        let after = with_rules(before, &[RULE.to_owned()]).expect(before);
        let comments = |text: &str| text.matches("nothing").count();
        assert_eq!(comments(before), comments(&after));
        let config = read("callgate.json", &after).expect(&after);
        let rule = config.permissions.iter().last().expect("a rule");
        assert_eq!(rule.to_json(), "git_log");
    }
}

#[test]
fn rule_edits_of_wrong_shapes_are_refused() {
    for (text, reason) in [
        ("", "it holds no object"),
        ("[]", "it holds no object"),
        (
            "{ \"permissions\": [] }",
            "its \"permissions\" are not an object",
        ),
        (
            "{ \"permissions\": { \"allow\": {} } }",
            "its \"allow\" is not a list",
        ),
        (
            "{ \"permissions\": { \"allow\": [ }",
            "Unexpected close brace on line 1 column 31",
        ),
    ] {
        let refused = with_rules(text, &[RULE.to_owned()]).expect_err(text);
        assert_eq!(refused, reason, "{text}");
    }
}

#[test]
fn edits_keep_file_mode_and_symlink() {
    let folder = tempfile::tempdir().expect("folder");
    let (file, link) = (
        folder.path().join("real.json"),
        folder.path().join("callgate.json"),
    );
    std::fs::write(&file, "{}").expect("file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("mode");
    std::os::unix::fs::symlink("real.json", &link).expect("link");
    takes_rules(&link).expect("it takes rules");
    assert_eq!(std::fs::read_to_string(&file).expect("file"), "{}");
    allow(&link, &[RULE.to_owned()]).expect("written");
    assert!(link.is_symlink());
    let metadata = file.metadata().expect("file");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
    assert!(std::fs::read_to_string(&file).expect("text").contains(RULE));
    assert_eq!(files(folder.path()), ["callgate.json", "real.json"]);
}

#[test]
fn edits_fail_if_the_file_changed_meanwhile() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("callgate.json");
    std::fs::write(&path, "{}").expect("file");
    let other = "{ \"permissions\": { \"deny\": [\"*\"] } }";
    let refused = rewrite(&path, |old| {
        std::fs::write(&path, other).expect("file");
        with_rules(old, &[RULE.to_owned()])
    });
    let refused = refused.expect_err("it was changed").to_string();
    assert!(refused.ends_with("was changed by another program; nothing was written, so try again"));
    assert_eq!(std::fs::read_to_string(&path).expect("text"), other);
    assert_eq!(files(folder.path()), ["callgate.json"]);
}

#[test]
fn concurrent_edits_are_all_kept() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("callgate.json");
    std::fs::write(&path, "{}").expect("file");
    std::thread::scope(|scope| {
        for number in 0..20 {
            let path = &path;
            scope.spawn(move || allow(path, &[format!("\"tool_{number}\"")]).expect("written"));
        }
    });
    let config = Config::load_with(&path, environment).expect("a configuration");
    assert_eq!(config.permissions.iter().count(), 20);
    assert_eq!(files(folder.path()), ["callgate.json"]);
}

#[test]
fn edits_of_unwritable_files_are_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("folder.json")).expect("folder");
    std::fs::write(path("locked.json"), "{}").expect("file");
    std::fs::set_permissions(path("locked.json"), std::fs::Permissions::from_mode(0o400))
        .expect("mode");
    std::fs::write(path("bytes.json"), [0xff]).expect("file");
    std::fs::write(path("list.json"), "[]").expect("file");
    for (name, expected) in [
        ("missing.json", ": No such file or directory (os error 2)"),
        ("folder.json", ": it is not a regular file"),
        ("locked.json", ": it may not be written to"),
        ("bytes.json", ": stream did not contain valid UTF-8"),
        (
            "list.json",
            " cannot take a rule: it holds no object; write it under \"permissions\", \"allow\"",
        ),
    ] {
        let error = allow(&path(name), &[RULE.to_owned()])
            .expect_err(name)
            .to_string();
        assert_eq!(error, format!("{}{expected}", path(name).display()));
        assert_eq!(takes_rules(&path(name)).expect_err(name).to_string(), error);
    }
}

/// An edit keeps the owner of the file, and replaces no file that its user may not write to.
#[cfg(target_os = "linux")]
#[expect(clippy::print_stderr, reason = "says why it tests nothing")]
#[test]
fn a_file_stays_with_its_owner() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
    const OTHER: u32 = 65_534;
    let folder = tempfile::tempdir().expect("folder");
    let owner = |name: &str| folder.path().join(name).metadata().expect("file").uid();
    let make = |name: &str, mode: u32| {
        let path = folder.path().join(name);
        std::fs::write(&path, "{}").expect("file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("mode");
        path
    };
    let theirs = make("theirs.json", 0o644);
    if chown(&theirs, Some(OTHER), Some(OTHER)).is_err() {
        eprintln!("not tested: only root can give a file to another user");
        return;
    }
    chown(folder.path(), Some(OTHER), Some(OTHER)).expect("root may");
    let [readable, writable] = [make("readable.json", 0o644), make("writable.json", 0o666)];
    allow(&theirs, &[RULE.to_owned()]).expect("root may");
    assert_eq!(owner("theirs.json"), OTHER);
    let as_other = |path: &Path| {
        // SAFETY: both take a number, and count for this thread alone.
        unsafe {
            libc::setfsgid(OTHER);
            libc::setfsuid(OTHER);
        }
        allow(path, &[RULE.to_owned()])
    };
    std::thread::scope(|scope| {
        let check = |path: PathBuf, expected: Option<&str>| {
            let allowed = scope
                .spawn(move || as_other(&path))
                .join()
                .expect("no panic");
            let error = allowed.err().map(|error| error.to_string());
            let reason = error.as_deref().and_then(|error| error.split_once(": "));
            assert_eq!(reason.map(|reason| reason.1), expected);
        };
        check(theirs, None);
        check(readable, Some("it may not be written to"));
        let taken = "it belongs to another user, and replacing it would change that";
        check(writable, Some(taken));
    });
    assert_eq!(owner("readable.json"), 0);
    assert_eq!(
        files(folder.path()),
        ["readable.json", "theirs.json", "writable.json"]
    );
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("folder")
        .map(|entry| {
            entry
                .expect("entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort_unstable();
    names
}
