//! Folders that Gemini CLI and Qwen Code do not trust: they ignore the project's settings there.

use std::path::Path;

use callgate::config::{MAX_BYTES, foreign};
use serde_json::Value;

use crate::clients::{Client, Folders};

/// A warning if the client ignores the entry that was written into the project.
pub fn warning(folders: &Folders, client: Client) -> Option<String> {
    let (own, command) = match client {
        Client::Gemini => ("~/.gemini", "gemini"),
        Client::Qwen => ("~/.qwen", "qwen"),
        _ => return None,
    };
    let read = |name: &str| {
        let file = folders.path(&format!("{own}/{name}"))?;
        let text = callgate_files::read_text(&file, MAX_BYTES).ok()?;
        foreign::value(&file, &text).ok()
    };
    let settings = read("settings.json").unwrap_or_default();
    let is_on = settings["security"]["folderTrust"]["enabled"].as_bool();
    // Gemini CLI trusts no folder by itself.
    if !is_on.unwrap_or(client == Client::Gemini) {
        return None;
    }
    let rules = read("trustedFolders.json").unwrap_or_default();
    if trusts(&rules, &folders.project) {
        return None;
    }
    let (name, file) = (client.name(), client.files().first()?);
    Some(format!(
        "{name} ignores {file} until you trust this folder: start {command} here, which asks, or \
         see {own}/trustedFolders.json"
    ))
}

/// True if the rule about the nearest folder is one that trusts.
fn trusts(rules: &Value, project: &Path) -> bool {
    let real = project
        .canonicalize()
        .unwrap_or_else(|_| project.to_owned());
    let rules = rules.as_object().into_iter().flatten();
    let rules = rules.filter_map(|(path, level)| {
        let path = Path::new(path);
        let (folder, trusts) = match level.as_str()? {
            "TRUST_FOLDER" => (path, true),
            "TRUST_PARENT" => (path.parent()?, true),
            "DO_NOT_TRUST" => (path, false),
            _ => return None,
        };
        let is_here = project.starts_with(folder) || real.starts_with(folder);
        is_here.then(|| (folder.components().count(), trusts))
    });
    rules.max().is_some_and(|(_, trusts)| trusts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rule_of_the_nearest_folder_decides() {
        for (rules, expected) in [
            (json!({}), false),
            (json!({ "/w": "TRUST_FOLDER" }), true),
            (json!({ "/w/other": "TRUST_PARENT" }), true),
            (json!({ "/w/a/b": "TRUST_FOLDER" }), false),
            (
                json!({ "/w": "TRUST_FOLDER", "/w/a": "DO_NOT_TRUST" }),
                false,
            ),
            (json!({ "/wx": "TRUST_FOLDER", "/w": 1 }), false),
            (json!([]), false),
        ] {
            assert_eq!(trusts(&rules, Path::new("/w/a")), expected, "{rules}");
        }
    }
}
