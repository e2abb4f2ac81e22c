//! Environment files: their values, and the files that are refused.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// Writes a file that its owner alone can read.
fn private(path: &Path, text: &[u8]) {
    std::fs::write(path, text).expect("file");
    set_mode(path, 0o600);
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("mode");
}

/// Loads a configuration in this folder, with `HOME` for the folder `home` in it.
fn load(folder: &Path, text: &str) -> Result<Config, ConfigError> {
    let file = folder.join("callgate.json");
    std::fs::write(&file, text).expect("file");
    Config::load_with(&file, |name| match name {
        "HOME" => Some(folder.join("home").display().to_string()),
        name => environment(name),
    })
}

#[test]
fn values_written_are_read_back_exactly() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("odd.env");
    let mut file = EnvFile::default();
    for (index, value) in [
        "",
        " ",
        "plain",
        "a b  c ",
        "\ttab\t",
        "it's",
        "\"quoted\"",
        "'single'",
        "\\",
        "\\n is no line end",
        "end\\",
        "\\'\\\"",
        "$HOME ${HOME} $$ $",
        "\\$HOME",
        "`id` $(id)",
        "a#b #c",
        "# no comment",
        "a=b=c",
        "export X=1",
        "-----BEGIN KEY-----\nMIIB\n\nAQAB\n-----END KEY-----\n",
        "\r\nwindows\r\n",
        "\u{feff}mark",
        "ключ 鍵 🔑",
        "\u{85}\u{a0}\u{2028}",
    ]
    .into_iter()
    .enumerate()
    {
        file.set(&format!("ODD_{index}"), value);
    }
    private(&path, file.text().as_bytes());
    let read = EnvFile::read(&path).expect("the file");
    assert!(read == file, "{}", file.text());
    let debug = format!("{read:?}");
    assert!(
        debug.contains("ODD_2") && !debug.contains("plain"),
        "{debug}"
    );
}

#[test]
fn env_file_fills_references_after_environment() {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::create_dir(folder.path().join("home")).expect("folder");
    let values = b"\xef\xbb\xbf# Of the team.\nMAIL_KEY=first\nexport MAIL_KEY='sn0w flake'\n\
                   HOST=other.example\nUNUSED=x\r\nWIKI_PIN=\"a\\$b\" # the pin";
    for (place, named) in [
        ("values.env", "values.env"),
        ("home/x.env", "~/x.env"),
        ("home/node.env", "${userHome}/${PROGRAM}.env"),
    ] {
        private(&folder.path().join(place), values);
        let text = format!(
            r#"{{ "mcpServers": {{ "s": {{ "command": "x", "env": {{
                "A": "${{MAIL_KEY}}", "B": "${{HOST}}", "C": "${{env:WIKI_PIN}}" }} }} }},
                "envFile": "{named}" }}"#
        );
        let config = load(folder.path(), &text).expect(named);
        let env: Vec<_> = stdio(&config).env.values().map(source).collect();
        assert_eq!(env, ["sn0w flake", "example.com", "a$b"], "{named}");
        let shown = format!("{config:?}");
        assert!(!shown.contains("sn0w"), "{shown}");
    }
}

#[test]
fn unfit_env_files_are_refused_without_values() {
    let folder = tempfile::tempdir().expect("folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir(path("folder.env")).expect("folder");
    private(&path("bytes.env"), b"A=\xff");
    private(&path("spaces.env"), b"A=1\n\nB=hunter2 pass\nC=3\n");
    private(&path("quote.env"), b"# x\nA='hunter2\nB=2\n\n");
    private(&path("name.env"), b"A=\"1\n2\"\nhunter2\n");
    private(&path("large.env"), &vec![b'#'; (1 << 20) + 1]);
    for (name, mode) in [("group.env", 0o640), ("other.env", 0o604)] {
        private(&path(name), b"A=hunter2\n");
        set_mode(&path(name), mode);
    }
    for (name, expected) in [
        ("missing.env", ": cannot be read: No such file"),
        ("folder.env", ": cannot be read: it is a folder"),
        ("bytes.env", ": cannot be read: it is not UTF-8 text"),
        ("large.env", ": cannot be read: it is over 1048576 bytes"),
        ("spaces.env", ":3:1: the line is not NAME=value"),
        ("quote.env", ":2:1: the line is not NAME=value"),
        ("name.env", ":3:1: the line is not NAME=value"),
        ("group.env", "run `chmod 600 "),
        ("other.env", "run `chmod 600 "),
    ] {
        let text = format!("{{\n\"envFile\": {name:?} }}");
        let error = load(folder.path(), &text).expect_err(name);
        let said = error.to_string();
        let start = said.contains("callgate.json:2:12: \"envFile\" in the file: ");
        assert!(start, "{said}");
        assert!(said.contains(name) && said.contains(expected), "{said}");
        assert!(!said.contains(SECRET), "{said}");
    }
}

#[test]
fn env_file_without_values_may_be_readable() {
    let folder = tempfile::tempdir().expect("folder");
    for text in ["", "# Write NAME=value here.\n\n"] {
        let path = folder.path().join("none.env");
        private(&path, text.as_bytes());
        set_mode(&path, 0o644);
        assert_eq!(EnvFile::read(&path), Ok(EnvFile::default()), "{text:?}");
    }
}
