//! The files that `callgate init` writes: the configuration, and those of other clients.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

use callgate_tests::binary;
use serde_json::json;

use crate::init::{ONE, Person};

#[test]
fn force_replaces_existing_file_and_keeps_a_backup() {
    let person = Person::new();
    let ran = person.init(&["--yes"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(
        ran.stderr.contains("Cursor: .cursor/mcp.json and 1 more"),
        "{ran:#?}"
    );
    let mut lines = ran.stderr.lines();
    assert!(lines.all(|line| line.len() <= 100), "{ran:#?}");
    person.has("~/.cursor/mcp.json", ONE);
    let ran = person.init(&[]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("--yes"), "{ran:#?}");
    let ran = person.init(&["--server", "lgo"]);
    assert!(ran.stderr.contains("there are: log"), "{ran:#?}");
    let file = person.has("callgate.json", "{ /* mine */ }");
    let ran = person.init(&["--yes"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    let kept = fs::read_to_string(&file).expect("the file");
    assert_eq!(kept, "{ /* mine */ }");
    for (arguments, backup, was) in [
        (&["--yes", "--force"][..], "callgate.json.bak", "mine"),
        (
            &["--server", "log", "--read-only", "allow", "--force"],
            "callgate.json.bak2",
            "log_*",
        ),
    ] {
        let ran = person.init(arguments);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let kept = fs::read_to_string(person.bench.path().join(backup)).expect("a backup");
        assert!(kept.contains(was), "{kept}");
    }
    let permissions = person.config()["permissions"].take();
    assert_eq!(permissions, json!({ "allow": ["log_getLogs"] }));
    let folder = fs::read_dir(person.bench.path()).expect("the folder");
    let mut names = folder.flatten().map(|it| it.file_name());
    let left = names.find(|name| name.to_string_lossy().starts_with(".init"));
    assert_eq!(left, None);
}

#[test]
fn excluded_tools_of_a_stopped_server_are_denied() {
    let person = Person::new();
    person.has(
        "~/.gemini/settings.json",
        r#"{ "mcpServers": { "log": { "command": "LOGGING" },
            "mail": { "command": "/nonexistent/mail", "excludeTools": ["send mail", "purge"] },
            "disk": { "command": "/nonexistent/disk", "includeTools": ["df"] } } }"#,
    );
    person.has(
        "~/.codex/config.toml",
        "[mcp_servers.box]\ncommand = \"/nonexistent/box\"\ndisabled_tools = [\"wipe\"]\n",
    );
    let ran = person.init(&["--yes"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let permissions = person.config()["permissions"].take();
    let deny = json!(["box/wipe", "mail/send mail", "mail/purge"]);
    assert_eq!(permissions["deny"], deny);
    let ask = json!(["box_*", "log_*", "mail_*", "disk_*"]);
    assert_eq!(permissions["ask"], ask);
    let said = "server disk: its client uses only some of its tools; it did not start";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert!(
        !ran.stderr.contains("server mail: its client"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_server_with_a_mistake_stops_no_other() {
    for (name, entry) in [
        ("br", r#"{ "command": "x", "args": ["${unclosed"] }"#),
        ("ur", r#"{ "url": "not a url" }"#),
        ("no", "{}"),
    ] {
        let person = Person::new();
        let servers = format!(r#"{name:?}: {entry}, "log": {{ "command": "LOGGING" }}"#);
        person.has(
            "~/.cursor/mcp.json",
            &format!(r#"{{ "mcpServers": {{ {servers} }} }}"#),
        );
        let ran = person.init(&["--yes"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let left_out = format!("server {name} is left out: ");
        assert!(ran.stderr.contains(&left_out), "{ran:#?}");
        assert_eq!(person.servers(), ["log"]);
        assert!(ran.stdout.contains("ok       server log"), "{ran:#?}");
    }
}

#[test]
fn import_of_unusable_servers_is_refused() {
    let open = |person: &Person| {
        let mode = fs::Permissions::from_mode(0o777);
        fs::set_permissions(person.bench.path(), mode).is_ok()
    };
    let given = |person: &Person| chown(person.bench.path(), Some(1001), None).is_ok();
    for (is_given, said) in [
        (false, "is in a folder that other users may write to"),
        (true, "is in a folder of another user"),
    ] {
        let person = Person::new();
        person.has("~/.cursor/mcp.json", ONE);
        // Only root can give a folder to another user.
        if !(if is_given {
            given(&person)
        } else {
            open(&person)
        }) {
            continue;
        }
        let ran = person.init(&["--yes"]);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains(said), "{ran:#?}");
        assert!(!person.bench.path().join("callgate.json").exists());
        // A named file needs no owner, and the next command names it, too.
        let ran = person.init(&["--yes", "--config", "callgate.json"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let next = "next: callgate --config callgate.json tools\n";
        assert!(ran.stdout.ends_with(next), "{ran:#?}");
    }
}

/// The file that `--client` writes to, for each client, its text before, and parts of that after.
const INSTALLED: [(&str, &str, &str, &[&str]); 14] = [
    (
        "claude-code",
        ".mcp.json",
        "{\n  \"mcpServers\": { \"x\": { \"command\": \"y\" } }\n}\n",
        &["\"x\": {"],
    ),
    (
        "claude-desktop",
        "~/.config/Claude/claude_desktop_config.json",
        "{\n  \"globalShortcut\": \"Ctrl\"\n}\n",
        &["\"globalShortcut\": \"Ctrl\""],
    ),
    (
        "vscode",
        ".vscode/mcp.json",
        "\u{feff}{\n  // mine\n  \"servers\": {\n    \"x\": { \"command\": \"y\", },\n  },\n}\n",
        &["// mine"],
    ),
    ("cursor", ".cursor/mcp.json", "", &[]),
    (
        "codex",
        "~/.codex/config.toml",
        "model = \"o4\" # mine\n\n[mcp_servers.x]\ncommand = \"y\"\n",
        &["model = \"o4\" # mine"],
    ),
    (
        "gemini",
        ".gemini/settings.json",
        "{ \"theme\": \"Dark\" }\n",
        &["\"theme\": \"Dark\""],
    ),
    (
        "windsurf",
        "~/.codeium/windsurf/mcp_config.json",
        "{ \"mcpServers\": { \"callgate\": { \"command\": \"old\" } } }\n",
        &[],
    ),
    (
        "zed",
        "~/.config/zed/settings.json",
        "// mine\n{\n  \"theme\": \"One\", /* too */\n}\n",
        &["/* too */"],
    ),
    (
        "copilot",
        "~/.copilot/mcp-config.json",
        "{}",
        &["\"type\": \"local\"", "\"tools\": [\"*\"]"],
    ),
    (
        "opencode",
        "opencode.json",
        r#"{ "theme": "x" }"#,
        &[
            "\"type\": \"local\"",
            "\"command\": [\"callgate\", \"serve\"]",
            "\"enabled\": true",
        ],
    ),
    ("qwen", ".qwen/settings.json", "", &[]),
    (
        "cline",
        "~/.cline/data/settings/cline_mcp_settings.json",
        r#"{ "mcpServers": {} }"#,
        &[],
    ),
    (
        "vibe",
        "~/.vibe/config.toml",
        "active_model = \"m\" # mine\n\n[[mcp_servers]]\nname = \"x\"\ncommand = \"y\"\n",
        &["# mine", "name = \"x\"", "name = \"callgate\""],
    ),
    (
        "vibe",
        "~/.vibe/config.toml",
        "# mine\nmcp_servers = []\n\n[tools]\na = 1\n",
        &["# mine", "transport = \"stdio\"", "a = 1"],
    ),
];

#[test]
fn callgate_is_written_into_each_client() {
    for (client, name, before, parts) in INSTALLED {
        let person = Person::new();
        person
            .bench
            .write("callgate.json", r#"{ "mcpServers": {} }"#);
        let missing = before.is_empty();
        let file = if missing {
            person.bench.path().join(name)
        } else {
            person.has(name, before)
        };
        let printed = person.init(&["--client", client, "--print"]);
        assert_eq!(printed.code, 0, "{printed:#?}");
        assert!(printed.stdout.contains("\n+"), "{}", printed.stdout);
        let unasked = person.init(&["--client", client]);
        assert_eq!(unasked.code, 2, "{unasked:#?}");
        let now = fs::read_to_string(&file).ok();
        assert_eq!(now.as_deref(), (!missing).then_some(before), "{client}");
        let ran = person.init(&["--client", client, "--yes"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert!(ran.stdout.contains("next: restart "), "{}", ran.stdout);
        let after = fs::read_to_string(&file).expect("the file");
        // Layouts differ.
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        for part in parts {
            assert!(bare(&after).contains(&bare(part)), "{part}: {after}");
        }
        let [is_marked, was_marked] = [&after, before].map(|text| text.starts_with('\u{feff}'));
        assert_eq!(is_marked, was_marked, "{client}");
        assert!(!after.contains("\"old\""), "{after}");
        let program = binary("callgate").display().to_string();
        let path = person.bench.path().join("callgate.json");
        let path = path.display().to_string();
        let is_of_project = !name.starts_with('~');
        let command = if is_of_project { "callgate" } else { &*program };
        for text in [command, "serve"] {
            assert!(after.contains(&format!("{text:?}")), "{text}: {after}");
        }
        for text in ["--config", &path] {
            let is_there = after.contains(&format!("{text:?}"));
            assert_eq!(is_there, !is_of_project, "{text}: {after}");
        }
        let backup = fs::read_to_string(format!("{}.bak", file.display())).ok();
        assert_eq!(backup.as_deref(), (!missing).then_some(before));
        let says = "cannot ask you during a call: runs wait at calls that need approval; answer in \
                    `callgate questions`, or allow them in permissions.allow";
        let cannot_ask = ["gemini", "opencode", "qwen", "cline", "vibe"].contains(&client);
        assert_eq!(ran.stdout.contains(says), cannot_ask, "{ran:#?}");
        // A second run parses the written file.
        let again = person.init(&["--client", client, "--yes"]);
        assert!(again.stdout.contains("has Callgate already"), "{again:#?}");
        assert_eq!(fs::read_to_string(&file).expect("the file"), after);
    }
}

#[test]
fn a_person_sees_the_difference_and_may_refuse() {
    let person = Person::new();
    person
        .bench
        .write("callgate.json", r#"{ "mcpServers": {} }"#);
    let file = person.has("~/.codex/config.toml", "# mine\n");
    let mut session = person.at_terminal(&["--client", "codex"]);
    session
        .exp_string("write these two settings, too? [y] yes  [n] no: ")
        .expect("the offer");
    session.send_line("n").expect("answer");
    session
        .exp_string("+[mcp_servers.callgate]")
        .expect("the difference");
    session.exp_string("[n] no: ").expect("the question");
    session.send_line("n").expect("answer");
    session.exp_eof().expect("the end");
    let text = fs::read_to_string(&file).expect("the file");
    assert_eq!(text, "# mine\n");
}

#[test]
fn link_out_of_the_project_is_refused() {
    let empty = r#"{ "mcpServers": {} }"#;
    for (link, to, arguments) in [
        (
            ".mcp.json",
            "dotfiles/x.json",
            &["--client", "claude-code", "--yes"][..],
        ),
        (".cursor", "dotfiles", &["--client", "cursor", "--yes"]),
        (
            ".gemini/settings.json",
            "dotfiles/new/x.json",
            &["--client", "gemini", "--yes"],
        ),
        (
            "callgate.json",
            "dotfiles/x.json",
            &["--from", "claude-code", "--yes", "--force"],
        ),
    ] {
        let person = Person::new();
        person.has(".gemini/readme", "");
        person.has("~/.claude.json", ONE);
        let theirs = person.has("~/dotfiles/x.json", empty);
        if link != "callgate.json" {
            person.bench.write("callgate.json", empty);
        }
        symlink(person.home.path().join(to), person.bench.path().join(link)).expect("a link");
        let ran = person.init(arguments);
        assert_eq!(ran.code, 2, "{ran:#?}");
        let said = ["leads out of this project, to ", "leads nowhere"];
        assert!(
            said.iter().any(|said| ran.stderr.contains(said)),
            "{ran:#?}"
        );
        let kept = fs::read_dir(theirs.parent().expect("a folder")).expect("a folder");
        assert_eq!(kept.count(), 1, "{link}");
        assert_eq!(fs::read_to_string(theirs).expect("a file"), empty, "{link}");
    }
}

#[test]
fn home_symlink_is_followed_and_shown() {
    let person = Person::new();
    person
        .bench
        .write("callgate.json", r#"{ "mcpServers": {} }"#);
    let real = person.has("~/dotfiles/surf.json", "{}\n");
    person.has("~/.codeium/windsurf/readme", "");
    let link = person.home.path().join(".codeium/windsurf/mcp_config.json");
    symlink("../../dotfiles/surf.json", &link).expect("a link");
    let ran = person.init(&["--client", "windsurf", "--yes"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let said = "~/.codeium/windsurf/mcp_config.json (~/dotfiles/surf.json)";
    assert!(ran.stdout.contains(said), "{ran:#?}");
    assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
    assert!(
        fs::read_to_string(real)
            .expect("a file")
            .contains("callgate")
    );
}
