//! Converts the entry of another client's server to the form of `callgate.json`.

use std::collections::BTreeMap;
use std::path::Path;

use callgate::config::foreign::tool_keys;
use callgate_text::one_line;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::read::Found;
use super::secrets::{Secrets, variable};
use super::suspicion::is_token;
use super::usual;
use crate::clients::Client;

/// A server for `callgate.json`.
pub struct Entry {
    pub entry: Value,
    /// Lists of the only tools that the client uses, by their own names.
    pub only: Vec<Vec<String>>,
    /// The tools that the client does not use.
    pub without: Vec<String>,
    /// Keys that are not taken over, some with advice, each in one line.
    pub passed_over: Vec<String>,
}

impl Entry {
    /// True if the client does not use all tools.
    pub fn is_limited(&self) -> bool {
        !self.only.is_empty() || !self.without.is_empty()
    }

    /// True if the client does not use this tool.
    pub fn leaves_out(&self, tool: &str) -> bool {
        let is_in = |list: &Vec<String>| list.iter().any(|it| it == tool);
        is_in(&self.without) || !self.only.iter().all(is_in)
    }
}

/// Keys without effect on a server, which are dropped without a warning.
const SILENT: &str = "description disable disabled icon isDisabled name source transport \
                      transportType type version";

/// Why an entry is refused. An error of the parser could quote a secret.
const WRONG_TYPE: &str = "a value in it, such as \"args\" or \"env\", is not of the type that \
                          clients write; correct it there";

/// Why an entry with this command is refused.
const NO_PROGRAM: &str = "its \"command\" holds more than a program; write the program alone \
                          there, and each argument into \"args\"";
/// A key that is not taken over, with advice.
const ENV_FILE: &str = "envFile (name that file as the \"envFile\" of callgate.json, and each of its \
                        variables under \"env\", as in \"NAME\": \"${NAME}\")";

/// The maximum number of characters shown of a key.
const KEY: usize = 40;

/// An entry with the keys of all clients. Numbers and booleans are texts, and `null` is omitted.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ClientEntry {
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
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl ClientEntry {
    fn read(found: &Found) -> Result<Self, String> {
        let entry = usual::entry(found.client, found.entry.clone());
        let entry = texts(found.client, entry.into());
        serde_json::from_value(entry).map_err(|_| WRONG_TYPE.to_owned())
    }

    /// Removes the lists of the only tools in use, or of tools that are not in use.
    fn take_tools(&mut self, are_in_use: bool) -> Result<Vec<Vec<String>>, String> {
        let lists = tool_keys(are_in_use).filter_map(|key| self.rest.remove(key));
        let lists: Result<Vec<Vec<String>>, _> = lists.map(serde_json::from_value).collect();
        lists.map_err(|_| WRONG_TYPE.to_owned())
    }

    fn uses_sse(&self) -> bool {
        let keys = ["type", "transport", "transportType"];
        let mut kinds = keys.iter().filter_map(|key| self.rest.get(*key)?.as_str());
        kinds.any(|kind| kind.eq_ignore_ascii_case("sse"))
    }

    /// Makes `env` complete and free of secrets.
    fn finish_environment(&mut self, server: &str, secrets: &mut Secrets) {
        for (name, value) in &mut self.env {
            *value = secrets.environment(server, name, value);
        }
        for name in &self.env_vars {
            self.env.insert(name.clone(), reference(name));
        }
    }

    /// Makes `headers` complete and free of secrets.
    fn finish_headers(&mut self, server: &str, secrets: &mut Secrets) {
        for (name, value) in &mut self.headers {
            *value = secrets.header(server, name, value);
        }
        for (name, from) in &self.env_http_headers {
            self.headers.insert(name.clone(), reference(from));
        }
        if let Some(from) = &self.bearer_token_env_var {
            let bearer = format!("Bearer {}", reference(from));
            self.headers.insert("Authorization".to_owned(), bearer);
        }
    }

    /// `startTimeout` and `callTimeout`, each `None` if the client sets no limit.
    fn timeouts(&self) -> [Option<String>; 2] {
        let milliseconds = |time: &Option<String>, unit: f64| {
            let time = time.as_ref()?.parse::<f64>().ok()? * unit;
            (time >= 1.0).then(|| format!("{}ms", time.round()))
        };
        let start = milliseconds(&self.startup_timeout_sec, 1000.0);
        let call = milliseconds(&self.tool_timeout_sec, 1000.0);
        [
            start.or_else(|| milliseconds(&self.startup_timeout_ms, 1.0)),
            call.or_else(|| milliseconds(&self.timeout, 1.0)),
        ]
    }
}

/// The reference to a variable.
pub fn reference(name: &str) -> String {
    format!("${{{name}}}")
}

/// Converts an entry. The error says why the server is left out.
pub fn convert(found: &Found, secrets: &mut Secrets) -> Result<Entry, String> {
    let server = &found.name;
    let mut theirs = ClientEntry::read(found)?;
    if theirs.uses_sse() {
        let reason = "it uses the transport SSE, which MCP deprecated; if the server has a \
                      streamable HTTP address, add it there";
        return Err(reason.to_owned());
    }
    let (only, without) = (theirs.take_tools(true)?, theirs.take_tools(false)?.concat());
    let command = theirs.command.take().map(|it| split(&it)).transpose()?;
    let [start, call] = theirs.timeouts();
    let mut entry = match (command, theirs.url.take()) {
        (Some((program, mut args)), _) => {
            args.append(&mut theirs.args);
            theirs.finish_environment(server, secrets);
            let args = secrets.arguments(server, &program, &args);
            let program = secrets.program(&program);
            json!({ "command": program, "args": args, "env": theirs.env, "cwd": theirs.cwd })
        }
        (None, Some(url)) => {
            theirs.finish_headers(server, secrets);
            json!({ "url": secrets.url(server, &url), "headers": theirs.headers })
        }
        (None, None) => return Err("it has neither a command nor an address".to_owned()),
    };
    entry["startTimeout"] = start.into();
    entry["callTimeout"] = call.into();
    if let Value::Object(entry) = &mut entry {
        entry.retain(|_, value| ![json!(null), json!([]), json!({})].contains(value));
    }
    let mut keys: Vec<String> = theirs.rest.into_iter().map(|(key, _)| key).collect();
    keys.retain(|key| !SILENT.split(' ').any(|silent| silent == key));
    let passed_over = keys.iter().map(|key| match key.as_str() {
        "envFile" => ENV_FILE.to_owned(),
        key => one_line(key, KEY),
    });
    Ok(Entry {
        entry,
        only,
        without,
        passed_over: passed_over.collect(),
    })
}

/// The program and the arguments in a command, which some clients take in one text.
fn split(command: &str) -> Result<(String, Vec<String>), String> {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let args: Vec<String> = words.map(str::to_owned).collect();
    let has_flag = args.first().is_some_and(|it| it.starts_with('-'));
    // The folders in the path of a program may have spaces in their names.
    let is_relative = program.starts_with("${") && program.contains('/');
    let is_path = is_relative && !has_flag && !is_token(command) || Path::new(command).is_file();
    if args.is_empty() || is_path {
        return Ok((command.to_owned(), Vec::new()));
    }
    let is_program = has_flag || !program.contains('/') || Path::new(program).is_file();
    let is_whole = |word: &str| word.matches("${").count() == word.matches('}').count();
    let is_of_shell = command.contains(['"', '\'', '\\', '`', '|', '&', ';', '<', '>'])
        || program.contains('=')
        || !command.split_whitespace().all(is_whole);
    if !is_program || is_of_shell {
        return Err(NO_PROGRAM.to_owned());
    }
    Ok((program.to_owned(), args))
}

/// A text that is equal for equal servers. Clients may have different limits of time for one.
pub fn identity(found: &Found) -> String {
    let mut secrets = Secrets::default();
    let Ok(mut ours) = convert(found, &mut secrets) else {
        return Value::from(found.entry.clone()).to_string();
    };
    if let Value::Object(entry) = &mut ours.entry {
        entry.retain(|key, _| key != "startTimeout" && key != "callTimeout");
    }
    let values = secrets.iter().map(|(name, it)| json!([name, it.value]));
    let values: Vec<Value> = values.collect();
    let identity = json!([ours.entry, values, ours.only, ours.without]);
    identity.to_string().replace("${env:", "${")
}

/// The entry in one line, in the form of `callgate.json` and without secrets.
pub fn shown(found: &Found) -> String {
    match convert(found, &mut Secrets::default()) {
        Ok(entry) => entry.entry.to_string(),
        Err(reason) => format!("will be left out: {reason}"),
    }
}

/// The value with references in Callgate's form, with numbers and booleans as texts, and without
/// `null` in objects.
fn texts(client: Client, value: Value) -> Value {
    match value {
        Value::String(text) => references(client, &usual::references(client, &text)).into(),
        Value::Array(array) => array.into_iter().map(|it| texts(client, it)).collect(),
        Value::Object(object) => {
            let members = object.into_iter().filter(|(_, it)| !it.is_null());
            members.map(|(key, it)| (key, texts(client, it))).collect()
        }
        other => other.to_string().into(),
    }
}

/// The text with its references to variables in Callgate's form.
fn references(client: Client, text: &str) -> String {
    let mut changed = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        changed += before;
        if let Some((reference, after)) = after.strip_prefix('{').and_then(|it| it.split_once('}'))
        {
            let default = reference.find(":-").unwrap_or(reference.len());
            let (name, default) = reference.split_at(default);
            let name = name.strip_prefix("env:").unwrap_or(name);
            // For `${input:token}`, VS Code asks a person; `${/}` is its separator of paths.
            changed += &if reference == "/" || variable(name) == name.to_uppercase() {
                format!("${{{reference}}}")
            } else {
                let name = name.rsplit(':').next().unwrap_or(name);
                format!("${{{}{default}}}", variable(name))
            };
            rest = after;
            continue;
        }
        rest = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let (name, _) = after.split_at(after.len() - rest.len());
        let is_name = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
        let is_variable = matches!(client, Client::Gemini | Client::Qwen) && is_name;
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
    use std::path::{Path, PathBuf};

    use callgate::config::foreign;

    use super::*;

    fn converted(client: Client, entry: &Value) -> Result<Entry, String> {
        let key = client.servers_key();
        let text = json!({ (key): { "cg": entry } }).to_string();
        let sections = foreign::read(Path::new("a.json"), &text, key, Path::new("/"));
        let server = sections.expect("a file").remove(0).servers.remove(0);
        let found = Found {
            client,
            file: PathBuf::new(),
            name: server.name,
            entry: server.entry,
            is_off: server.is_off,
            is_unapproved: false,
            project: None,
            also_in: Vec::new(),
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
    fn references_of_each_client_keep_their_text() {
        check(
            Client::Gemini,
            json!({ "command": "x", "args": ["$CG_A:$1 $", "--h", "Token $CG_B"],
                    "env": { "AUTH": "Basic $CG_C", "CG_D": "a/$CG_E/${CG_F:-2}" } }),
            &json!({ "command": "x", "args": ["${CG_A}:$1 $", "--h", "Token ${CG_B}"],
                     "env": { "AUTH": "Basic ${CG_C}", "CG_D": "a/${CG_E}/${CG_F:-2}" } }),
        );
        check(
            Client::VsCode,
            json!({ "url": "https://${input:cg-host:-a.example}/mcp",
                    "headers": { "X-Key": "v1 ${input:cg-key}" } }),
            &json!({ "url": "https://${CG_HOST:-a.example}/mcp",
                     "headers": { "X-Key": "v1 ${CG_KEY}" } }),
        );
    }

    #[test]
    fn command_with_arguments_is_split_or_refused() {
        check(
            Client::Cursor,
            json!({ "command": "uvx cg-server --api-key s3cret", "args": ["-v"] }),
            &json!({ "command": "uvx",
                     "args": ["cg-server", "--api-key", "${CG_API_KEY}", "-v"] }),
        );
        check(
            Client::Windsurf,
            json!({ "command": "/nonexistent/cg -p s3cret" }),
            &json!({ "command": "/nonexistent/cg", "args": ["-p", "${CG_P}"] }),
        );
        check(
            Client::Cursor,
            json!({ "command": "${workspaceFolder}/my tools/cg" }),
            &json!({ "command": "${workspaceFolder}/my tools/cg" }),
        );
        for command in [
            "/nonexistent/cg s3cret",
            "TOKEN=s3cret npx cg",
            "sh -c 'cg s3cret'",
        ] {
            let refused = converted(Client::Cursor, &json!({ "command": command }));
            let refused = refused.err().expect("a reason");
            assert!(refused.contains("\"args\""), "{refused}");
            assert!(!refused.contains("s3cret"), "{refused}");
        }
    }

    #[test]
    fn malformed_entry_is_refused_without_showing_values() {
        let entry = json!({ "command": "x", "args": "--token s3cret" });
        let refused = converted(Client::Cursor, &entry).err().expect("a reason");
        assert!(!refused.contains("s3cret"), "{refused}");
    }

    #[test]
    fn tool_lists_of_all_spellings_restrict_together() {
        let entry = json!({ "command": "x", "includeTools": ["a", "b"], "enabled_tools": ["b", "c"],
                            "excludeTools": ["d"], "disabledTools": ["e"] });
        let entry = converted(Client::Gemini, &entry).expect("a server");
        let tools = ["a", "b", "c", "d", "e"];
        let left_out = tools.map(|tool| entry.leaves_out(tool));
        assert_eq!(left_out, [true, false, true, true, true]);
        let malformed = json!({ "command": "x", "excludeTools": "a" });
        assert!(converted(Client::Gemini, &malformed).is_err());
    }
}
