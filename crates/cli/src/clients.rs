//! The other MCP clients: where their configurations are, and the forms of these.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

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
    /// Its files. The first one is written to.
    pub files: &'static [(Base, &'static str)],
    /// The beginning of the path of a project's file in its configuration.
    pub project: &'static str,
    /// The `type` or `source` that it wants of an entry.
    pub kind: Option<(&'static str, &'static str)>,
}

/// The folder that a path begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The project's.
    Project,
    /// The user's home.
    Home,
    /// The folder of Codex: `$CODEX_HOME`, else `~/.codex`.
    Codex,
    /// `~/.config`, but on Windows that of applications.
    Config,
    /// That of applications: `~/.config`, `~/Library/Application Support` or `%APPDATA%`.
    Applications,
}

use Base::{Applications, Codex, Config, Home, Project};

impl Client {
    /// The one table of clients.
    pub fn facts(self) -> Facts {
        let (name, key, files): (_, _, &[_]) = match self {
            Self::ClaudeCode => (
                "Claude Code",
                "mcpServers",
                &[
                    (Project, ".mcp.json"),
                    (Home, ".claude.json"),
                    (Project, ".claude/settings.local.json"),
                    (Project, ".claude/settings.json"),
                ],
            ),
            Self::ClaudeDesktop => (
                "Claude Desktop",
                "mcpServers",
                &[(Applications, "Claude/claude_desktop_config.json")],
            ),
            Self::VsCode => (
                "VS Code",
                "servers",
                &[
                    (Project, ".vscode/mcp.json"),
                    (Applications, "Code/User/mcp.json"),
                    (Applications, "Code/User/profiles/*/mcp.json"),
                    (Applications, "Code - Insiders/User/mcp.json"),
                    (Project, ".vscode/settings.json"),
                    (Applications, "Code/User/settings.json"),
                    (Applications, "Code/User/profiles/*/settings.json"),
                    (Applications, "Code - Insiders/User/settings.json"),
                ],
            ),
            Self::Cursor => (
                "Cursor",
                "mcpServers",
                &[(Project, ".cursor/mcp.json"), (Home, ".cursor/mcp.json")],
            ),
            Self::Codex => (
                "Codex",
                "mcp_servers",
                &[(Codex, "config.toml"), (Project, ".codex/config.toml")],
            ),
            Self::Gemini => (
                "Gemini CLI",
                "mcpServers",
                &[
                    (Project, ".gemini/settings.json"),
                    (Home, ".gemini/settings.json"),
                ],
            ),
            Self::Windsurf => (
                "Windsurf",
                "mcpServers",
                &[(Home, ".codeium/windsurf/mcp_config.json")],
            ),
            Self::Zed => (
                "Zed",
                "context_servers",
                &[
                    (Config, "zed/settings.json"),
                    (Project, ".zed/settings.json"),
                ],
            ),
        };
        Facts {
            name,
            key,
            files,
            project: match self {
                Self::VsCode | Self::Cursor => "${workspaceFolder}/",
                _ => "",
            },
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
    codex: Option<PathBuf>,
    config: Option<PathBuf>,
    applications: Option<PathBuf>,
}

impl Folders {
    /// The folders that the environment names.
    pub fn of(project: PathBuf) -> Self {
        let folder = |name: &str| {
            let path = PathBuf::from(std::env::var_os(name)?);
            path.is_absolute().then_some(path)
        };
        let home = folder("HOME").or_else(|| folder("USERPROFILE"));
        let below = |path: &str| home.as_ref().map(|home| home.join(path));
        let roaming = folder("APPDATA").filter(|_| cfg!(windows));
        let config = roaming.clone().or_else(|| folder("XDG_CONFIG_HOME"));
        let config = config.or_else(|| below(".config"));
        let applications = if cfg!(target_os = "macos") {
            below("Library/Application Support")
        } else {
            config.clone()
        };
        Self {
            codex: folder("CODEX_HOME").or_else(|| below(".codex")),
            project,
            config,
            applications,
            home,
        }
    }

    /// A path; `None` if the system does not say where its base is.
    pub fn path(&self, base: Base, path: &str) -> Option<PathBuf> {
        let folder = match base {
            Project => Some(&self.project),
            Home => self.home.as_ref(),
            Codex => self.codex.as_ref(),
            Config => self.config.as_ref(),
            Applications => self.applications.as_ref(),
        };
        folder.map(|folder| folder.join(path))
    }

    /// The files of a client that exist.
    pub fn files(&self, client: Client) -> Vec<PathBuf> {
        let files = client.facts().files.iter();
        let paths = files.filter_map(|(base, path)| self.path(*base, path));
        let mut found: Vec<PathBuf> = paths.flat_map(|path| expanded(&path)).collect();
        found.retain(|path| path.is_file());
        found.dedup();
        found
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
