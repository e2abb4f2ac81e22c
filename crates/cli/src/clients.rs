//! The other MCP clients: where their configurations are, and the forms of these.

use std::path::{Path, PathBuf};

use callgate::config::MAX_BYTES;
use clap::ValueEnum;
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::Value;

/// A client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    ClaudeCode,
    ClaudeDesktop,
    #[value(name = "vscode")]
    VsCode,
    Cursor,
    Codex,
    Gemini,
    Windsurf,
    Zed,
}

/// The facts about a client.
pub struct Facts {
    /// Its name for people.
    pub name: &'static str,
    /// The key of its servers.
    pub key: &'static str,
    /// Its files, as [`Folders::path`] reads them. The first one is written to.
    pub files: &'static [&'static str],
    /// The `type` or `source` that it wants of an entry.
    pub kind: Option<(&'static str, &'static str)>,
}

impl Client {
    /// True if its entry goes into a file of the project.
    pub fn writes_to_project(self) -> bool {
        let first = self.facts().files.first();
        first.is_some_and(|file| file.starts_with('.'))
    }

    /// The one table of clients.
    pub fn facts(self) -> Facts {
        let (name, key, files): (_, _, &[&str]) = match self {
            Self::ClaudeCode => (
                "Claude Code",
                "mcpServers",
                &[
                    ".mcp.json",
                    "~/.claude.json",
                    ".claude/settings.local.json",
                    ".claude/settings.json",
                    "~/.claude/settings.json",
                ],
            ),
            Self::ClaudeDesktop => (
                "Claude Desktop",
                "mcpServers",
                &["APPLICATIONS/Claude/claude_desktop_config.json"],
            ),
            Self::VsCode => (
                "VS Code",
                "servers",
                &[
                    ".vscode/mcp.json",
                    "APPLICATIONS/Code/User/mcp.json",
                    "APPLICATIONS/Code/User/profiles/*/mcp.json",
                    "APPLICATIONS/Code - Insiders/User/mcp.json",
                    ".vscode/settings.json",
                    "APPLICATIONS/Code/User/settings.json",
                    "APPLICATIONS/Code/User/profiles/*/settings.json",
                    "APPLICATIONS/Code - Insiders/User/settings.json",
                ],
            ),
            Self::Cursor => (
                "Cursor",
                "mcpServers",
                &[".cursor/mcp.json", "~/.cursor/mcp.json"],
            ),
            Self::Codex => (
                "Codex",
                "mcp_servers",
                &["CODEX/config.toml", ".codex/config.toml"],
            ),
            Self::Gemini => (
                "Gemini CLI",
                "mcpServers",
                &[".gemini/settings.json", "~/.gemini/settings.json"],
            ),
            Self::Windsurf => (
                "Windsurf",
                "mcpServers",
                &["~/.codeium/windsurf/mcp_config.json"],
            ),
            Self::Zed => (
                "Zed",
                "context_servers",
                &["CONFIG/zed/settings.json", ".zed/settings.json"],
            ),
        };
        Facts {
            name,
            key,
            files,
            kind: match self {
                Self::VsCode | Self::ClaudeCode => Some(("type", "stdio")),
                Self::Zed => Some(("source", "custom")),
                _ => None,
            },
        }
    }
}

/// The folders of this user and project.
pub struct Folders {
    pub project: PathBuf,
    home: Option<PathBuf>,
}

impl Folders {
    /// The folders of a project and of the user that the environment names.
    pub fn of(project: PathBuf) -> Self {
        let home = variable("HOME").or_else(|| variable("USERPROFILE"));
        Self { project, home }
    }

    /// The place of a path, which is in the project, or begins with another folder: `~`, `CODEX`,
    /// `CONFIG`, or `APPLICATIONS`. `None` if the system does not say where that is.
    pub fn path(&self, path: &str) -> Option<PathBuf> {
        let home = |below: &str| self.home.as_ref().map(|home| home.join(below));
        let roaming = || variable("APPDATA").filter(|_| cfg!(windows));
        let config = || {
            let named = roaming().or_else(|| variable("XDG_CONFIG_HOME"));
            named.or_else(|| home(".config"))
        };
        let (base, below) = path.split_once('/').unwrap_or_default();
        let base = match base {
            "~" => home(""),
            "CODEX" => variable("CODEX_HOME").or_else(|| home(".codex")),
            "APPLICATIONS" if cfg!(target_os = "macos") => home("Library/Application Support"),
            "APPLICATIONS" | "CONFIG" => config(),
            _ => return Some(self.project.join(path)),
        };
        Some(base?.join(below))
    }

    /// The files of a client that exist, also those that turn out not to be files.
    pub fn files(&self, client: Client) -> Vec<PathBuf> {
        let files = client.facts().files.iter();
        let paths = files.filter_map(|path| self.path(path));
        let mut found: Vec<PathBuf> = paths.flat_map(|path| expanded(&path)).collect();
        found.retain(|path| path.symlink_metadata().is_ok());
        found.dedup();
        found
    }

    /// True for a file that lies in the project, so that another author may have written it.
    pub fn is_of_project(&self, file: &Path) -> bool {
        file.starts_with(&self.project) && self.home.as_ref() != Some(&self.project)
    }

    /// A path as people write it.
    pub fn shown(&self, path: &Path) -> String {
        let in_home = self
            .home
            .as_ref()
            .and_then(|home| path.strip_prefix(home).ok());
        match (path.strip_prefix(&self.project), in_home) {
            (Ok(path), _) => path.display().to_string(),
            (_, Some(path)) => format!("~/{}", path.display()),
            _ => path.display().to_string(),
        }
    }
}

/// The absolute path that a variable names.
fn variable(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(name)?);
    path.is_absolute().then_some(path)
}

/// The path, with each folder that its `*` may stand for.
fn expanded(path: &Path) -> Vec<PathBuf> {
    let text = path.display().to_string();
    let Some((before, after)) = text.split_once("/*/") else {
        return vec![path.to_owned()];
    };
    let entries = std::fs::read_dir(before).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path().join(after)).collect();
    paths.sort();
    paths
}

/// The contents of a client's file, of JSON with comments or TOML.
pub fn read(file: &Path) -> anyhow::Result<Value> {
    let text = callgate_files::read_text(file, MAX_BYTES)?;
    let text = text.trim_start_matches('\u{feff}');
    if file.extension().is_some_and(|it| it == "toml") {
        let document: toml_edit::DocumentMut = text.parse()?;
        return Ok(of_toml(document.as_item()));
    }
    Ok(parse_to_serde_value(text, &ParseOptions::default())?)
}

/// A TOML value as JSON.
pub fn of_toml(item: &toml_edit::Item) -> Value {
    use toml_edit::Value as Toml;
    if let Some(table) = item.as_table_like() {
        let members = table
            .iter()
            .map(|(key, item)| (key.to_owned(), of_toml(item)));
        return Value::Object(members.collect());
    }
    let of_value = |value: &Toml| of_toml(&toml_edit::Item::Value(value.clone()));
    match item.as_value() {
        Some(Toml::String(text)) => text.value().as_str().into(),
        Some(Toml::Integer(number)) => (*number.value()).into(),
        Some(Toml::Float(number)) => (*number.value()).into(),
        Some(Toml::Boolean(boolean)) => (*boolean.value()).into(),
        Some(Toml::Array(array)) => array.iter().map(of_value).collect(),
        _ => Value::Null,
    }
}

/// The servers of a project's `.mcp.json` that the person has turned down in Claude Code, and why
/// some of its files could not be read.
pub fn refused_in_claude_code(project: PathBuf) -> (Vec<String>, Vec<String>) {
    let folders = Folders::of(project);
    let (mut refused, mut unread) = (Vec::new(), Vec::new());
    for file in folders.files(Client::ClaudeCode) {
        let root = match read(&file) {
            Ok(root) => root,
            Err(error) => {
                unread.push(format!("{}: {error:#}", folders.shown(&file)));
                continue;
            }
        };
        let projects = root["projects"].as_object().into_iter().flatten();
        let these = projects.filter(|(folder, _)| folders.project.starts_with(folder));
        let settings = these.map(|(_, settings)| settings).chain([&root]);
        let lists = settings.filter_map(|it| it["disabledMcpjsonServers"].as_array());
        let names = lists.flatten().filter_map(Value::as_str);
        refused.extend(names.map(str::to_owned));
    }
    (refused, unread)
}
