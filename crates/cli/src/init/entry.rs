//! The entry of another client's server as `callgate.json` has it.

use serde_json::{Map, Value, json};

use super::read::Found;
use super::secrets::{Secrets, variable};
use crate::clients::Client;

/// A server for `callgate.json`.
pub struct Entry {
    pub entry: Map<String, Value>,
    /// The only tools that the client uses, by their own names.
    pub only: Option<Vec<String>>,
    /// The tools that it does not use.
    pub without: Vec<String>,
    /// Keys that are not taken over.
    pub passed_over: Vec<String>,
}

/// Keys that need no mention.
const SILENT: [&str; 9] = [
    "active",
    "description",
    "disabled",
    "enabled",
    "isActive",
    "name",
    "source",
    "icon",
    "version",
];

/// Converts an entry. An error says why it is of no use.
pub fn convert(found: &Found, secrets: &mut Secrets) -> Result<Entry, String> {
    let mut reader = Reader {
        found,
        left: found.entry.clone(),
    };
    let kind = reader
        .text(&["type", "transport", "transportType"])
        .unwrap_or_default();
    if kind.to_ascii_lowercase().contains("sse") {
        return Err(
            "it uses the transport SSE, which MCP gave up; if the server has a streamable \
                    HTTP address, add it there"
                .to_owned(),
        );
    }
    let server = &found.name;
    let mut entry = Map::new();
    // Zed once had the command as an object.
    if let Some(Value::Object(command)) = reader.left.get("command").cloned() {
        reader.left.remove("command");
        reader.left.extend(command);
    }
    let command = reader.text(&["command", "cmd", "path"]);
    let url = reader.text(&["httpUrl", "serverUrl", "url"]);
    match (command, url) {
        (Some(command), _) => {
            entry.insert("command".to_owned(), command.into());
            let args = secrets.arguments(server, &reader.texts(&["args"]).unwrap_or_default());
            if !args.is_empty() {
                entry.insert("args".to_owned(), json!(args));
            }
            let mut env = Map::new();
            for name in reader.texts(&["env_vars"]).unwrap_or_default() {
                env.insert(name.clone(), format!("${{{name}}}").into());
            }
            for (name, value) in reader.map(&["env", "environment"]) {
                let value = secrets.environment(server, &name, &value);
                env.insert(name, value.into());
            }
            if !env.is_empty() {
                entry.insert("env".to_owned(), env.into());
            }
            if let Some(cwd) = reader.text(&["cwd", "workingDirectory", "working_directory"]) {
                entry.insert("cwd".to_owned(), cwd.into());
            }
        }
        (None, Some(url)) => {
            entry.insert("url".to_owned(), secrets.url(server, &url).into());
            let headers = headers(&mut reader, secrets);
            if !headers.is_empty() {
                entry.insert("headers".to_owned(), headers.into());
            }
        }
        (None, None) => return Err("it has neither a command nor an address".to_owned()),
    }
    for (keys, ours, per_second) in [
        (&["startup_timeout_sec"][..], "startTimeout", 1000.0),
        (&["startup_timeout_ms"], "startTimeout", 1.0),
        (&["tool_timeout_sec"], "callTimeout", 1000.0),
        (&["timeout"], "callTimeout", 1.0),
    ] {
        let time = reader.take(keys).and_then(|time| time.as_f64());
        if let Some(time) = time.map(|time| time * per_second).filter(|ms| *ms >= 1.0) {
            entry.insert(ours.to_owned(), format!("{}ms", time.round()).into());
        }
    }
    let only = reader.texts(&["includeTools", "enabled_tools"]);
    let without = reader.texts(&["excludeTools", "disabled_tools", "disabledTools"]);
    let mut passed_over: Vec<String> = reader.left.keys().cloned().collect();
    passed_over.retain(|key| !SILENT.contains(&key.as_str()));
    Ok(Entry {
        entry,
        only,
        without: without.unwrap_or_default(),
        passed_over,
    })
}

fn headers(reader: &mut Reader<'_>, secrets: &mut Secrets) -> Map<String, Value> {
    let server = &reader.found.name;
    let mut headers = Map::new();
    for (name, value) in reader.map(&["headers", "http_headers"]) {
        let value = secrets.header(server, &name, &value);
        headers.insert(name, value.into());
    }
    for (name, from) in reader.map(&["env_http_headers"]) {
        headers.insert(name, format!("${{{from}}}").into());
    }
    let bearer = reader
        .text(&["bearer_token_env_var"])
        .map(|from| format!("Bearer ${{{from}}}"));
    let token = reader
        .text(&["bearer_token"])
        .map(|token| format!("Bearer {token}"));
    let token = token.map(|token| secrets.header(server, "Authorization", &token));
    if let Some(bearer) = bearer.or(token) {
        headers.insert("Authorization".to_owned(), bearer.into());
    }
    headers
}

/// Takes members out of an entry.
struct Reader<'a> {
    found: &'a Found,
    /// What was not taken yet.
    left: Map<String, Value>,
}

impl Reader<'_> {
    fn take(&mut self, keys: &[&str]) -> Option<Value> {
        let mut found = None;
        for key in keys {
            let value = self.left.remove(*key).filter(|value| !value.is_null());
            found = found.or(value);
        }
        found
    }

    fn text(&mut self, keys: &[&str]) -> Option<String> {
        let value = self.take(keys)?;
        self.as_text(&value).filter(|text| !text.is_empty())
    }

    fn texts(&mut self, keys: &[&str]) -> Option<Vec<String>> {
        let value = self.take(keys)?;
        let texts = value.as_array()?.iter();
        Some(texts.filter_map(|text| self.as_text(text)).collect())
    }

    fn map(&mut self, keys: &[&str]) -> Vec<(String, String)> {
        let Some(Value::Object(map)) = self.take(keys) else {
            return Vec::new();
        };
        let members = map.into_iter();
        let members = members.filter_map(|(name, value)| Some((name, self.as_text(&value)?)));
        members.collect()
    }

    fn as_text(&self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(references(self.found.client, text)),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(boolean) => Some(boolean.to_string()),
            _ => None,
        }
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
        let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let (name, after) = after.split_at(end.unwrap_or(after.len()));
        if client == Client::Gemini && name.starts_with(|c: char| !c.is_ascii_digit()) {
            changed += &format!("${{{name}}}");
        } else {
            changed += &format!("${name}");
        }
        rest = after;
    }
    changed + rest
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[track_caller]
    fn check(client: Client, entry: Value, expected: &Value) {
        let found = Found {
            client,
            file: PathBuf::new(),
            name: "cg".to_owned(),
            entry: entry.as_object().cloned().expect("an object"),
            is_off: false,
            project: None,
        };
        let converted = convert(&found, &mut Secrets::default());
        assert_eq!(&Value::Object(converted.expect("a server").entry), expected);
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
            json!({ "command": "x", "env_vars": ["CG_A"], "startup_timeout_sec": 20 }),
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
            json!({ "serverUrl": "https://x.example/mcp", "disabledTools": ["a"] }),
            &json!({ "url": "https://x.example/mcp" }),
        );
        check(
            Zed,
            json!({ "source": "custom", "command": { "path": "x", "args": ["a"], "env": null } }),
            &json!({ "command": "x", "args": ["a"] }),
        );
    }
}
