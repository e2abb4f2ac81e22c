//! What `callgate init --client` does besides its entry: it hides secrets, turns servers off, and
//! warns.

use std::fs;

use callgate_tests::binary;
use rexpect::session::PtySession;
use serde_json::json;

use crate::init::Person;

/// A person with a configuration that has the server `log`.
fn with_log() -> Person {
    let person = Person::new();
    let command = binary("callgate-demo-logging").display().to_string();
    let config = json!({ "mcpServers": { "log": { "command": command } } });
    person.bench.write("callgate.json", &config.to_string());
    person
}

fn text_of(person: &Person, name: &str) -> String {
    let path = match name.strip_prefix("~/") {
        Some(name) => person.home.path().join(name),
        None => person.bench.path().join(name),
    };
    fs::read_to_string(path).unwrap_or_default()
}

/// Answers each question that ends with one of these texts.
fn answer(session: &mut PtySession, answers: &[(&str, &str)]) -> String {
    for (question, answer) in answers {
        session.exp_string(question).expect(question);
        session.exp_string("[n] no: ").expect(question);
        session.send_line(answer).expect("answer");
    }
    session.exp_eof().expect("the end")
}

#[test]
fn yaml_stays_and_the_block_is_shown() {
    let person = with_log();
    let before = "name: Mine # c\n";
    let file = person.has("~/.continue/config.yaml", before);
    let ran = person.init(&["--client", "continue", "--yes"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(fs::read_to_string(&file).expect("the file"), before);
    let (_, block) = ran.stdout.split_once("\n\n").expect("a block");
    assert!(block.contains("Continue cannot ask you during a call"));
    let (block, _) = block.split_once("\n\n").expect("the end of the block");
    assert!(
        block.starts_with("mcpServers:\n  - name: \"callgate\"\n"),
        "{block}"
    );
    fs::write(&file, block).expect("write");
    let again = person.init(&["--client", "continue", "--yes"]);
    assert!(again.stdout.contains("has Callgate already"), "{again:#?}");
}

#[test]
fn shown_lines_hold_no_secrets() {
    for (client, file, text, secrets) in [
        (
            "windsurf",
            "~/.codeium/windsurf/mcp_config.json",
            r#"{"mcpServers":{"a":{"command":"x","args":["--password","velvet-curtain"],"env":{"B":"sundial"}},"c":{"serverUrl":"https://u:pw9@c.example/mcp"}}}"#,
            ["velvet-curtain", "sundial", "pw9"],
        ),
        (
            "claude-desktop",
            "~/.config/Claude/claude_desktop_config.json",
            "{\n  \"mcpServers\": {\n    \"a\": {\n      \"url\": \"https://a.example/mcp?k=lantern7\",\n      \
             \"headers\": { \"X-Team\": \"mossgreen\" }\n    },\n    \"b\": { \"command\": \"x\", \
             \"env\": { \"CG_B\": \"two words\" } }\n  }\n}\n",
            ["lantern7", "mossgreen", "two words"],
        ),
        (
            "codex",
            "~/.codex/config.toml",
            "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"--api-key\", \"plainword\"]\n\n\
             [mcp_servers.a.env]\nCG_A = \"heron\" # CG_OLD_TOKEN=thistle\n",
            ["plainword", "heron", "thistle"],
        ),
    ] {
        let person = with_log();
        person.has(file, text);
        for flag in ["--print", "--yes"] {
            let ran = person.init(&["--client", client, flag]);
            assert_eq!(ran.code, 0, "{ran:#?}");
            assert!(ran.stdout.contains("•••"), "{}", ran.stdout);
            for secret in secrets {
                assert!(!ran.stdout.contains(secret), "{secret}: {}", ran.stdout);
            }
        }
        let after = text_of(&person, file);
        for secret in secrets {
            assert!(after.contains(secret), "{secret}: {after}");
        }
    }
}

/// A client's file with the server `log`, the file that turns it off, and the text for that.
const TAKEN: [(&str, &str, &str, &str, &str); 5] = [
    (
        "claude-code",
        ".mcp.json",
        r#"{ "mcpServers": { "log": { "command": "LOGGING" } } }"#,
        ".claude/settings.local.json",
        "\"disabledMcpjsonServers\": [\"log\"]",
    ),
    (
        "codex",
        "~/.codex/config.toml",
        "[mcp_servers.log]\ncommand = \"LOGGING\"\n",
        "~/.codex/config.toml",
        "enabled = false",
    ),
    (
        "copilot",
        "~/.copilot/mcp-config.json",
        r#"{ "mcpServers": { "renamed": { "type": "local", "command": "LOGGING", "tools": ["*"] } } }"#,
        "~/.copilot/settings.json",
        "\"disabledMcpServers\": [\"renamed\"]",
    ),
    (
        "gemini",
        "~/.gemini/settings.json",
        r#"{ "mcpServers": { "log": { "command": "LOGGING" }, "old": { "command": "x" } },
             "mcp": { "excluded": ["old"] } }"#,
        ".gemini/settings.json",
        "\"excluded\": [\"log\", \"old\"]",
    ),
    (
        "opencode",
        "opencode.json",
        r#"{ "mcp": { "log": { "type": "local", "command": ["LOGGING"] } } }"#,
        "opencode.json",
        "\"enabled\": false",
    ),
];

#[test]
fn taken_servers_are_turned_off_when_asked() {
    for (client, file, text, off_file, off) in TAKEN {
        let person = with_log();
        person.has(file, text);
        let approved = r#"{ "projects": { "PROJECT": { "enabledMcpjsonServers": ["log"] } } }"#;
        person.has("~/.claude.json", approved);
        let ran = person.init(&["--client", client, "--print"]);
        assert!(ran.stderr.contains("still has servers"), "{ran:#?}");
        let mut session = person.at_terminal(&["--client", client]);
        let mut answers = vec![("turn them off there?", "y"), ("write this to", "y")];
        if client == "codex" {
            answers.insert(0, ("these two settings, too?", "n"));
        }
        let rest = answer(&mut session, &answers);
        assert!(!rest.contains("still has servers"), "{rest}");
        let after = text_of(&person, off_file);
        let after = after.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            after.replace("[ ", "[").replace(" ]", "]").contains(off),
            "{after}"
        );
    }
}

#[test]
fn servers_that_stay_on_are_named() {
    let claude = r#"{ "mcpServers": { "log": { "command": "LOGGING" } } }"#;
    for (client, file, text, advice) in [
        (
            "claude-code",
            "~/.claude.json",
            claude,
            "`claude mcp remove NAME`",
        ),
        ("cursor", "~/.cursor/mcp.json", claude, "in Cursor"),
        ("qwen", "~/.qwen/settings.json", claude, "without --yes"),
    ] {
        let person = with_log();
        let file = person.has(file, text);
        let before = fs::read_to_string(&file).expect("the file");
        let ran = person.init(&["--client", client, "--yes"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let said = "Callgate has too, and their calls pass Callgate by: log; ";
        assert!(ran.stderr.contains(said), "{ran:#?}");
        assert!(ran.stderr.contains(advice), "{ran:#?}");
        assert_eq!(fs::read_to_string(&file).expect("the file"), before);
    }
}

#[test]
fn settings_of_codex_are_written_when_agreed() {
    let person = with_log();
    let ran = person.init(&["--client", "codex", "--yes"]);
    assert!(ran.stderr.contains("`codex exec` refuses"), "{ran:#?}");
    let name = "~/.codex/config.toml";
    assert!(!text_of(&person, name).contains("approve"));
    let mut session = person.at_terminal(&["--client", "codex"]);
    let answers = [("these two settings, too?", "y"), ("write this to", "y")];
    answer(&mut session, &answers);
    let after = text_of(&person, name);
    assert!(after.contains("default_tools_approval_mode = \"approve\"\nrequired = true\n"));
    // A later run keeps them, and asks no more.
    let again = person.init(&["--client", "codex", "--yes"]);
    assert!(again.stdout.contains("has Callgate already"), "{again:#?}");
    assert!(!again.stderr.contains("refuses"), "{again:#?}");
    assert_eq!(text_of(&person, name), after);
}

#[test]
fn untrusted_folder_is_named() {
    let on = r#"{ "security": { "folderTrust": { "enabled": true } } }"#;
    let off = r#"{ "security": { "folderTrust": { "enabled": false } } }"#;
    for (client, settings, rules, warns) in [
        ("gemini", "{}", r#"{ "/elsewhere": "TRUST_FOLDER" }"#, true),
        ("gemini", "{}", r#"{ "PROJECT": "TRUST_FOLDER" }"#, false),
        ("gemini", off, "{}", false),
        ("qwen", on, r#"{ "PROJECT": "DO_NOT_TRUST" }"#, true),
        ("qwen", "{}", "{}", false),
    ] {
        let person = with_log();
        person.has(&format!("~/.{client}/settings.json"), settings);
        let rules = person.has(&format!("~/.{client}/trustedFolders.json"), rules);
        let before = fs::read_to_string(&rules).expect("the file");
        let ran = person.init(&["--client", client, "--yes"]);
        let said = format!("ignores .{client}/settings.json until you trust this folder");
        assert_eq!(ran.stderr.contains(&said), warns, "{ran:#?}");
        assert_eq!(fs::read_to_string(&rules).expect("the file"), before);
    }
}
