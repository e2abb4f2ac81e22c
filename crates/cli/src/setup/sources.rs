//! The configuration that a command uses.

use std::path::Path;

use anyhow::{Context as _, bail};
use callgate::config::{Config, EnvFile};
use callgate::faces::{Connect, Skill};
use callgate_serve::config::ServeConfig;
use callgate_text::nearest;

use crate::args::Sources;
use crate::print;
use crate::trust::FoundConfig;

pub const NO_CONFIGURATION: &str = "there is no callgate.json or .mcp.json in this folder or above; \
     `callgate init` makes one from the servers of your other MCP clients, or name a file with \
     --config";

impl Sources {
    /// Reads the files of `--env-file`.
    pub fn read_environment(&mut self) -> anyhow::Result<()> {
        for file in &self.env_files {
            let values = EnvFile::read(file).context("--env-file")?;
            self.environment.add(values);
        }
        Ok(())
    }

    /// The value of a variable, from the environment or else from `--env-file`.
    pub fn variable(&self, name: &str) -> Option<String> {
        let given = || self.environment.get(name).map(str::to_owned);
        std::env::var(name).ok().or_else(given)
    }
}

/// A configuration file, with the settings of `callgate serve`.
pub type Loaded = callgate::config::Loaded<ServeConfig>;

/// Loads the configuration and the skills, and prints warnings. Without `--config`, the nearest
/// file is loaded if the person has accepted it, or accepts it now.
pub async fn configuration(sources: &Sources) -> anyhow::Result<Option<Config>> {
    let config = load(sources).await?.map(|loaded| loaded.config);
    config.iter().for_each(print_warnings);
    Ok(config)
}

/// [`configuration`] for commands that need servers, with the settings of `callgate serve`.
pub async fn required_configuration(sources: &Sources) -> anyhow::Result<Loaded> {
    let loaded = load(sources).await?.context(NO_CONFIGURATION)?;
    print_warnings(&loaded.config);
    Ok(loaded)
}

pub fn print_warnings(config: &Config) {
    let left_out = config.left_out.iter().map(|it| &it.problem);
    for warning in config.warnings.iter().chain(left_out) {
        print::warning(&warning.to_string());
    }
}

/// Loads the configuration and the skills, without printing.
pub async fn load(sources: &Sources) -> anyhow::Result<Option<Loaded>> {
    let found = match &sources.config {
        Some(path) => return with_flags(named(path, sources)?, sources).map(Some),
        None => FoundConfig::look(sources)?,
    };
    let loaded = match found {
        Some(found) => Some(found.accepted(sources).await?),
        None => None,
    };
    if loaded.is_none() && !sources.skills.is_empty() {
        bail!("--skill needs a configuration with servers; name its file with --config");
    }
    loaded.map(|loaded| with_flags(loaded, sources)).transpose()
}

/// Adds the skills of the flags to the configuration, and enables the servers that they name.
pub fn with_flags(mut loaded: Loaded, sources: &Sources) -> anyhow::Result<Loaded> {
    for name in &sources.enable {
        let servers = &mut loaded.config.servers;
        let Some(server) = servers.iter_mut().find(|server| server.name == *name) else {
            let names = servers.iter().map(|server| server.name.as_str());
            let near = nearest(name, names).map(|near| format!("; did you mean {near:?}?"));
            let near = near.unwrap_or_default();
            bail!("--enable: no server that is on is named {name:?}{near}");
        };
        if server.connect == Connect::Manual {
            server.connect = Connect::Lazy;
        }
    }
    for folder in &sources.skills {
        loaded.config.skills.push(Skill::load(folder)?);
    }
    Ok(loaded)
}

/// Loads this file. Messages that advise a login contain its `--config` flag.
pub fn named(path: &Path, sources: &Sources) -> anyhow::Result<Loaded> {
    let mut loaded = read(path, sources)?;
    for oauth in loaded.config.logins_mut() {
        oauth.login_flags = vec!["--config".to_owned(), path.display().to_string()];
    }
    Ok(loaded)
}

/// Reads this configuration file.
pub fn read(path: &Path, sources: &Sources) -> anyhow::Result<Loaded> {
    Ok(Loaded::load(path, |name| sources.variable(name))?)
}
