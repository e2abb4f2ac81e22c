//! Where `callgate init` puts values that may be secrets.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use callgate::config::EnvFile;
use serde_json::{Value, json};

use crate::init::Person;
use crate::keyring::Keyring;
use crate::pty::at_terminal_with;

const KEY: &str = "lin_api_9f8e7d6c5b4a3f2e1d0c";
const PASSWORD: &str = "pa$s \"w0rd'#\\x";

/// A bus without a keyring.
const NO_BUS: (&str, &str) = ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus");

/// A person with these servers in Cursor.
fn person(servers: &Value) -> Person {
    let person = Person::new();
    let file = json!({ "mcpServers": servers }).to_string();
    person.has("~/.cursor/mcp.json", &file);
    person
}

/// Takes all servers, and answers the questions about secrets. Returns what was shown before each
/// answer, and after the last one.
fn init(person: &Person, more: &[(&str, &str)], answers: &[&str]) -> Vec<String> {
    let environment = person.environment();
    let environment = environment.iter().map(|(name, value)| (*name, &**value));
    let environment: Vec<_> = environment.chain(more.iter().copied()).collect();
    let mut session = at_terminal_with(&person.bench, &["init"], &environment);
    session.exp_string("[n] none: ").expect("the servers");
    session.send_line("all").expect("answer");
    let mut shown = Vec::new();
    for answer in answers {
        let question = session.exp_string("it is no secret: ");
        shown.push(question.expect("a question about a secret"));
        session.send_line(answer).expect("answer");
    }
    session.exp_string("without asking: ").expect("the rules");
    session.send_line("ask").expect("answer");
    session.exp_string("[all]: ").expect("the record");
    session.send_line("").expect("answer");
    shown.push(session.exp_eof().expect("the end"));
    shown
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[test]
fn file_answer_stores_values_outside_project() {
    let env = json!({ "WIKI_PASSWORD": PASSWORD, "LINEAR_API_KEY": KEY });
    let person = person(&json!({ "log": { "command": "LOGGING", "env": env } }));
    let shown = init(&person, &[NO_BUS], &["f all"]);
    assert!(shown[0].contains("LINEAR_API_KEY  lin_"), "{shown:?}");
    assert!(!shown[0].contains("[k]"), "{shown:?}");
    assert!(shown[1].contains("started in"), "{shown:?}");
    assert!(!shown[1].contains("set these variables"), "{shown:?}");
    let config = person.config();
    let shown = format!("{shown:?} {config}");
    for secret in [KEY, "w0rd"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    let named = config["envFile"].as_str().expect("a path");
    let below = named.strip_prefix("~/").expect("a path in the home folder");
    let file = person.home.path().join(below);
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().expect("a folder")), 0o700);
    let values = EnvFile::read(&file).expect("the file");
    assert_eq!(values.get("LINEAR_API_KEY"), Some(KEY));
    assert_eq!(values.get("WIKI_PASSWORD"), Some(PASSWORD));
}

#[test]
fn plain_values_are_copied_and_skipped_are_not() {
    let env = json!({ "REGION_LABEL": "eu central one", "X_COLOUR": "blue green" });
    let person = person(&json!({ "log": { "command": "LOGGING", "env": env } }));
    // Each value is looked at before it is copied.
    let shown = init(&person, &[NO_BUS], &["p all", "p", "s"]);
    assert!(shown[2].contains("X_COLOUR  (under 12"), "{shown:?}");
    assert!(
        shown[3].contains("\n  X_COLOUR  (its value is in "),
        "{shown:?}"
    );
    let env = json!({ "REGION_LABEL": "eu central one", "X_COLOUR": "${X_COLOUR}" });
    let config = person.config();
    assert_eq!(config["mcpServers"]["log"]["env"], env);
    assert_eq!(config.get("envFile"), None);
}

#[test]
fn keyring_answer_stores_where_entries_take_it() {
    let Some(keyring) = Keyring::start() else {
        return;
    };
    let (pin, token) = ("8341-2290-7716", "tok-77aa88bb99cc");
    let person = person(&json!({
        "log": { "command": "LOGGING", "env": { "BANK_PIN": pin } },
        "desk": { "command": "LOGGING", "args": ["--api-key", "dk-1029384756abc"] },
        "web": { "url": "http://127.0.0.1:1/mcp",
                 "headers": { "Authorization": format!("Bearer {token}") } },
    }));
    let bus = ("DBUS_SESSION_BUS_ADDRESS", keyring.address());
    let shown = init(&person, &[bus], &["k all", "s"]);
    assert!(shown[0].contains("[k] keyring"), "{shown:?}");
    // An argument cannot come from the keyring.
    let question = &shown[1];
    assert!(question.contains("DESK_API_KEY"), "{shown:?}");
    assert!(!question.contains("[k]"), "{shown:?}");
    assert!(shown[2].contains("server log"), "{shown:?}");
    let kept = keyring.search("callgate");
    let config = person.config();
    for secret in [pin, token] {
        assert!(kept.contains(secret), "{kept}");
        assert!(!config.to_string().contains(secret), "{config}");
        assert!(!format!("{shown:?}").contains(secret), "{shown:?}");
    }
    let header = &config["mcpServers"]["web"]["headers"]["Authorization"];
    assert_eq!(header["prefix"], "Bearer ");
    assert_eq!(header["keyring"]["service"], "callgate");
}

#[test]
fn file_is_not_offered_inside_project() {
    let env = json!({ "WIKI_PASSWORD": PASSWORD });
    let person = person(&json!({ "log": { "command": "LOGGING", "env": env } }));
    let inside = person.bench.path().canonicalize().expect("a path");
    let inside = inside.join("config").display().to_string();
    let shown = init(&person, &[NO_BUS, ("XDG_CONFIG_HOME", &inside)], &["s"]);
    assert!(!shown[0].contains("[f]"), "{shown:?}");
    assert!(!Path::new(&inside).exists());
}

#[test]
fn without_terminal_nothing_is_stored() {
    for (name, value) in [("LINEAR_API_KEY", KEY), ("WIKI_PASSWORD", PASSWORD)] {
        let person = person(&json!({ "log": { "command": "LOGGING", "env": { name: value } } }));
        let ran = person.init(&["--yes"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert_eq!(person.config().get("envFile"), None);
        assert!(!person.home.path().join(".config/callgate").exists());
        assert!(ran.stdout.contains(&format!("\n  {name}  (")), "{ran:#?}");
    }
}
