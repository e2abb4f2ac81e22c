//! The servers that `callgate init` finds, on made-up homes with the files of other clients.

use std::fs;
use std::path::PathBuf;

use callgate_tests::{Ran, Workbench, binary, cases};
use rexpect::session::PtySession;
use serde_json::{Value, json};

use crate::pty::at_terminal_with;

/// A secret that must be in no file of ours and no output.
const SECRET: &str = "ghp_0123456789abcdefSECRET";

/// A file with one server.
pub const ONE: &str = r#"{ "mcpServers": { "log": { "command": "LOGGING" } } }"#;

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
    pub fn servers(&self) -> Vec<String> {
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
const FILES: [(&str, &str); 18] = [
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
        "\u{feff}{\n  // The servers.\n  \"inputs\": [{ \"id\": \"cg-key\", \"type\": \"promptString\" },\n  \
         { \"id\": \"cg-zone\", \"type\": \"promptString\", \"default\": \"eu-north-1\" }],\n  \
         \"servers\": { \"code\": { \"type\": \"stdio\", \"command\": \"LOGGING\", \
         \"envFile\": \".env\", \"env\": { \"KEY\": \"${input:cg-key}\", \
         \"ZONE\": \"v1/${input:cg-zone}\" }, }, },\n}\n",
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
             "env": { "A": "Token $CG_GEM" }, "includeTools": ["listIssues"], "timeout": 9000 } } }"#,
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
    (
        "~/.copilot/mcp-config.json",
        r#"{ "mcpServers": { "cop": { "type": "local", "command": "LOGGING", "args": ["c"],
             "tools": ["*"] }, "cops": { "type": "stdio", "command": "LOGGING" } } }"#,
    ),
    (
        "~/.copilot/settings.json",
        r#"{ "disabledMcpServers": ["cops"] }"#,
    ),
    (
        "opencode.json",
        r#"{ "mcp": { // mine
             "open": { "type": "local", "command": ["LOGGING", "o"], "timeout": 7000,
                       "environment": { "LOG": "debug" }, "enabled": true },
             "far": { "type": "remote", "url": "http://127.0.0.1:1/mcp",
                      "headers": { "Authorization": "Bearer {env:CG_FAR}" } } } }"#,
    ),
    (
        "~/.qwen/settings.json",
        r#"{ "mcpServers": { "qw": { "command": "LOGGING", "args": ["q"],
             "env": { "A": "$CG_QW" } } } }"#,
    ),
    (
        "~/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        r#"{ "mcpServers": { "line": { "command": "LOGGING", "timeout": 30, "disabled": false } } }"#,
    ),
    (
        "~/.continue/config.yaml",
        "name: Mine # c\nmcpServers:\n  - name: con\n    command: LOGGING\n    args: [\"n\"]\n    \
         env:\n      KEY: ${{ secrets.CG_CON }}\n  - name: cons\n    type: streamable-http\n    \
         url: http://127.0.0.1:1/mcp\n",
    ),
    (
        "~/.vibe/config.toml",
        "active_model = \"m\"\n\n[[mcp_servers]]\nname = \"vib\"\ntransport = \"stdio\"\n\
         command = \"LOGGING\"\nargs = [\"v\"]\n\n[[mcp_servers]]\nname = \"vibs\"\n\
         transport = \"streamable-http\"\nurl = \"http://127.0.0.1:1/mcp\"\n\
         api_key_env = \"CG_VIB\"\n",
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
    let names = "web here tickets desk code profiled curs dex remote gem surf zeds \
                 cop cops open far qw line con cons vib vibs";
    let named = names.split(' ').chain(["sse"]);
    let named: Vec<&str> = named.flat_map(|name| ["--server", name]).collect();
    let ran = person.init(&named);
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
        "/code/env" → { "KEY": "${CG_KEY}", "ZONE": "v1/${CG_ZONE:-eu-north-1}" }
        "/curs/url" → "http://127.0.0.1:1/mcp?api_key=${CURS_API_KEY}"
        "/dex/env" → { "API": "${API}", "LOG": "debug" }
        "/dex/startTimeout" → "20000ms"
        "/remote/headers" → { "Authorization": "Bearer ${CG_DEX}" }
        "/gem/env" → { "A": "Token ${CG_GEM}" }
        "/gem/callTimeout" → "9000ms"
        "/surf/headers" → { "X-Api-Key": "${SURF_X_API_KEY}" }
        "/zeds/args" → ["z"]
        "/cop/args" → ["c"]
        "/open/args" → ["o"]
        "/open/env" → { "LOG": "debug" }
        "/open/startTimeout" → "7000ms"
        "/far/headers" → { "Authorization": "Bearer ${CG_FAR}" }
        "/qw/env" → { "A": "${CG_QW}" }
        "/line/callTimeout" → "30000ms"
        "/con/env" → { "KEY": "${CG_CON}" }
        "/cons/url" → "http://127.0.0.1:1/mcp"
        "/vib/args" → ["v"]
        "/vibs/headers" → { "Authorization": "Bearer ${CG_VIB}" }"#,
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
        "server code: not taken over: envFile (name that file as the \"envFile\" of",
        " cops  (Copilot CLI, ~/.copilot/mcp-config.json) turned off\n",
        "callgate doctor\n",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(said.matches("not taken over").count(), 2, "{said}");
}

#[test]
fn servers_not_in_use_are_left_out() {
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
    // A cloned repository may bring its own approvals.
    let theirs = r#"{ "enableAllProjectMcpServers": true }"#;
    person.has(".claude/settings.json", theirs);
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
    let said = "left out: approved, pending; look at them";
    assert!(ran.stderr.contains(said), "{ran:#?}");
    for (name, state) in [
        ("approved", ""),
        ("refused", " turned off"),
        ("pending", " not approved in Claude Code"),
        ("local", " turned off"),
    ] {
        let line = format!(" {name}  (Claude Code, .mcp.json){state}\n");
        assert!(ran.stdout.contains(&line), "{name}: {}", ran.stdout);
    }
    let mut session = person.at_terminal(&["--force", "--read-only", "ask"]);
    session.exp_string("[n] none: ").expect("the question");
    session.send_line("all").expect("answer");
    session.exp_string("[all]: ").expect("the record");
    session.send_line("").expect("answer");
    session.exp_eof().expect("the end");
    assert_eq!(person.servers(), ["approved", "mine", "older"]);
    assert_eq!(person.config().get("store"), None);
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
        r#"{ "mcpServers": { "notes": { "command": "LOGGING -n", "alwaysAllow": [] },
            "log": { "command": "LOGGING", "env": {} } } }"#,
    );
    // Of an own file and the project's, the own one counts.
    person.has(".cursor/mcp.json", ONE);
    let ran = person.init(&["--yes"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let names = ["notes", "web", "log", "notes-2"];
    assert_eq!(person.servers(), names, "{ran:#?}");
    for line in [
        " notes  (Claude Code, ~/.claude.json; also in Cursor, Codex, Windsurf)\n",
        " web  (Claude Code, ~/.claude.json; also in Cursor, Gemini CLI)\n",
        " log  (Windsurf, ~/.codeium/windsurf/mcp_config.json; also in Cursor)\n",
        " notes-2  (Gemini CLI, ~/.gemini/settings.json)\n",
    ] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    // Only named servers are shown.
    let ran = person.init(&["--server", "web", "--force"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stdout.contains("1 web  (Claude"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("notes"), "{}", ran.stdout);
}

#[test]
fn misshapen_files_are_named_and_stop_no_other() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
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
    person.has("~/.codex/config.toml", "[mcp_servers\n");
    person.has("~/.qwen/settings.json", "{ \"mcpServers\": ");
    let theirs = person.has(".zed/settings.json", ONE);
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o666)).expect("a mode");
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
        "~/.codex/config.toml: ",
        "~/.qwen/settings.json: ",
        "may be written by other users",
    ] {
        let mut warnings = ran.stderr.lines();
        let is_said = warnings.any(|it| it.starts_with("warning: ") && it.contains(said));
        assert!(is_said, "{said}: {}", ran.stderr);
    }
    assert_eq!(person.servers(), ["log"]);
    let ends = ran.stdout.ends_with("next: callgate tools\n");
    assert!(ends, "{}", ran.stdout);
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
