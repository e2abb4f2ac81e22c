//! The file's folder, which rules, roots and servers have to have as one.

use super::*;

/// What each of those that have the folder makes of it.
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

/// All that has the folder in it, with `FOLDER` for that path.
fn shown(config: &Config, folder: &Path) -> String {
    let mut out = String::new();
    writeln!(out, "{} {}", config.folder.display(), config.path.display()).unwrap();
    let Some(Transport::Stdio(stdio)) = config.servers.first().map(|it| &it.transport) else {
        panic!("the server is a program");
    };
    let cwd = stdio.cwd.as_ref().expect("a folder");
    writeln!(out, "{} {:?} {}", stdio.command, stdio.args, cwd.display()).unwrap();
    for rule in config.permissions.iter() {
        writeln!(out, "{}", rule.to_json()).unwrap();
    }
    for root in &config.roots {
        writeln!(out, "{}", root.uri).unwrap();
    }
    let ledger = config.ledger.path.as_ref().expect("a file");
    writeln!(out, "{}", ledger.display()).unwrap();
    for warning in &config.warnings {
        writeln!(out, "warning: {}", warning.message).unwrap();
    }
    out.replace(&*folder.to_string_lossy(), "FOLDER")
}

const EXPECTED: &str = r#"FOLDER FOLDER/callgate.json
FOLDER/./bin/fs ["FOLDER", "--data=FOLDER/data"] FOLDER/.
{"tool":"fs_*","arguments":[{"at":"/path","prefix":"FOLDER"}]}
{"tool":"fs_*","arguments":[{"at":"/path","prefix":"FOLDER/secret/"}]}
{"tool":"fs_*","arguments":[{"at":"/path","glob":"FOLDER/keys/**"}]}
file://FOLDER
file://FOLDER/data
FOLDER/calls.jsonl
"#;

/// A folder with the file and one within it; and its real path.
fn project() -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().expect("folder");
    let folder = root.path().canonicalize().expect("a path").join("project");
    std::fs::create_dir_all(folder.join("sub")).expect("folders");
    std::fs::write(folder.join("callgate.json"), TEXT).expect("file");
    (root, folder)
}

#[test]
fn is_the_same_however_the_file_is_named() {
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
fn at_the_top_of_the_disk_has_no_two_slashes() {
    let config = read_in("/", "callgate.json", TEXT).expect("a configuration");
    let expected = expect![[r#"
        / /callgate.json
        /./bin/fs ["/", "--data=/data"] /.
        {"tool":"fs_*","arguments":[{"at":"/path","prefix":"/"}]}
        {"tool":"fs_*","arguments":[{"at":"/path","prefix":"/secret/"}]}
        {"tool":"fs_*","arguments":[{"at":"/path","glob":"/keys/**"}]}
        file:///
        file:///data
        /calls.jsonl
    "#]];
    expected.assert_eq(&shown(&config, Path::new("no such text")));
}

/// Of a rule that lets calls through, nothing needs to be said: they are asked about.
#[cfg(unix)]
#[test]
fn behind_a_link_is_the_real_one_and_rules_that_stop_calls_are_warned_about() {
    let (root, folder) = project();
    let root = root.path().canonicalize().expect("a path");
    let link = root.join("link");
    std::os::unix::fs::symlink(&folder, &link).expect("link");
    let warning = format!(
        "warning: \"${{workspaceFolder}}\" in this rule is \"FOLDER\", and not {link:?}, the link \
         by which the file was named; write a rule for texts that begin with that, too\n"
    );
    let expected = format!("{EXPECTED}{warning}{warning}");
    for named in ["link/callgate.json", "project/../link/callgate.json"] {
        let config = Config::load_with(&root.join(named), environment).expect(named);
        assert_eq!(shown(&config, &folder), expected, "{named}");
        let places: Vec<_> = config.warnings.iter().map(|it| it.place).collect();
        assert_eq!(places, [Some((9, 7)), Some((10, 7))]);
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
