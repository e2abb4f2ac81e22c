//! The other MCP clients: their configuration files, and where these are.

use std::path::{Path, PathBuf};

use callgate::config::MAX_BYTES;
use callgate::config::foreign;
use callgate::config::foreign::Section;
use clap::ValueEnum;

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
}

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
        }
    }

    /// The key of its servers.
    pub fn servers_key(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Codex => "mcp_servers",
            Self::Zed => "context_servers",
            _ => "mcpServers",
        }
    }

    /// The member that marks an entry as one for a program.
    pub fn entry_kind(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::VsCode | Self::ClaudeCode => Some(("type", "stdio")),
            Self::Zed => Some(("source", "custom")),
            _ => None,
        }
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
        }
    }

    /// True if its entry goes into a file of the project.
    pub fn writes_to_project(self) -> bool {
        let first = self.files().first();
        first.is_some_and(|file| file.starts_with('.'))
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
        let home = variable("HOME").or_else(|| variable("USERPROFILE"));
        Self { project, home }
    }

    /// The absolute path for a path in the project, or for one that starts with `~`, `CODEX`,
    /// `CONFIG` or `APPLICATIONS`. `None` if the environment does not say where that folder is.
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

    /// The existing files of a client. Folders and broken links are among them.
    pub fn files(&self, client: Client) -> Vec<PathBuf> {
        let files = client.files().iter();
        let paths = files.filter_map(|path| self.path(path));
        let mut found: Vec<PathBuf> = paths.flat_map(|path| expanded(&path)).collect();
        found.retain(|path| path.symlink_metadata().is_ok());
        found.dedup();
        found
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

    /// A path for people: from the project's folder, or with `~`.
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

/// The settings of Claude Code for a project, which turn servers of its `.mcp.json` off, and why
/// some of the files could not be read.
pub fn settings_of_claude_code(project: PathBuf) -> (Vec<Section>, Vec<String>) {
    let folders = Folders::of(project);
    let (mut settings, mut unread) = (Vec::new(), Vec::new());
    for file in folders.files(Client::ClaudeCode) {
        match folders.sections(Client::ClaudeCode, &file) {
            Ok(sections) => settings.extend(sections),
            Err(error) => unread.push(format!("{}: {error:#}", folders.shown(&file))),
        }
    }
    settings.retain(|section| section.project.is_none());
    (settings, unread)
}
