//! The entry of another client's server as `callgate.json` has it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::read::Found;
use super::secrets::{Secrets, variable};
use crate::clients::Client;

/// A server for `callgate.json`.
pub struct Entry {
    pub entry: Value,
    /// The only tools that the client uses, by their own names.
    pub only: Option<Vec<String>>,
    /// The tools that it does not use.
    pub without: Vec<String>,
    /// Keys that are not taken over.
    pub passed_over: Vec<String>,
}

/// Keys that need no mention.
const SILENT: &str =
    "active description disabled enabled icon isActive name source transport type version";

/// Keys of clients, and the keys of [`Theirs`] that they stand for. The later ones win.
const SYNONYMS: [(&str, &str); 6] = [
    ("serverUrl", "url"),
    ("httpUrl", "url"),
    ("http_headers", "headers"),
    ("includeTools", "enabled_tools"),
    ("excludeTools", "disabled_tools"),
    ("disabledTools", "disabled_tools"),
];

/// An entry in the forms of all clients. Numbers and booleans are texts, and `null` is left out.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Theirs {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    /// Variables of the client that are handed on.
    env_vars: Vec<String>,
    cwd: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    /// Headers whose values are in variables.
    env_http_headers: BTreeMap<String, String>,
    bearer_token_env_var: Option<String>,
    startup_timeout_sec: Option<String>,
    startup_timeout_ms: Option<String>,
    tool_timeout_sec: Option<String>,
    timeout: Option<String>,
    enabled_tools: Option<Vec<String>>,
    disabled_tools: Vec<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Theirs {
    fn read(found: &Found) -> Result<Self, String> {
        let mut entry = found.entry.clone();
        // Zed once had the command as an object.
        if let Some(Value::Object(mut command)) = entry.get("command").cloned() {
            let program = command.remove("path").unwrap_or_default();
            entry.extend(command);
            entry.insert("command".to_owned(), program);
        }
        for (theirs, ours) in SYNONYMS {
            if let Some(value) = entry.remove(theirs).filter(|value| !value.is_null()) {
                entry.insert(ours.to_owned(), value);
            }
        }
        let theirs = serde_json::from_value(texts(found.client, entry.into()));
        // The error of the parser could quote a secret.
        let wrong = "a value in it, such as \"args\" or \"env\", is not of the type that clients write; \
                 correct it there";
        theirs.map_err(|_| wrong.to_owned())
    }
}

/// Converts an entry. An error says why it is of no use.
pub fn convert(found: &Found, secrets: &mut Secrets) -> Result<Entry, String> {
    let server = &found.name;
    let mut theirs = Theirs::read(found)?;
    let mut kinds = ["type", "transport"]
        .iter()
        .filter_map(|key| theirs.rest.get(*key)?.as_str());
    if kinds.any(|kind| kind.eq_ignore_ascii_case("sse")) {
        return Err(
            "it uses the transport SSE, which MCP gave up; if the server has a streamable \
                    HTTP address, add it there"
                .to_owned(),
        );
    }
    let reference = |name: &str| format!("${{{name}}}");
    for (name, value) in &mut theirs.env {
        *value = secrets.environment(server, name, value);
    }
    for name in theirs.env_vars {
        theirs.env.insert(name.clone(), reference(&name));
    }
    for (name, value) in &mut theirs.headers {
        *value = secrets.header(server, name, value);
    }
    for (name, from) in theirs.env_http_headers {
        theirs.headers.insert(name, reference(&from));
    }
    if let Some(from) = theirs.bearer_token_env_var {
        let bearer = format!("Bearer {}", reference(&from));
        theirs.headers.insert("Authorization".to_owned(), bearer);
    }
    let milliseconds = |time: Option<String>, unit: f64| {
        let time = time?.parse::<f64>().ok()? * unit;
        (time >= 1.0).then(|| format!("{}ms", time.round()))
    };
    let start = milliseconds(theirs.startup_timeout_sec, 1000.0);
    let call = milliseconds(theirs.tool_timeout_sec, 1000.0);
    let times = json!({
        "startTimeout": start.or_else(|| milliseconds(theirs.startup_timeout_ms, 1.0)),
        "callTimeout": call.or_else(|| milliseconds(theirs.timeout, 1.0)),
    });
    let mut entry = match (theirs.command, theirs.url) {
        (Some(command), _) => {
            let args = secrets.arguments(server, &theirs.args);
            json!({ "command": command, "args": args, "env": theirs.env, "cwd": theirs.cwd })
        }
        (None, Some(url)) => {
            json!({ "url": secrets.url(server, &url), "headers": theirs.headers })
        }
        (None, None) => return Err("it has neither a command nor an address".to_owned()),
    };
    if let (Value::Object(entry), Value::Object(times)) = (&mut entry, times) {
        entry.extend(times);
        entry.retain(|_, value| ![json!(null), json!([]), json!({})].contains(value));
    }
    let mut passed_over: Vec<String> = theirs.rest.into_iter().map(|(key, _)| key).collect();
    passed_over.retain(|key| !SILENT.split(' ').any(|silent| silent == key));
    Ok(Entry {
        entry,
        only: theirs.enabled_tools,
        without: theirs.disabled_tools,
        passed_over,
    })
}

/// The entry in one line as it would be written, without secrets.
pub fn shown(found: &Found) -> String {
    match convert(found, &mut Secrets::default()) {
        Ok(entry) => entry.entry.to_string(),
        Err(reason) => reason,
    }
}

/// A value with its numbers and booleans as texts, with Callgate's form of references in all texts,
/// and without `null`.
fn texts(client: Client, value: Value) -> Value {
    match value {
        Value::String(text) => references(client, &text).into(),
        Value::Array(array) => array.into_iter().map(|it| texts(client, it)).collect(),
        Value::Object(object) => {
            let members = object.into_iter().filter(|(_, it)| !it.is_null());
            members.map(|(key, it)| (key, texts(client, it))).collect()
        }
        other => other.to_string().into(),
    }
}

/// A text whose references to variables are in Callgate's form.
fn references(client: Client, text: &str) -> String {
    const KNOWN: [&str; 5] = [
        "workspaceFolder",
        "workspaceFolderBasename",
        "userHome",
        "pathSeparator",
        "/",
    ];
    let mut changed = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        changed += before;
        if let Some((reference, after)) = after.strip_prefix('{').and_then(|it| it.split_once('}'))
        {
            let name = reference.strip_prefix("env:").unwrap_or(reference);
            let name = name.split(":-").next().unwrap_or_default();
            // `${input:token}` asks a person elsewhere.
            changed += &if KNOWN.contains(&reference) || variable(name) == name.to_uppercase() {
                format!("${{{reference}}}")
            } else {
                let name = reference.rsplit(':').next().unwrap_or(reference);
                format!("${{{}}}", variable(name))
            };
            rest = after;
            continue;
        }
        rest = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let (name, _) = after.split_at(after.len() - rest.len());
        let is_variable = client == Client::Gemini && !name.is_empty();
        changed += &if is_variable {
            format!("${{{name}}}")
        } else {
            format!("${name}")
        };
    }
    changed + rest
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn converted(client: Client, entry: &Value) -> Result<Entry, String> {
        let found = Found {
            client,
            file: PathBuf::new(),
            name: "cg".to_owned(),
            entry: entry.as_object().cloned().expect("an object"),
            is_off: false,
            project: None,
        };
        convert(&found, &mut Secrets::default())
    }

    #[track_caller]
    fn check(client: Client, entry: Value, expected: &Value) {
        let converted = converted(client, &entry);
        assert_eq!(&converted.expect("a server").entry, expected);
    }

    #[test]
    fn entries_of_each_client() {
        use Client::{ClaudeDesktop, Codex, Cursor, Gemini, VsCode, Windsurf, Zed};
        check(
            ClaudeDesktop,
            json!({ "command": "npx", "args": ["-y", "x"], "env": { "CG_KEY": "s3cret" } }),
            &json!({ "command": "npx", "args": ["-y", "x"], "env": { "CG_KEY": "${CG_KEY}" } }),
        );
        check(
            VsCode,
            json!({ "type": "http", "url": "https://x.example/mcp",
                    "headers": { "Authorization": "Bearer ${input:cg-token}" } }),
            &json!({ "url": "https://x.example/mcp",
                     "headers": { "Authorization": "Bearer ${CG_TOKEN}" } }),
        );
        check(
            Cursor,
            json!({ "command": "${workspaceFolder}/s", "env": { "A": "${env:CG_A}" } }),
            &json!({ "command": "${workspaceFolder}/s", "env": { "A": "${env:CG_A}" } }),
        );
        check(
            Codex,
            json!({ "url": "https://x.example/mcp", "bearer_token_env_var": "CG_B",
                    "env_http_headers": { "X-Team": "CG_T" }, "tool_timeout_sec": 1.5 }),
            &json!({ "url": "https://x.example/mcp",
                     "headers": { "X-Team": "${CG_T}", "Authorization": "Bearer ${CG_B}" },
                     "callTimeout": "1500ms" }),
        );
        check(
            Codex,
            json!({ "command": "x", "env_vars": ["CG_A"], "startup_timeout_ms": 20_000 }),
            &json!({ "command": "x", "env": { "CG_A": "${CG_A}" }, "startTimeout": "20000ms" }),
        );
        check(
            Gemini,
            json!({ "httpUrl": "https://x.example/mcp", "headers": { "X-Key": "$CG_A" },
                    "timeout": 5000, "trust": true }),
            &json!({ "url": "https://x.example/mcp", "headers": { "X-Key": "${CG_A}" },
                     "callTimeout": "5000ms" }),
        );
        check(
            Windsurf,
            json!({ "serverUrl": "https://x.example/mcp", "url": "https://y.example/sse",
                    "disabledTools": ["a"] }),
            &json!({ "url": "https://x.example/mcp" }),
        );
        check(
            Zed,
            json!({ "source": "custom", "command": { "path": "x", "args": ["a"], "env": null } }),
            &json!({ "command": "x", "args": ["a"] }),
        );
    }

    #[test]
    fn malformed_entry_is_refused_without_showing_values() {
        let entry = json!({ "command": "x", "args": "--token s3cret" });
        let refused = converted(Client::Cursor, &entry).err().expect("a reason");
        assert!(!refused.contains("s3cret"), "{refused}");
    }
}
