//! The other MCP clients: their configuration files, and where these are.

use std::path::{Path, PathBuf};

use callgate::config::MAX_BYTES;
use callgate::config::foreign;
use callgate::config::foreign::{OffSwitch, Section};
use clap::ValueEnum;
use serde_json::{Map, Value, json};

/// An MCP client whose configuration Callgate can read and change.
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
    Copilot,
    #[value(name = "opencode")]
    OpenCode,
    Qwen,
    Cline,
    Continue,
    Vibe,
}

/// The advice for a client that cannot ask its user.
pub const ALLOW_FIRST: &str = "answer in `callgate questions`, or allow them in permissions.allow";

/// The folders of a person, with which a path in [`Client::files`] may start.
const FOLDERS: [&str; 4] = ["~", "CODEX", "APPLICATIONS", "CONFIG"];

impl Client {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::VsCode => "VS Code",
            Self::Cursor => "Cursor",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::Copilot => "Copilot CLI",
            Self::OpenCode => "OpenCode",
            Self::Qwen => "Qwen Code",
            Self::Cline => "Cline",
            Self::Continue => "Continue",
            Self::Vibe => "Mistral Vibe",
        }
    }

    /// The key of its servers.
    pub fn servers_key(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Codex | Self::Vibe => "mcp_servers",
            Self::Zed => "context_servers",
            Self::OpenCode => "mcp",
            _ => "mcpServers",
        }
    }

    /// The entry of a program, in the client's own form. An entry in a list has its name.
    pub fn entry(self, name: &str, command: &str, args: &[&str]) -> Map<String, Value> {
        let entry = match self {
            Self::VsCode | Self::ClaudeCode => {
                json!({ "type": "stdio", "command": command, "args": args })
            }
            Self::Zed => json!({ "source": "custom", "command": command, "args": args }),
            Self::Copilot => {
                json!({ "type": "local", "command": command, "args": args, "tools": ["*"] })
            }
            Self::OpenCode => {
                let command = [&[command][..], args].concat();
                json!({ "type": "local", "command": command, "enabled": true })
            }
            Self::Vibe => {
                json!({ "name": name, "transport": "stdio", "command": command, "args": args })
            }
            Self::Continue => json!({ "name": name, "command": command, "args": args }),
            _ => json!({ "command": command, "args": args }),
        };
        match entry {
            Value::Object(entry) => entry,
            _ => Map::new(),
        }
    }

    /// The way to turn a server off, and the file for it unless that is the server's own.
    pub fn off_switch(self) -> Option<(OffSwitch, Option<&'static str>)> {
        let list = |keys, file| Some((OffSwitch::List(keys), Some(file)));
        match self {
            Self::ClaudeCode => list(&["disabledMcpjsonServers"], ".claude/settings.local.json"),
            Self::Copilot => list(&["disabledMcpServers"], "~/.copilot/settings.json"),
            Self::Gemini => list(&["mcp", "excluded"], ".gemini/settings.json"),
            Self::Qwen => list(&["mcp", "excluded"], ".qwen/settings.json"),
            Self::Codex | Self::OpenCode => Some((OffSwitch::Member("enabled", false), None)),
            Self::Windsurf | Self::Cline | Self::Vibe => {
                Some((OffSwitch::Member("disabled", true), None))
            }
            Self::ClaudeDesktop | Self::VsCode | Self::Cursor | Self::Zed | Self::Continue => None,
        }
    }

    /// True if a desktop starts it, which has a `PATH` other than a shell's.
    pub fn is_desktop_program(self) -> bool {
        matches!(self, Self::ClaudeDesktop | Self::Windsurf | Self::Zed)
    }

    /// The sentence about a client without MCP elicitation. [`ALLOW_FIRST`] is the advice.
    pub fn cannot_ask(self) -> Option<String> {
        let cannot = matches!(
            self,
            Self::Gemini | Self::OpenCode | Self::Qwen | Self::Cline | Self::Continue | Self::Vibe
        );
        cannot.then(|| {
            format!(
                "{} cannot ask you during a call: runs wait at calls that need approval",
                self.name()
            )
        })
    }

    /// True if its model has a shell of the person's account, and so could answer questions.
    pub fn has_shell(self) -> bool {
        self != Self::ClaudeDesktop
    }

    /// Its files, in the form that [`Folders::path`] takes. `init` writes to the first one.
    pub fn files(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &[
                ".mcp.json",
                "~/.claude.json",
                ".claude/settings.local.json",
                ".claude/settings.json",
                "~/.claude/settings.json",
            ],
            Self::ClaudeDesktop => &["APPLICATIONS/Claude/claude_desktop_config.json"],
            Self::VsCode => &[
                ".vscode/mcp.json",
                "APPLICATIONS/Code/User/mcp.json",
                "APPLICATIONS/Code/User/profiles/*/mcp.json",
                "APPLICATIONS/Code - Insiders/User/mcp.json",
                ".vscode/settings.json",
                "APPLICATIONS/Code/User/settings.json",
                "APPLICATIONS/Code/User/profiles/*/settings.json",
                "APPLICATIONS/Code - Insiders/User/settings.json",
            ],
            Self::Cursor => &[".cursor/mcp.json", "~/.cursor/mcp.json"],
            Self::Codex => &["CODEX/config.toml", ".codex/config.toml"],
            Self::Gemini => &[".gemini/settings.json", "~/.gemini/settings.json"],
            Self::Windsurf => &["~/.codeium/windsurf/mcp_config.json"],
            Self::Zed => &["CONFIG/zed/settings.json", ".zed/settings.json"],
            Self::Copilot => &["~/.copilot/mcp-config.json", "~/.copilot/settings.json"],
            Self::OpenCode => &[
                "opencode.json",
                "opencode.jsonc",
                ".opencode/opencode.json",
                ".opencode/opencode.jsonc",
                "CONFIG/opencode/opencode.json",
                "CONFIG/opencode/opencode.jsonc",
            ],
            Self::Qwen => &[".qwen/settings.json", "~/.qwen/settings.json"],
            Self::Cline => &[
                "~/.cline/data/settings/cline_mcp_settings.json",
                "APPLICATIONS/Code/User/globalStorage/saoudrizwan.claude-dev/settings/\
                 cline_mcp_settings.json",
            ],
            Self::Continue => &["~/.continue/config.yaml"],
            Self::Vibe => &["~/.vibe/config.toml", ".vibe/config.toml"],
        }
    }

    /// True if its entry goes into a file of the project.
    pub fn writes_to_project(self) -> bool {
        let is_own = |file: &str| {
            let (folder, _) = file.split_once('/').unwrap_or_default();
            FOLDERS.contains(&folder)
        };
        self.files().first().is_some_and(|file| !is_own(file))
    }
}

/// The folders of this user and project.
pub struct Folders {
    pub project: PathBuf,
    home: Option<PathBuf>,
}

impl Folders {
    /// The folders of a project and of this process's user.
    pub fn of(project: PathBuf) -> Self {
        Self {
            project,
            home: variable("HOME"),
        }
    }

    /// The absolute path for a path in the project, or for one that starts with `~`, `CODEX`,
    /// `CONFIG` or `APPLICATIONS`. `None` if the environment does not say where that folder is.
    pub fn path(&self, path: &str) -> Option<PathBuf> {
        let home = |below: &str| self.home.as_ref().map(|home| home.join(below));
        let (base, below) = path.split_once('/').unwrap_or_default();
        let base = match base {
            "~" => home(""),
            "CODEX" => variable("CODEX_HOME").or_else(|| home(".codex")),
            "APPLICATIONS" if cfg!(target_os = "macos") => home("Library/Application Support"),
            "APPLICATIONS" | "CONFIG" => variable("XDG_CONFIG_HOME").or_else(|| home(".config")),
            _ => return Some(self.project.join(path)),
        };
        Some(base?.join(below))
    }

    /// The existing files of a client. Folders and broken links are among them.
    pub fn files(&self, client: Client) -> Vec<PathBuf> {
        let files = client.files().iter();
        let paths = files.filter_map(|path| self.path(path));
        let mut found: Vec<PathBuf> = paths.flat_map(|path| expanded(&path)).collect();
        found.retain(|path| path.symlink_metadata().is_ok());
        found.dedup();
        found
    }

    /// The file that `init` writes the entry to: the first one, but for Cline the first that
    /// exists. `None` if the environment does not say where it is.
    pub fn target(&self, client: Client) -> Option<PathBuf> {
        let existing = self.files(client).into_iter().next();
        let existing = existing.filter(|_| client == Client::Cline);
        existing.or_else(|| self.path(client.files().first()?))
    }

    /// True if a file of the client starts Callgate.
    pub fn has_callgate(&self, client: Client) -> bool {
        let files = self.files(client).into_iter();
        let sections = files.filter_map(|file| self.sections(client, &file).ok());
        let mut servers = sections.flatten().flat_map(|section| section.servers);
        servers.any(|server| is_callgate(&server.entry))
    }

    /// Reads the settings about servers in a file of a client.
    pub fn sections(&self, client: Client, file: &Path) -> anyhow::Result<Vec<Section>> {
        let text = callgate_files::read_text(file, MAX_BYTES)?;
        let key = client.servers_key();
        Ok(foreign::read(file, &text, key, &self.project)?)
    }

    /// True if a file lies in the project, so that another author may have written it.
    pub fn is_of_project(&self, file: &Path) -> bool {
        file.starts_with(&self.project) && self.home.as_ref() != Some(&self.project)
    }

    /// A path for people and for settings: from the project's folder, or with `~`.
    pub fn shown(&self, path: &Path) -> String {
        if self.is_of_project(path)
            && let Ok(below) = path.strip_prefix(&self.project)
        {
            return below.display().to_string();
        }
        let home = self.home.as_ref();
        match home.and_then(|home| path.strip_prefix(home).ok()) {
            Some(below) => format!("~/{}", below.display()),
            None => path.display().to_string(),
        }
    }
}

/// True if an entry starts Callgate itself.
pub fn is_callgate(entry: &Map<String, Value>) -> bool {
    let args = entry.get("args").and_then(Value::as_array);
    let words = entry
        .get("command")
        .into_iter()
        .chain(args.into_iter().flatten());
    let words: Vec<&Path> = words.filter_map(Value::as_str).map(Path::new).collect();
    let is_ours = |word: &&Path| word.file_stem().is_some_and(|it| it == "callgate");
    words.iter().any(is_ours) && words.contains(&Path::new("serve"))
}

/// The path in an environment variable, if it is absolute.
fn variable(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(name)?);
    path.is_absolute().then_some(path)
}

/// The path, with its `*` replaced by each folder that exists.
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
