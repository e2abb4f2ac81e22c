//! Files of other clients: what their keys mean here, which servers they turn off, and edits.
//!
//! `adopt` serves the configuration reader: in a file that other clients share, an unknown key is a
//! warning, and a mistake in the entry of a server costs that server alone. `read` and `patch`
//! serve `callgate init`. Both readers use the same tables and rules.

mod error;
mod listed;
mod patch;
mod read;

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use jsonc_parser::ast::{Array, BooleanLit, Object, ObjectProp, ObjectPropName, Value, WordLit};
use jsonc_parser::common::{Range, Ranged as _};

use super::expand::plain;

pub use error::ForeignError;
pub use patch::{OffSwitch, patch, turn_off};
pub use read::{ForeignServer, Section, is_yaml, read, value};

/// The maximum number of characters in a server's description.
pub(super) const MAX_DESCRIPTION: usize = 200;

/// True if the file may belong to other clients.
pub(super) fn is_shared(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    !name.to_string_lossy().contains("callgate")
}

/// Folders in which editors and other clients keep the settings of a project.
const CLIENT_FOLDERS: &[&str] = &[
    ".amazonq",
    ".claude",
    ".codeium",
    ".continue",
    ".copilot",
    ".cursor",
    ".gemini",
    ".github",
    ".idea",
    ".junie",
    ".kiro",
    ".opencode",
    ".qwen",
    ".roo",
    ".trae",
    ".vibe",
    ".vscode",
    ".windsurf",
    ".zed",
];

/// The folder of the project that a file is for: the file's own, or the folder above that of a
/// client, such as `.vscode`.
pub(super) fn project_folder(file: &Path) -> PathBuf {
    let own = file.parent().unwrap_or(file);
    let folder = plain(own);
    let is_client = |folder: &&Path| {
        let name = folder.file_name().unwrap_or_default();
        CLIENT_FOLDERS.iter().any(|client| name == *client)
    };
    // Some clients have a folder of settings in their folder.
    let client = folder.ancestors().take(2).find(is_client);
    match client.and_then(Path::parent) {
        Some(project) if is_shared(file) => project.to_owned(),
        _ => own.to_owned(),
    }
}

/// Rewrites a shared file's tree: gives the entries of servers Callgate's keys, and disables the
/// servers that the file turns off for its own client. Returns the places of sections that have a
/// name of Callgate's but belong to the other client, with messages about them.
pub(super) fn adopt(root: &mut Value<'_>, file: &Path) -> Vec<(usize, String)> {
    let Value::Object(root) = root else {
        return Vec::new();
    };
    let is_settings = file.ends_with("settings.json");
    let (mut passed_over, mut lists) = (Vec::new(), ServerLists::default());
    root.properties.retain(|member| {
        let name = member.name.as_str();
        if name == "sandbox" || (name == "tools" && is_settings) {
            // A file that other clients share must not weaken the sandbox.
            let message = format!(
                "\"{name}\" in the file is another client's; write Callgate's own into a \
                 callgate.json"
            );
            passed_over.push((member.range.start, message));
            return false;
        }
        !lists.add(member)
    });
    let sections = root.properties.iter_mut();
    for section in sections.filter(|it| matches!(it.name.as_str(), "mcpServers" | "servers")) {
        let Value::Object(servers) = &mut section.value else {
            continue;
        };
        for server in &mut servers.properties {
            let is_listed = lists.is_off(server.name.as_str());
            if let Value::Object(entry) = &mut server.value
                && (adopt_entry(entry) || is_listed)
            {
                disable(entry, server.range);
            }
        }
    }
    passed_over
}

/// The lists in a client's settings that turn servers off.
#[derive(Default)]
struct ServerLists {
    off: HashSet<String>,
    /// Lists of the only servers in use.
    only: Vec<Vec<String>>,
}

impl ServerLists {
    /// Adds a member of the settings. Returns whether the member is such a list.
    fn add(&mut self, member: &ObjectProp<'_>) -> bool {
        let value = &member.value;
        let (off, only) = match member.name.as_str().to_ascii_lowercase().as_str() {
            "disabledmcpjsonservers" | "disabledmcpservers" | "excludemcpservers" => {
                (vec![value], Vec::new())
            }
            "allowmcpservers" => (Vec::new(), vec![value]),
            "mcp" => (all(value, "excluded"), all(value, "allowed")),
            _ => return false,
        };
        let is_list = !off.is_empty() || !only.is_empty();
        self.off.extend(off.into_iter().flat_map(texts));
        self.only.extend(only.into_iter().map(texts));
        is_list
    }

    /// True if one of the lists turns this server off.
    fn is_off(&self, server: &str) -> bool {
        let is_in = |list: &Vec<String>| list.iter().any(|it| it == server);
        self.off.contains(server) || !self.only.iter().all(is_in)
    }
}

/// The members of an object. Other values have none.
fn members<'v, 'a>(value: &'v Value<'a>) -> &'v [ObjectProp<'a>] {
    value
        .as_object()
        .map_or(&[][..], |object| &object.properties)
}

/// The values of all members with this name.
fn all<'v, 'a>(value: &'v Value<'a>, name: &str) -> Vec<&'v Value<'a>> {
    let named = members(value).iter().filter(|it| it.name.as_str() == name);
    named.map(|it| &it.value).collect()
}

/// The strings in an array. Other values have none.
fn texts(array: &Value<'_>) -> Vec<String> {
    let elements = array.as_array().map_or(&[][..], |array| &array.elements);
    let texts = elements.iter().filter_map(Value::as_string_lit);
    texts.map(|text| text.value.to_string()).collect()
}

/// Gives the entry of a server Callgate's keys for those of other clients, and removes the keys
/// that turn it on. Returns whether the entry turns the server off.
fn adopt_entry(entry: &mut Object<'_>) -> bool {
    flatten_command(entry);
    let mut is_off = false;
    entry.properties.retain_mut(|member| {
        let (key, value) = (member.name.as_str(), &mut member.value);
        match key.to_ascii_lowercase().as_str() {
            "enabled" | "enable" | "isenabled" | "active" | "isactive" => {
                is_off |= !is_boolean(value, true) && !is_null(value);
                false
            }
            // Other clients allow more than one line.
            "description" => shorten(value),
            key => {
                is_off |= is_off_switch(key) && is_boolean(value, true);
                true
            }
        }
    });
    for (theirs, ours) in SYNONYMS.iter().filter(|(_, ours)| *ours != "account") {
        let Some(mut member) = entry.take(theirs) else {
            continue;
        };
        // Beside such a key, `url` is the address of the deprecated transport.
        if *ours == "url" && !is_null(&member.value) {
            entry.properties.retain(|it| it.name.as_str() != "url");
        }
        if entry.get(ours).is_none() {
            member.name = key(member.name.range(), ours);
        }
        entry.properties.push(member);
    }
    is_off
}

/// Moves program, arguments and environment out of an object under `command`, as Zed once wrote
/// them, into the entry. In a list, as OpenCode has it, the program is the first element.
fn flatten_command(entry: &mut Object<'_>) {
    split_command(entry);
    let is_known = |it: &ObjectProp<'_>| matches!(it.name.as_str(), "path" | "args" | "env");
    let command = entry.get_object("command");
    if !command.is_some_and(|command| command.properties.iter().all(is_known)) {
        return;
    }
    let command = entry.take_object("command");
    for mut member in command.into_iter().flat_map(|command| command.properties) {
        if member.name.as_str() == "path" {
            member.name = key(member.name.range(), "command");
        }
        entry.properties.push(member);
    }
}

/// Makes `command` and `args` of a list under `command`.
fn split_command(entry: &mut Object<'_>) {
    let is_empty = |words: &Array<'_>| words.elements.is_empty();
    if entry.get_array("command").is_none_or(is_empty) {
        return;
    }
    let Some(mut words) = entry.take_array("command") else {
        return;
    };
    let range = words.range;
    let program = words.elements.remove(0);
    if let Some(args) = entry.take_array("args") {
        words.elements.extend(args.elements);
    }
    for (name, value) in [("command", program), ("args", Value::Array(words))] {
        entry.properties.push(ObjectProp {
            range,
            name: key(range, name),
            value,
        });
    }
}

/// Turns an entry into that of a disabled server.
fn disable(entry: &mut Object<'_>, range: Range) {
    entry
        .properties
        .retain(|member| member.name.as_str() == "labels");
    entry.properties.push(ObjectProp {
        range,
        name: key(range, "disabled"),
        value: Value::BooleanLit(BooleanLit { range, value: true }),
    });
}

/// True for the keys, in lower case, with which clients turn a server off.
fn is_off_switch(key: &str) -> bool {
    matches!(key, "disabled" | "disable" | "isdisabled")
}

/// True if a value is this boolean, or its text.
fn is_boolean(value: &Value<'_>, wanted: bool) -> bool {
    match value {
        Value::BooleanLit(boolean) => boolean.value == wanted,
        Value::StringLit(text) => text.value.eq_ignore_ascii_case(&wanted.to_string()),
        _ => false,
    }
}

fn is_null(value: &Value<'_>) -> bool {
    matches!(value, Value::NullKeyword(_))
}

fn key(range: Range, value: &'static str) -> ObjectPropName<'static> {
    ObjectPropName::Word(WordLit { range, value })
}

/// Makes a description one short line. Returns false if it is empty or not a string.
fn shorten(value: &mut Value<'_>) -> bool {
    let Value::StringLit(text) = value else {
        return false;
    };
    let words: Vec<&str> = text.value.split_whitespace().collect();
    let line = words.join(" ").replace(char::is_control, "");
    text.value = Cow::Owned(line.chars().take(MAX_DESCRIPTION).collect());
    !text.value.trim().is_empty()
}

/// Keys that restrain a server. A misspelling of one is an error, even in a shared file.
pub(super) const RESTRAINTS: &[&str] = &["disabled", "labels"];

/// Keys of other clients: a key of ours in the same object, theirs, and the advice.
pub(super) const OTHER_CLIENTS: &[(&str, &str, &str)] = &[
    ("mcpServers", "inputs", "write \"${NAME}\""),
    ("callTimeout", "alwaysAllow", ALLOW),
    ("callTimeout", "autoApprove", ALLOW),
    ("callTimeout", "disabledTools", DENY),
    ("callTimeout", "disabled_tools", DENY),
    ("callTimeout", "enabled", "write \"disabled\": true"),
    ("callTimeout", "enabledTools", ONLY),
    ("callTimeout", "enabled_tools", ONLY),
    ("callTimeout", "envFile", "write \"env\""),
    ("callTimeout", "excludeTools", DENY),
    ("callTimeout", "includeTools", ONLY),
    ("callTimeout", "name", "the server's key is its name"),
    ("callTimeout", "timeout", "write \"callTimeout\""),
    ("callTimeout", "tools", ALLOW),
    ("callTimeout", "trust", "write \"trusted\""),
    ("redirectPort", "callbackPort", "write \"redirectPort\""),
    ("allowedHosts", "port", "write \"address\""),
    ("allowedHosts", "tls", "see docs/http.md"),
    ("audience", "clientId", "clients bring tokens"),
];
const ALLOW: &str = "write the tools under \"permissions\", \"allow\"";
const DENY: &str = "write the tools under \"permissions\", \"deny\"";
const ONLY: &str = "write the other tools under \"permissions\", \"deny\"";

/// The keys that list the only tools in use, or else the tools that are not in use.
pub fn tool_keys(are_in_use: bool) -> impl Iterator<Item = &'static str> {
    let wanted = if are_in_use { ONLY } else { DENY };
    let keys = OTHER_CLIENTS.iter().filter(move |(.., it)| *it == wanted);
    keys.map(|(_, key, _)| *key)
}

/// Keys of other programs, and Callgate's keys for the same thing, where the names differ too much
/// to be found by likeness. If an entry has several keys for `url`, the last one in this table
/// counts; for other keys, Callgate's own counts.
pub(super) const SYNONYMS: &[(&str, &str)] = &[
    ("cmd", "command"),
    ("environment", "env"),
    ("http_headers", "headers"),
    ("serverUrl", "url"),
    ("httpUrl", "url"),
    ("transport", "type"),
    ("transportType", "type"),
    ("user", "account"),
    ("username", "account"),
    ("workingDirectory", "cwd"),
    ("working_directory", "cwd"),
];

/// The type of a value, for a message.
pub(super) fn type_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::StringLit(_) => "a string",
        Value::NumberLit(_) => "a number",
        Value::BooleanLit(_) => "a boolean",
        Value::Object(_) => "an object",
        Value::Array(_) => "an array",
        Value::NullKeyword(_) => "null",
    }
}
