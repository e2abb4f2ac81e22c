//! Rules put into a file: everything else of it stays as it is.

use std::path::PathBuf;

use super::*;
use crate::config::amend::{allow_while, create_beside};
use crate::config::insert::with_rules;
use crate::config::{AmendError, allow, takes_rules};

const RULE: &str = r#"{ "tool": "git_log" }"#;

#[track_caller]
fn check(text: &str, expected: Expect) {
    let shown = match with_rules(text, &[RULE.to_owned()]) {
        Ok(text) => text,
        Err(reason) => format!("error: {reason}"),
    };
    expected.assert_eq(&shown);
}

#[test]
fn into_a_list_in_lines() {
    check(
        "{\n  \"permissions\": {\n    \"allow\": [\n      \"a_*\"\n    ]\n  }\n}\n",
        expect![[r#"
            {
              "permissions": {
                "allow": [
                  "a_*",
                  { "tool": "git_log" }
                ]
              }
            }
        "#]],
    );
}

#[test]
fn comments_and_trailing_commas_stay() {
    check(
        r#"// ours
{
  "permissions": {
    "allow": [
      "a_*", // all of a
      /* two */ "b_*"
      , // odd, but so be it
      "c_*", // the last
      // and a note
    ],
  }, // end
}
"#,
        expect![[r#"
            // ours
            {
              "permissions": {
                "allow": [
                  "a_*", // all of a
                  /* two */ "b_*"
                  , // odd, but so be it
                  "c_*", // the last
                  // and a note
                  { "tool": "git_log" },
                ],
              }, // end
            }
        "#]],
    );
    check(
        r#"{
	"permissions": {
		"allow": [
			"a_*" // the last, without a comma
		]
	}
}
"#,
        expect![[r#"
            {
            	"permissions": {
            		"allow": [
            			"a_*", // the last, without a comma
            			{ "tool": "git_log" }
            		]
            	}
            }
        "#]],
    );
}

#[test]
fn into_a_list_in_one_line() {
    check(
        r#"{ "permissions": { "allow": ["a_*"] } }"#,
        expect![[r#"{ "permissions": { "allow": ["a_*", { "tool": "git_log" }] } }"#]],
    );
    check(
        r#"{ "permissions": { "allow": ["a_*", ] } }"#,
        expect![[r#"{ "permissions": { "allow": ["a_*", { "tool": "git_log" }, ] } }"#]],
    );
    check(
        r#"{ "permissions": { "allow": [] } }"#,
        expect![[r#"{ "permissions": { "allow": [{ "tool": "git_log" }] } }"#]],
    );
    check(
        r#"{ "permissions": { "allow": [ /* none */ ] } }"#,
        expect![[r#"{ "permissions": { "allow": [ /* none */ { "tool": "git_log" }] } }"#]],
    );
}

#[test]
fn into_an_empty_list_in_lines() {
    check(
        "{\n  \"permissions\": {\n    \"allow\": [\n      // none yet\n    ]\n  }\n}\n",
        expect![[r#"
            {
              "permissions": {
                "allow": [
                  // none yet
                  { "tool": "git_log" }
                ]
              }
            }
        "#]],
    );
}

#[test]
fn permissions_without_allow() {
    check(
        "{\n    \"permissions\": {\n        \"deny\": [\"x_*\"] // never\n    }\n}\n",
        expect![[r#"
            {
                "permissions": {
                    "deny": ["x_*"], // never
                    "allow": [
                        { "tool": "git_log" }
                    ]
                }
            }
        "#]],
    );
    check(
        "{\n  \"permissions\": { \"deny\": [\"x_*\"] }\n}\n",
        expect![[r#"
            {
              "permissions": { "deny": ["x_*"], "allow": [{ "tool": "git_log" }] }
            }
        "#]],
    );
    check(
        "{\n  \"permissions\": {}\n}\n",
        expect![[r#"
        {
          "permissions": {
            "allow": [
              { "tool": "git_log" }
            ]
          }
        }
    "#]],
    );
}

#[test]
fn no_permissions() {
    check(
        "{\n  \"mcpServers\": {\n  } // none\n}\n",
        expect![[r#"
        {
          "mcpServers": {
          }, // none
          "permissions": {
            "allow": [
              { "tool": "git_log" }
            ]
          }
        }
    "#]],
    );
    check(
        "{\"mcpServers\": {}}",
        expect![[r#"{"mcpServers": {}, "permissions": { "allow": [{ "tool": "git_log" }] }}"#]],
    );
    check(
        "{}",
        expect![[r#"
        {
          "permissions": {
            "allow": [
              { "tool": "git_log" }
            ]
          }
        }"#]],
    );
    check(
        "{ /* nothing */ }",
        expect![[r#"
        { /* nothing */ "permissions": {
            "allow": [
              { "tool": "git_log" }
            ]
          }}"#]],
    );
}

#[test]
fn line_ends_stay() {
    let text = with_rules("{\r\n\t\"limits\": {},\r\n}\r\n", &[RULE.to_owned()]);
    assert_eq!(
        text.expect("a rule"),
        "{\r\n\t\"limits\": {},\r\n\t\"permissions\": {\r\n\t\t\"allow\": [\r\n\t\t\t\
         { \"tool\": \"git_log\" }\r\n\t\t]\r\n\t},\r\n}\r\n"
    );
}

#[test]
fn a_byte_order_mark_stays() {
    let text = with_rules("\u{feff}{}", &[RULE.to_owned()]).expect("a rule");
    assert!(text.starts_with("\u{feff}{"), "{text:?}");
}

#[test]
fn several_rules() {
    let rules = [RULE.to_owned(), r#""b_*""#.to_owned()];
    let text = with_rules("{ \"permissions\": { \"allow\": [\n  \"a\"\n] } }", &rules);
    expect![[r#"
        { "permissions": { "allow": [
          "a",
          { "tool": "git_log" },
          "b_*"
        ] } }"#]]
    .assert_eq(&text.expect("rules"));
}

#[test]
fn what_cannot_take_a_rule() {
    check("", expect!["error: it holds no object"]);
    check("[]", expect!["error: it holds no object"]);
    check(
        "{ \"permissions\": [] }",
        expect![[r#"error: its "permissions" are no object"#]],
    );
    check(
        "{ \"permissions\": { \"allow\": {} } }",
        expect![[r#"error: its "allow" is no list"#]],
    );
    check(
        "{ \"permissions\": {}, \"permissions\": {} }",
        expect![[r#"error: key "permissions" stands twice in it"#]],
    );
    check(
        "{ \"permissions\": { \"allow\": [ }",
        expect!["error: Unexpected close brace on line 1 column 31"],
    );
}

#[cfg(unix)]
#[test]
fn the_file_keeps_its_mode_and_its_link() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("folder");
    let (file, link) = (
        folder.path().join("real.json"),
        folder.path().join("callgate.json"),
    );
    std::fs::write(&file, "{}").expect("file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("mode");
    std::os::unix::fs::symlink("real.json", &link).expect("link");
    allow(&link, &[RULE.to_owned()]).expect("written");
    assert!(link.is_symlink());
    let metadata = file.metadata().expect("file");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o640);
    assert!(std::fs::read_to_string(&file).expect("text").contains(RULE));
    assert_eq!(files(folder.path()), ["callgate.json", "real.json"]);
}

#[test]
fn a_file_that_changes_meanwhile_is_left_alone() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("callgate.json");
    std::fs::write(&path, "{}").expect("file");
    let other = "{ \"permissions\": { \"deny\": [\"*\"] } }";
    let refused = allow_while(&path, &[RULE.to_owned()], || {
        std::fs::write(&path, other).expect("file");
    });
    assert!(
        matches!(refused, Err(AmendError::Changed { .. })),
        "{refused:?}"
    );
    assert_eq!(std::fs::read_to_string(&path).expect("text"), other);
    assert_eq!(files(folder.path()), ["callgate.json"]);
}

#[test]
fn many_at_once_lose_none() {
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
fn a_file_that_a_killed_process_left_is_in_nobodys_way() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("callgate.json");
    let (left, free) = (
        ".callgate.json.0000000000000001",
        ".callgate.json.0000000000000002",
    );
    std::fs::write(folder.path().join(left), "left").expect("file");
    let mut numbers = 1..;
    let (made, _file) =
        create_beside(&path, || numbers.next().expect("a number")).expect("another name");
    assert_eq!(made, folder.path().join(free));
    assert_eq!(files(folder.path()), [left, free]);
    let error = create_beside(&path, || 1).expect_err("there is one already");
    let root = format!("{}/", folder.path().display());
    expect![".callgate.json.0000000000000001, which is to take its place, cannot be made: File exists (os error 17)"]
        .assert_eq(&error.to_string().replace(&root, ""));
    let text = std::fs::read_to_string(folder.path().join(left));
    assert_eq!(text.expect("text"), "left");
}

#[cfg(unix)]
#[test]
fn files_that_are_not_written_to() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("folder");
    let check = |name: &str, expected: Expect| {
        let path = folder.path().join(name);
        let error = allow(&path, &[RULE.to_owned()]).expect_err(name);
        assert_eq!(
            takes_rules(&path).expect_err(name).to_string(),
            error.to_string()
        );
        let root = format!("{}/", folder.path().display());
        expected.assert_eq(&error.to_string().replace(&root, ""));
    };
    check(
        "missing.json",
        expect!["missing.json: No such file or directory (os error 2)"],
    );
    std::fs::create_dir(folder.path().join("folder.json")).expect("folder");
    check("folder.json", expect!["folder.json: it is no regular file"]);
    let locked = folder.path().join("locked.json");
    std::fs::write(&locked, "{}").expect("file");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o400)).expect("mode");
    check(
        "locked.json",
        expect!["locked.json: it may not be written to"],
    );
    std::fs::write(folder.path().join("bytes.json"), [0xff]).expect("file");
    check(
        "bytes.json",
        expect![[
            r#"bytes.json cannot take a rule: it is not UTF-8 text; write it under "permissions", "allow""#
        ]],
    );
    std::fs::write(folder.path().join("list.json"), "[]").expect("file");
    check(
        "list.json",
        expect![[
            r#"list.json cannot take a rule: it holds no object; write it under "permissions", "allow""#
        ]],
    );
}

#[test]
fn to_see_whether_a_file_takes_rules_leaves_it_alone() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("callgate.json");
    std::fs::write(&path, "{}").expect("file");
    takes_rules(&path).expect("it does");
    assert_eq!(std::fs::read_to_string(&path).expect("file"), "{}");
    assert_eq!(files(folder.path()), ["callgate.json"]);
}

/// Whoever may write to a folder may replace any file in it, and is not to.
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
        let taken = "it belongs to another user, from whom replacing it would take it";
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
