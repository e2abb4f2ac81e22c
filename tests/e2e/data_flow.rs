//! Data flows between third-party servers.

use std::path::PathBuf;

use callgate_tests::{Workbench, node};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::pty::at_terminal;

const SECRET: &str = "the launch code for tomorrow is Oberon-Puck-Titania, do not share";

/// The start of a script: reads the file's text, and defines `note` for the memory server.
const READ: &str = "const answer: any = await fs_read_text_file({ path: PATH });
const text: string = (typeof answer === 'string' ? answer : answer.content).trim();
const note = (text: string, name = 'n') => memory_create_entities({ entities: [
  { name, entityType: 'note', observations: [text] } ] });
";

struct Setting {
    bench: Workbench,
    folder: TempDir,
}

impl Setting {
    /// A file with a secret, a server that reads it and one that stores things.
    fn new(fs: Value, more: Value) -> Self {
        let folder = TempDir::with_prefix("callgate-flow-").expect("a folder");
        let path = folder.path().canonicalize().expect("a real path");
        std::fs::write(path.join("secret.txt"), format!("{SECRET}\n")).expect("a file");
        let mut files = node("server-filesystem", &[&path.to_string_lossy()]);
        for (key, value) in fs.as_object().into_iter().flatten() {
            files[key] = value.clone();
        }
        let mut memory = node("server-memory", &[]);
        memory["env"] = json!({ "MEMORY_FILE_PATH": path.join("memory.jsonl") });
        let mut config = json!({
            "mcpServers": { "fs": files, "memory": memory },
            "permissions": { "allow": ["*"] },
            "check": { "mode": "off" },
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        let bench = Workbench::with_config(config);
        Self { bench, folder }
    }

    fn script(&self, rest: &str) -> String {
        let path = self.folder.path().canonicalize().expect("a real path");
        let path = json!(path.join("secret.txt")).to_string();
        format!("{READ}{rest}").replace("PATH", &path)
    }

    fn report(&self, rest: &str) -> Value {
        self.bench.report(&self.script(rest), &[])
    }

    fn stored(&self) -> String {
        let file: PathBuf = self.folder.path().join("memory.jsonl");
        std::fs::read_to_string(file).unwrap_or_default()
    }
}

fn flows(action: &str) -> Value {
    json!({ "flows": [{ "from": "fs", "to": "memory", "action": action }] })
}

#[test]
fn denied_flow_is_blocked_in_common_encodings() {
    let setting = Setting::new(json!({}), flows("deny"));
    let report = setting.report(
        "const forms = {
           plain: text, upper: text.toUpperCase(), spaced: text.replaceAll(' ', '\\n  '),
           within: `I heard that ${text}!`, base64: btoa(text), base64Within: btoa(`> ${text}`),
           url: encodeURIComponent(text), form: String(new URLSearchParams({ q: text })),
           json: JSON.stringify({ text: JSON.stringify(text) }), part: text.slice(16, 48),
           short: text.slice(0, 10), reversed: [...text].reverse().join(''),
         };
         const out = {};
         for (const [name, form] of Object.entries(forms)) {
           try { await note(form); out[name] = 'sent'; } catch (error) { out[name] = error.name; }
         }
         return out;",
    );
    let denied = "McpDeniedError";
    assert_eq!(
        report["value"]["json"],
        json!({
            "plain": denied, "upper": denied, "spaced": denied, "within": denied,
            "base64": denied, "base64Within": denied, "url": denied, "form": denied,
            "json": denied, "part": denied,
            // Transformed data and data that are too short pass.
            "short": "sent", "reversed": "sent",
        }),
        "{report:#}"
    );
    assert!(!setting.stored().contains("Oberon"), "{}", setting.stored());
    let line = &report["calls"][1];
    assert_eq!(line["outcome"], "denied", "{line:#}");
    assert_eq!(line["flows"][0]["from"], "fs_read_text_file", "{line:#}");
    assert_eq!(line["flows"][0]["to"], "memory_create_entities");
    assert_eq!(line["flows"][0]["bytes"], SECRET.len());
    assert_eq!(line["flows"][0]["ordinal"], 1);
    assert!(!report.to_string().contains("Titania"), "{report:#}");
}

#[test]
fn labelled_data_is_asked_about_without_a_rule() {
    let setting = Setting::new(json!({ "labels": ["private"] }), json!({}));
    let report = setting.report("await note(text);");
    assert_eq!(report["status"], "denied", "{report:#}");
    let message = report["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(
        message,
        "memory_create_entities was not called: needs approval: fs_read_text_file is labelled \
         \"private\" and memory_create_entities is not: 65 bytes of fs.read_text_file (call 1) go \
         to memory.create_entities, and there is no one to ask; allow it under flows"
    );
}

#[test]
fn flow_question_shows_the_matching_data() {
    let setting = Setting::new(json!({}), flows("ask"));
    let script = setting.script(
        "await note(btoa(text)); await note(text, 'second'); console.log('both', 'stored');",
    );
    setting.bench.write("script.ts", &script);
    let mut session = at_terminal(&setting.bench, &["run", "script.ts"]);
    // The width of the terminal is not known, so the piece wraps to a second row.
    let margin: String = "│ ".bytes().map(char::from).collect();
    let (row, rest) =
        SECRET.split_at("the launch code for tomorrow is Oberon-Puck-Titania, do".len());
    for shown in [
        "(call 1) go to ",
        "such as, in base64:",
        &format!("{margin}{row} \r\n{margin}{}\r\n", rest.trim()),
    ] {
        session.exp_string(shown).expect(shown);
    }
    session.exp_string("[n] no: ").expect("the whole question");
    // For this run: the second call is not asked about.
    session.send_line("r").expect("answer");
    session.exp_string("both stored").expect("both calls");
    session.exp_eof().expect("the end");
    assert!(setting.stored().contains(SECRET));
}
