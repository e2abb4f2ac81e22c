//! `callgate init`, on made-up homes with the files of other clients.

use std::fs;
use std::path::PathBuf;

use callgate_tests::{Ran, Workbench, binary, cases};
use rexpect::session::PtySession;
use serde_json::{Value, json};

use crate::pty::at_terminal_with;

/// A secret that must be in no file of ours and no output.
const SECRET: &str = "ghp_0123456789abcdefSECRET";

/// A file with one server.
const ONE: &str = r#"{ "mcpServers": { "log": { "command": "LOGGING" } } }"#;

/// A person with a home and a project.
pub struct Person {
    pub bench: Workbench,
    pub home: tempfile::TempDir,
}

impl Person {
    pub fn new() -> Self {
        Self {
            bench: Workbench::empty(),
            home: tempfile::tempdir().expect("a home"),
        }
    }

    /// Writes a file of the home, or of the project; `TICKETING`, `LOGGING`, `SECRET` and `PROJECT`
    /// stand for real ones.
    pub fn has(&self, name: &str, text: &str) -> PathBuf {
        let path = match name.strip_prefix("~/") {
            Some(name) => self.home.path().join(name),
            None => self.bench.path().join(name),
        };
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let program = |name: &str| binary(name).display().to_string();
        let text = text
            .replace("TICKETING", &program("callgate-demo-ticketing"))
            .replace("LOGGING", &program("callgate-demo-logging"))
            .replace("SECRET", SECRET)
            .replace("PROJECT", &self.bench.path().display().to_string());
        fs::write(&path, text).expect("write");
        path
    }

    pub fn environment(&self) -> [(&'static str, String); 3] {
        let below = |path: &str| self.home.path().join(path).display().to_string();
        [
            ("HOME", below("")),
            ("XDG_CONFIG_HOME", below(".config")),
            ("CODEX_HOME", below(".codex")),
        ]
    }

    pub fn at_terminal(&self, arguments: &[&str]) -> PtySession {
        let environment = self.environment();
        let environment = environment.iter().map(|(name, value)| (*name, &**value));
        let environment: Vec<_> = environment.chain([("CG_GEM", "set")]).collect();
        at_terminal_with(&self.bench, &[&["init"], arguments].concat(), &environment)
    }

    pub fn init(&self, arguments: &[&str]) -> Ran {
        let mut command = self.bench.command(&["init"]);
        command.args(arguments).envs(self.environment());
        command.output().expect("start callgate").into()
    }

    /// The names of the servers in the configuration that was written.
    fn servers(&self) -> Vec<String> {
        let config = self.config();
        let servers = config["mcpServers"].as_object().expect("servers");
        servers.keys().cloned().collect()
    }

    pub fn config(&self) -> Value {
        let text = fs::read_to_string(self.bench.path().join("callgate.json"));
        let text = text.expect("a configuration");
        assert!(!text.contains(SECRET), "{text}");
        serde_json::from_str(&text).expect("strict JSON")
    }
}

/// Each client's configuration file, in the client's own format.
const FILES: [(&str, &str); 11] = [
    (
        "~/.claude.json",
        r#"{ "numStartups": 3, "mcpServers": { "tickets": { "type": "stdio", "command": "TICKETING",
             "args": [], "env": { "GITHUB_TOKEN": "SECRET" } } },
             "projects": {
               "PROJECT": { "mcpServers": { "here": { "command": "LOGGING" } } },
               "/elsewhere": { "mcpServers": { "there": { "command": "LOGGING", "args": ["x"] } } } } }"#,
    ),
    (
        ".mcp.json",
        r#"{ "mcpServers": { "web": { "type": "http", "url": "http://127.0.0.1:1/mcp",
             "headers": { "Authorization": "Bearer ${CG_WEB:-SECRET}" } } } }"#,
    ),
    (
        "~/.config/Claude/claude_desktop_config.json",
        r#"{ "globalShortcut": "", "mcpServers": { "desk": { "command": "LOGGING",
             "args": ["--api-key", "SECRET"] } } }"#,
    ),
    (
        ".vscode/mcp.json",
        "\u{feff}{\n  // The servers.\n  \"inputs\": [{ \"id\": \"cg-key\", \"type\": \"promptString\" }],\n  \
         \"servers\": { \"code\": { \"type\": \"stdio\", \"command\": \"LOGGING\", \
         \"env\": { \"KEY\": \"${input:cg-key}\" }, }, },\n}\n",
    ),
    (
        "~/.config/Code/User/profiles/-7a1b/mcp.json",
        r#"{ "servers": { "profiled": { "command": "LOGGING", "args": ["profile"] } } }"#,
    ),
    (
        "~/.cursor/mcp.json",
        r#"{ "mcpServers": { "curs": { "url": "http://127.0.0.1:1/mcp?api_key=SECRET" },
             "old": { "command": "LOGGING", "disabled": true } } }"#,
    ),
    (
        "~/.codex/config.toml",
        "model = \"o4\" # the model\n\n[mcp_servers.dex]\ncommand = \"LOGGING\"\nargs = [\"dex\"]\n\
         startup_timeout_sec = 20\n\n[mcp_servers.dex.env]\nAPI = \"SECRET\"\nLOG = \"debug\"\n\n\
         [mcp_servers.remote]\nurl = \"http://127.0.0.1:1/mcp\"\nbearer_token_env_var = \"CG_DEX\"\n",
    ),
    (
        "~/.gemini/settings.json",
        r#"{ "theme": "Dark", "mcpServers": { "gem": { "command": "TICKETING", "trust": true,
             "env": { "A": "$CG_GEM" }, "includeTools": ["listIssues"], "timeout": 9000 } } }"#,
    ),
    (
        "~/.codeium/windsurf/mcp_config.json",
        r#"{ "mcpServers": { "surf": { "serverUrl": "http://127.0.0.1:1/mcp",
             "headers": { "X-Api-Key": "SECRET" } } } }"#,
    ),
    (
        "~/.config/zed/settings.json",
        "// Zed settings\n{\n  \"theme\": \"One Dark\",\n  \"context_servers\": {\n    \"zeds\": {\n      \
         \"source\": \"custom\",\n      \"command\": { \"path\": \"LOGGING\", \"args\": [\"z\"] },\n    },\n    \
         \"ext\": { \"source\": \"extension\", \"settings\": {} },\n  },\n}\n",
    ),
    (
        ".gemini/settings.json",
        r#"{ "mcpServers": { "sse": { "type": "sse", "url": "https://x.example/sse" } } }"#,
    ),
];

fn everything() -> Person {
    let person = Person::new();
    for (file, text) in FILES {
        person.has(file, text);
    }
    person
}

#[test]
fn init_without_terminal_imports_servers_of_all_clients() {
    let person = everything();
    let names = "web here tickets desk code profiled curs dex remote gem surf zeds";
    let named = names.split(' ').chain(["sse"]);
    let ran = person.init(
        &named
            .flat_map(|name| ["--server", name])
            .collect::<Vec<_>>(),
    );
    assert_eq!(ran.code, 0, "{ran:#?}");
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(!said.contains(SECRET), "{said}");
    let config = person.config();
    assert_eq!(person.servers().join(" "), names);
    for (member, expected) in cases(
        r#"
        "/tickets/env" → { "GITHUB_TOKEN": "${GITHUB_TOKEN}" }
        "/web/headers" → { "Authorization": "Bearer ${CG_WEB}" }
        "/desk/args" → ["--api-key", "${DESK_API_KEY}"]
        "/code/env" → { "KEY": "${CG_KEY}" }
        "/curs/url" → "http://127.0.0.1:1/mcp?api_key=${CURS_API_KEY}"
        "/dex/env" → { "API": "${API}", "LOG": "debug" }
        "/dex/startTimeout" → "20000ms"
        "/remote/headers" → { "Authorization": "Bearer ${CG_DEX}" }
        "/gem/env" → { "A": "${CG_GEM}" }
        "/gem/callTimeout" → "9000ms"
        "/surf/headers" → { "X-Api-Key": "${SURF_X_API_KEY}" }
        "/zeds/args" → ["z"]"#,
    ) {
        let member = member.as_str().expect("a pointer");
        let found = config["mcpServers"].pointer(member).expect(member);
        let expected: Value = serde_json::from_str(expected).expect("JSON");
        assert_eq!(*found, expected, "{member}");
    }
    for part in [
        "\n  GITHUB_TOKEN",
        "\n  DESK_API_KEY",
        "\n  CG_KEY",
        "\n  CG_DEX",
        "server sse is left out: it uses the transport SSE",
        "server gem: not taken over: trust",
        "callgate doctor\n",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn servers_disabled_in_the_project_are_not_imported() {
    let person = Person::new();
    let one = r#"{ "command": "LOGGING", "args": ["NAME"] }"#;
    let servers = |names: &[&str]| {
        let servers = names.iter();
        let servers = servers.map(|it| format!("{it:?}: {}", one.replace("NAME", it)));
        servers.collect::<Vec<_>>().join(", ")
    };
    let file = |names| format!(r#"{{ "mcpServers": {{ {} }} }}"#, servers(names));
    let listed = ["approved", "refused", "pending", "local"];
    person.has(".mcp.json", &file(&listed));
    let local = r#"{ "disabledMcpjsonServers": ["local"] }"#;
    person.has(".claude/settings.local.json", local);
    let mine = servers(&["mine", "off"]);
    let settings = r#""enabledMcpjsonServers": ["approved", "refused", "local"],
        "disabledMcpjsonServers": ["refused"], "disabledMcpServers": ["off"]"#;
    let claude = format!(
        r#"{{ "mcpServers": {{ {mine} }}, "projects": {{ "PROJECT": {{ {settings} }},
             "/elsewhere": {{ "disabledMcpServers": ["mine"] }} }} }}"#
    );
    person.has("~/.claude.json", &claude);
    let older = servers(&["older"]);
    let code = format!(r#"{{ "editor.fontSize": 12, "mcp": {{ "servers": {{ {older} }} }} }}"#);
    person.has("~/.config/Code/User/settings.json", &code);
    let ran = person.init(&["--yes"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    // The project's file may be from a different author, so its servers are taken only by name.
    assert_eq!(person.servers(), ["mine", "older"], "{ran:?}");
    for (name, state) in [
        ("approved", ""),
        ("refused", " turned off"),
        ("pending", " not approved in Claude Code"),
        ("local", " turned off"),
    ] {
        let line = format!(" {name}  (Claude Code, .mcp.json){state}\n");
        assert!(ran.stdout.contains(&line), "{name}: {}", ran.stdout);
    }
}

#[test]
fn unapproved_servers_of_a_project_are_left_out() {
    for settings in [
        "",
        r#""enabledMcpjsonServers": []"#,
        r#""enabledMcpjsonServers": ["other"]"#,
        r#""enableAllProjectMcpServers": false"#,
    ] {
        let person = Person::new();
        person.has(".mcp.json", &ONE.replace("log", "cloned"));
        let claude = format!(r#"{{ "projects": {{ "PROJECT": {{ {settings} }} }} }}"#);
        person.has("~/.claude.json", &claude);
        // A cloned repository may bring its own approvals.
        let theirs = r#"{ "enableAllProjectMcpServers": true }"#;
        person.has(".claude/settings.json", theirs);
        person.has(
            "~/.cursor/mcp.json",
            &ONE.replacen(" }", r#", "args": ["-v"] }"#, 1),
        );
        let ran = person.init(&["--yes"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let said = " cloned  (Claude Code, .mcp.json) not approved in Claude Code\n";
        assert!(ran.stdout.contains(said), "{settings}: {ran:#?}");
        assert!(
            ran.stderr.contains("left out: cloned"),
            "{settings}: {ran:#?}"
        );
        assert_eq!(person.servers(), ["log"]);
        let mut session = person.at_terminal(&["--force", "--read-only", "ask"]);
        session.exp_string("[n] none: ").expect("the question");
        session.send_line("all").expect("answer");
        session.exp_string("[all]: ").expect("the record");
        session.send_line("").expect("answer");
        session.exp_eof().expect("the end");
        assert_eq!(person.servers(), ["log"], "{settings}");
        assert_eq!(person.config().get("store"), None);
    }
}

#[test]
fn equal_servers_of_clients_become_one() {
    let person = Person::new();
    person.has(
        "~/.claude.json",
        r#"{ "mcpServers": {
            "notes": { "type": "stdio", "command": "LOGGING", "args": ["-n"], "env": {} },
            "web": { "type": "http", "url": "http://127.0.0.1:1/mcp", "headers": { "X-Team": "${CG_T}" } } } }"#,
    );
    person.has(
        "~/.cursor/mcp.json",
        r#"{ "mcpServers": {
            "notes": { "command": "LOGGING", "args": ["-n"], "cwd": null, "disabled": false },
            "web": { "url": "http://127.0.0.1:1/mcp", "headers": { "X-Team": "${env:CG_T}" } } } }"#,
    );
    person.has(
        "~/.codex/config.toml",
        "[mcp_servers.notes]\ncommand = \"LOGGING\"\nargs = [\"-n\"]\nstartup_timeout_sec = 20\n",
    );
    person.has(
        "~/.gemini/settings.json",
        r#"{ "mcpServers": {
            "notes": { "command": "LOGGING", "args": ["-other"], "trust": true },
            "web": { "httpUrl": "http://127.0.0.1:1/mcp", "headers": { "X-Team": "$CG_T" } } } }"#,
    );
    person.has(
        "~/.codeium/windsurf/mcp_config.json",
        r#"{ "mcpServers": { "notes": { "command": "LOGGING -n", "alwaysAllow": [] } } }"#,
    );
    let ran = person.init(&["--yes"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(person.servers(), ["notes", "web", "notes-2"], "{ran:#?}");
    for line in [
        " notes  (Claude Code, ~/.claude.json; also in Cursor, Codex, Windsurf)\n",
        " web  (Claude Code, ~/.claude.json; also in Cursor, Gemini CLI)\n",
        " notes-2  (Gemini CLI, ~/.gemini/settings.json)\n",
    ] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
}

#[test]
fn own_entry_counts_before_the_projects() {
    let person = Person::new();
    person.has(".cursor/mcp.json", ONE);
    person.has(
        "~/.codeium/windsurf/mcp_config.json",
        &ONE.replacen(" }", r#", "env": {} }"#, 1),
    );
    let ran = person.init(&["--yes"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(person.servers(), ["log"]);
    let line = " log  (Windsurf, ~/.codeium/windsurf/mcp_config.json; also in Cursor)\n";
    assert!(ran.stdout.contains(line), "{}", ran.stdout);
}

#[test]
fn only_named_servers_are_shown() {
    let person = Person::new();
    person.has(
        "~/.cursor/mcp.json",
        r#"{ "mcpServers": { "log": { "command": "LOGGING" }, "unwanted": { "command": "x" } } }"#,
    );
    let ran = person.init(&["--server", "log"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stdout.contains("1 log  (Cursor"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("unwanted"), "{}", ran.stdout);
}

#[test]
fn texts_around_references_reach_the_server() {
    let person = Person::new();
    person.has(
        "~/.gemini/settings.json",
        r#"{ "mcpServers": { "queue": { "command": "LOGGING",
            "args": ["--url=amqp://me:$CG_PW@broker/v", "X-Auth: Token $CG_AUTH"],
            "env": { "AUTH": "Token $CG_AUTH", "LIST": "[${CG_A:-3}|$CG_B]" } } } }"#,
    );
    person.has(
        ".vscode/mcp.json",
        r#"{ "inputs": [{ "id": "cg-zone", "type": "promptString", "default": "eu-north-1" }],
            "servers": { "zones": { "url": "http://127.0.0.1:1/${input:cg-zone}/mcp",
                "headers": { "X-Token": "v2:${env:CG_AUTH}" }, "envFile": ".env" } } }"#,
    );
    let ran = person.init(&["--server", "queue", "--server", "zones"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let servers = person.config()["mcpServers"].take();
    for (member, expected) in cases(
        r#"
        "/queue/args" → ["--url=amqp://me:${CG_PW}@broker/v", "X-Auth: Token ${CG_AUTH}"]
        "/queue/env" → { "AUTH": "Token ${CG_AUTH}", "LIST": "[${CG_A:-3}|${CG_B}]" }
        "/zones/url" → "http://127.0.0.1:1/${CG_ZONE:-eu-north-1}/mcp"
        "/zones/headers" → { "X-Token": "v2:${env:CG_AUTH}" }"#,
    ) {
        let member = member.as_str().expect("a pointer");
        let expected: Value = serde_json::from_str(expected).expect("JSON");
        assert_eq!(servers.pointer(member), Some(&expected), "{member}");
    }
    let said = "server zones: not taken over: envFile (name that file as the \"envFile\" of";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn secrets_in_commands_stay_out() {
    let person = Person::new();
    person.has(
        "~/.cursor/mcp.json",
        r#"{ "mcpServers": { "log": { "command": "LOGGING" },
            "one": { "command": "cg-one --api-key swordfish" },
            "two": { "command": "CG_KEY=swordfish cg-two" },
            "three": { "command": "cg-three", "args": ["-pSwordfish", "--user", "me:swordfish"] },
            "four": { "command": "sh", "args": ["-c", "exec cg-four --token swordfish"] } } }"#,
    );
    let ran = person.init(&["--yes"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(person.servers(), ["log", "one", "three", "four"]);
    let refused = "server two is left out: its \"command\" holds more than a program; write";
    assert!(ran.stderr.contains(refused), "{}", ran.stderr);
    let said = format!("{}{}{}", ran.stdout, ran.stderr, person.config());
    assert!(!said.to_lowercase().contains("swordfish"), "{said}");
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

/// Answers the questions about servers, one secret, tools to call without approval, and the record.
fn answer(session: &mut PtySession, answers: [&str; 4]) {
    let prompts = ["[n] none: ", "no secret: ", "without asking: ", "[all]: "];
    for (prompt, answer) in prompts.into_iter().zip(answers) {
        session.exp_string(prompt).expect("the question");
        session.send_line(answer).expect("answer");
    }
}

#[test]
fn a_person_chooses_at_the_terminal() {
    let person = everything();
    let mut session = person.at_terminal(&[]);
    let list = session.exp_string("take which?").expect("the list");
    for text in ["Claude Code", "VS Code", "Zed", "there", "turned off"] {
        assert!(list.contains(text), "{text}: {list}");
    }
    session.exp_string("[n] none: ").expect("the question");
    let number = |name: &str| {
        let name = format!(" {name}  (");
        let line = list.lines().find(|line| line.contains(&name));
        let line = line.unwrap_or_else(|| panic!("{name}: {list}"));
        line.split_whitespace().nth(1).expect("a number").to_owned()
    };
    let (tickets, gem) = (number("tickets"), number("gem"));
    session.send_line("what?").expect("answer");
    let both = format!("{tickets} {gem}");
    answer(&mut session, [&both, "s", "allow", "errors"]);
    let rest = session.exp_eof().expect("the end");
    assert!(rest.contains("wrote callgate.json"), "{rest}");
    assert!(rest.contains("set these variables"), "{rest}");
    assert_eq!(person.servers().len(), 2);
    let expected = json!({
        "allow": ["tickets_listIssues", "gem_listIssues"],
        "ask": ["tickets_createIssue"],
        "deny": ["gem_createIssue"],
    });
    assert_eq!(person.config()["permissions"], expected);
    assert_eq!(person.config()["store"], json!({ "bodies": "errors" }));
}

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
fn unreadable_client_file_does_not_hide_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let person = Person::new();
    person.has("~/.codex/config.toml", "[mcp_servers\n");
    person.has("~/.cursor/mcp.json", "{ \"mcpServers\": ");
    let theirs = r#"{ "mcpServers": { "x": { "command": "LOGGING" } } }"#;
    let theirs = person.has(".gemini/settings.json", theirs);
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o666)).expect("a mode");
    person.has("~/.claude.json", ONE);
    let ran = person.init(&["--yes"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    for said in [
        "warning: ~/.codex/config.toml: ",
        "warning: ~/.cursor/mcp.json: ",
        "may be written by other users",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    assert_eq!(person.servers(), ["log"]);
    let ends = ran.stdout.ends_with("next: callgate tools\n");
    assert!(ends, "{}", ran.stdout);
}

#[test]
fn misshapen_files_are_named_and_stop_no_other() {
    use std::os::unix::fs::symlink;
    let person = Person::new();
    let claude = person.has("~/.claude.json", "{}");
    let large = fs::File::options().write(true).open(claude);
    large.expect("a file").set_len(65 << 20).expect("a length");
    let desktop = person.has("~/.config/Claude/claude_desktop_config.json", "");
    let utf16: Vec<u8> = "\u{feff}{}"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    fs::write(desktop, utf16).expect("write");
    person.has("~/.cursor/mcp.json", r#"[{ "mcpServers": {} }]"#);
    person.has(
        ".gemini/settings.json",
        r#"{ "mcpServers": [{ "command": "x" }] }"#,
    );
    person.has(
        "~/.config/zed/settings.json/note",
        "a folder in place of a file",
    );
    let ring = person.has("~/.codeium/windsurf/note", "");
    let ring = ring.with_file_name("mcp_config.json");
    symlink("mcp_config.json", &ring).expect("a link");
    person.has(
        "~/.config/Code/User/mcp.json",
        r#"{ "servers": { "text": "npx x", "nil": null, "": {}, "log": { "command": "LOGGING" },
            "log": { "command": "LOGGING", "env": { "A": "1", "A": "2" } } } }"#,
    );
    let ran = person.init(&["--yes"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    for said in [
        "~/.claude.json: it is over 64 MiB, and its servers are left out; copy them to",
        "claude_desktop_config.json: it is not UTF-8 text; save it as UTF-8",
        "~/.cursor/mcp.json: its settings must be an object, and are an array",
        ".gemini/settings.json: \"mcpServers\" must be an object with servers, and is an array",
        "zed/settings.json: it is a folder",
        "windsurf/mcp_config.json",
        "Code/User/mcp.json: server \"text\" must be an object, and is a string",
        "server \"nil\" must be an object, and is null",
        "a server with an empty name is left out; give it a name",
        "server \"log\" is there twice; remove one",
        "\"A\" of server \"log\" is there twice; remove one",
    ] {
        let mut warnings = ran.stderr.lines();
        let is_said = warnings.any(|it| it.starts_with("warning: ") && it.contains(said));
        assert!(is_said, "{said}: {}", ran.stderr);
    }
    assert_eq!(person.servers(), ["log"]);
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

/// The file that `--client` writes to, for each client, with text that must stay.
const INSTALLED: [(&str, &str, &str, &str); 8] = [
    (
        "claude-code",
        ".mcp.json",
        "{\n  \"mcpServers\": { \"x\": { \"command\": \"y\" } }\n}\n",
        "\"x\": {",
    ),
    (
        "claude-desktop",
        "~/.config/Claude/claude_desktop_config.json",
        "{\n  \"globalShortcut\": \"Ctrl\"\n}\n",
        "\"globalShortcut\": \"Ctrl\"",
    ),
    (
        "vscode",
        ".vscode/mcp.json",
        "\u{feff}{\n  // mine\n  \"servers\": {\n    \"x\": { \"command\": \"y\", },\n  },\n}\n",
        "// mine",
    ),
    ("cursor", ".cursor/mcp.json", "", ""),
    (
        "codex",
        "~/.codex/config.toml",
        "model = \"o4\" # mine\n\n[mcp_servers.x]\ncommand = \"y\"\n",
        "model = \"o4\" # mine",
    ),
    (
        "gemini",
        ".gemini/settings.json",
        "{ \"theme\": \"Dark\" }\n",
        "\"theme\": \"Dark\"",
    ),
    (
        "windsurf",
        "~/.codeium/windsurf/mcp_config.json",
        "{ \"mcpServers\": { \"callgate\": { \"command\": \"old\" } } }\n",
        "",
    ),
    (
        "zed",
        "~/.config/zed/settings.json",
        "// mine\n{\n  \"theme\": \"One\", /* too */\n}\n",
        "/* too */",
    ),
];

#[test]
fn callgate_is_written_into_each_client() {
    for (client, name, before, stays) in INSTALLED {
        let person = Person::new();
        person
            .bench
            .write("callgate.json", r#"{ "mcpServers": {} }"#);
        let missing = client == "cursor";
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
        assert!(after.contains(stays), "{after}");
        let [is_marked, was_marked] = [&after, before].map(|text| text.starts_with('\u{feff}'));
        assert_eq!(is_marked, was_marked, "{client}");
        assert!(!after.contains("\"old\""), "{after}");
        let program = binary("callgate").display().to_string();
        let path = person.bench.path().join("callgate.json");
        let path = path.display().to_string();
        let is_of_project = name.starts_with('.');
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
        // A second run parses the written file.
        let again = person.init(&["--client", client, "--yes"]);
        assert!(again.stdout.contains("has Callgate already"), "{again:#?}");
        assert_eq!(fs::read_to_string(&file).expect("the file"), after);
    }
}

#[test]
fn a_person_sees_the_difference_and_may_refuse() {
    for (answer, is_written) in [("n", false), ("y", true)] {
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
        session.send_line(answer).expect("answer");
        session.exp_eof().expect("the end");
        let text = fs::read_to_string(&file).expect("the file");
        assert!(text.starts_with("# mine\n"), "{text}");
        assert_eq!(text.contains("callgate"), is_written, "{text}");
    }
}

#[test]
fn link_out_of_the_project_is_refused() {
    use std::os::unix::fs::symlink;
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
    std::os::unix::fs::symlink("../../dotfiles/surf.json", &link).expect("a link");
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
