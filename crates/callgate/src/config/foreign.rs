//! Files of other clients: which they are, what their keys mean here, and what turns a server off.
//!
//! In such a file, a key that only others know is a warning, and a mistake in the entry of a
//! server costs that server alone.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use jsonc_parser::ast::{BooleanLit, ObjectProp, ObjectPropName, Value, WordLit};
use jsonc_parser::common::{Range, Ranged as _};

use super::expand::plain;
use super::tree::get;

/// The most characters of a server's description.
pub(super) const MAX_DESCRIPTION: usize = 200;

/// True if other clients use this file, too.
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
    ".qwen",
    ".roo",
    ".trae",
    ".vscode",
    ".windsurf",
    ".zed",
];

/// The folder of the project that a file is for: its own, or for the file of an editor, such as
/// `.vscode/mcp.json`, the one above that of the editor.
pub(super) fn project_folder(file: &Path) -> PathBuf {
    let own = file.parent().unwrap_or(file);
    let folder = plain(own);
    let is_client = |folder: &&Path| {
        let name = folder.file_name().unwrap_or_default();
        CLIENT_FOLDERS.iter().any(|client| name == *client)
    };
    // Some clients have a folder of settings within theirs.
    let client = folder.ancestors().take(2).find(is_client);
    match client.and_then(Path::parent) {
        Some(project) if is_shared(file) => project.to_owned(),
        _ => own.to_owned(),
    }
}

/// Gives the entries of servers the keys that Callgate has for what other clients write, and turns
/// off the servers that the file turns off for its own client. Returns the sections that are
/// another client's, though they have names of ours: their places, and messages about them.
pub(super) fn adopt(root: &mut Value<'_>, file: &Path) -> Vec<(usize, String)> {
    let Value::Object(root) = root else {
        return Vec::new();
    };
    let mut passed_over = Vec::new();
    let (mut off, mut only) = (HashSet::new(), None);
    root.properties.retain(|member| {
        let name = member.name.as_str();
        let is_settings = file.ends_with("settings.json");
        if name == "sandbox" || (name == "tools" && is_settings) {
            // Besides, no file that others share weakens the sandbox.
            let message = format!(
                "\"{name}\" in the file is another client's; write Callgate's own into a \
                 callgate.json"
            );
            passed_over.push((member.range.start, message));
            return false;
        }
        let value = &member.value;
        let (turned_off, allowed) = match name.to_ascii_lowercase().as_str() {
            "disabledmcpjsonservers" | "disabledmcpservers" | "excludemcpservers" => {
                (Some(value), None)
            }
            "allowmcpservers" => (None, Some(value)),
            "mcp" => (get(value, "excluded"), get(value, "allowed")),
            _ => (None, None),
        };
        off.extend(turned_off.into_iter().flat_map(texts));
        only = allowed.map(texts).or(only.take());
        turned_off.is_none() && allowed.is_none()
    });
    let sections = root.properties.iter_mut();
    for section in sections.filter(|it| matches!(it.name.as_str(), "mcpServers" | "servers")) {
        let Value::Object(servers) = &mut section.value else {
            continue;
        };
        for server in &mut servers.properties {
            let name = server.name.as_str();
            let is_off = off.contains(name)
                || only
                    .as_ref()
                    .is_some_and(|only| !only.iter().any(|it| it == name));
            adopt_entry(server, is_off);
        }
    }
    passed_over
}

fn texts(array: &Value<'_>) -> Vec<String> {
    let elements = array.as_array().map_or(&[][..], |array| &array.elements);
    let texts = elements.iter().filter_map(Value::as_string_lit);
    texts.map(|text| text.value.to_string()).collect()
}

fn adopt_entry(server: &mut ObjectProp<'_>, is_off: bool) {
    let Value::Object(entry) = &mut server.value else {
        return;
    };
    let is_true = |value: &Value<'_>| match value {
        Value::BooleanLit(boolean) => boolean.value,
        Value::StringLit(text) => text.value.eq_ignore_ascii_case("true"),
        _ => false,
    };
    let mut is_off = is_off;
    entry.properties.retain_mut(|member| {
        let (key, value) = (member.name.as_str(), &mut member.value);
        let is_null = matches!(value, Value::NullKeyword(_));
        match key.to_ascii_lowercase().as_str() {
            "disabled" | "disable" | "isdisabled" if is_true(value) => is_off = true,
            "enabled" | "enable" | "isenabled" | "active" | "isactive" => {
                is_off |= !is_true(value) && !is_null;
                return false;
            }
            // Others write more than a line.
            "description" => return shorten(value),
            _ => {}
        }
        true
    });
    if is_off {
        let range = server.range;
        entry
            .properties
            .retain(|member| member.name.as_str() == "labels");
        entry.properties.push(ObjectProp {
            range,
            name: key(range, "disabled"),
            value: Value::BooleanLit(BooleanLit { range, value: true }),
        });
        return;
    }
    for (theirs, ours) in SYNONYMS.iter().filter(|(_, ours)| *ours != "account") {
        let has_ours = entry.get(ours).is_some();
        let mut members = entry.properties.iter_mut();
        if let Some(member) = members.find(|it| !has_ours && it.name.as_str() == *theirs) {
            member.name = key(member.name.range(), ours);
        }
    }
}

fn key(range: Range, value: &'static str) -> ObjectPropName<'static> {
    ObjectPropName::Word(WordLit { range, value })
}

/// Makes a description one line that is not too long. Returns whether there is anything of it.
fn shorten(value: &mut Value<'_>) -> bool {
    let Value::StringLit(text) = value else {
        return false;
    };
    let words: Vec<&str> = text.value.split_whitespace().collect();
    let line = words.join(" ").replace(char::is_control, "");
    text.value = Cow::Owned(line.chars().take(MAX_DESCRIPTION).collect());
    !text.value.trim().is_empty()
}

/// Keys that stop something. A misspelling of one must not be passed over.
pub(super) const RESTRAINTS: &[&str] = &["disabled", "labels"];

/// Keys of other clients: a key of ours in the same object, theirs, and the advice.
pub(super) const OTHER_CLIENTS: &[(&str, &str, &str)] = &[
    ("mcpServers", "inputs", "write \"${NAME}\""),
    ("callTimeout", "alwaysAllow", ALLOW),
    ("callTimeout", "autoApprove", ALLOW),
    ("callTimeout", "disabledTools", DENY),
    ("callTimeout", "enabled", "write \"disabled\": true"),
    ("callTimeout", "enabledTools", ALLOW),
    ("callTimeout", "envFile", "write \"env\""),
    ("callTimeout", "excludeTools", DENY),
    ("callTimeout", "includeTools", ALLOW),
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

/// Keys of other programs for something that has a key here, too different to be found by likeness.
pub(super) const SYNONYMS: &[(&str, &str)] = &[
    ("cmd", "command"),
    ("environment", "env"),
    ("httpUrl", "url"),
    ("http_headers", "headers"),
    ("serverUrl", "url"),
    ("transport", "type"),
    ("transportType", "type"),
    ("user", "account"),
    ("username", "account"),
    ("workingDirectory", "cwd"),
    ("working_directory", "cwd"),
];
