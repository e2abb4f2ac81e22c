//! The directories of the checkout: its root, cargo's target directory, cargo's home.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::process;

/// The directories, all absolute.
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    /// `CARGO_TARGET_DIR`, else that of cargo's configuration.
    pub(crate) target_dir: PathBuf,
    /// `CARGO_HOME`, else `.cargo` in the home directory.
    pub(crate) cargo_home: PathBuf,
}

impl Project {
    pub(crate) fn find() -> Result<Self> {
        let manifest_dir = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest_dir
            .parent()
            .context("the xtask crate must lie in a folder of the checkout")?
            .to_owned();
        Ok(Self {
            target_dir: target_dir(&root)?,
            cargo_home: cargo_home()?,
            root,
        })
    }

    /// A cargo command in the checkout, without the variables that `cargo run` set for xtask (build
    /// scripts that watch them would run again) and with an absolute target directory.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = cargo_in(&self.root);
        command.env("CARGO_TARGET_DIR", &self.target_dir);
        command
    }

    /// The output of `cargo metadata` with these further arguments.
    pub(crate) fn metadata(&self, arguments: &[&str]) -> Result<Value> {
        metadata_by(self.cargo(), arguments)
    }

    /// The file of a program in the dev profile.
    pub(crate) fn built(&self, program: &str) -> PathBuf {
        self.built_as("debug", program)
    }

    /// The file of a program in the profile with this folder.
    pub(crate) fn built_as(&self, profile: &str, program: &str) -> PathBuf {
        let mut folder = self.target_dir.clone();
        // Cargo has a separate folder for a named target, even for this machine's.
        folder.extend(env::var_os("CARGO_BUILD_TARGET").filter(|named| !named.is_empty()));
        folder.join(profile).join(program)
    }
}

/// The absolute form of the path in a variable.
pub(crate) fn named(variable: &str) -> Result<Option<PathBuf>> {
    let named = env::var_os(variable).filter(|named| !named.is_empty());
    Ok(named.map(std::path::absolute).transpose()?)
}

fn cargo_in(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    let names = [
        "CARGO_MANIFEST_DIR",
        "CARGO_MANIFEST_PATH",
        "CARGO_BIN_NAME",
    ];
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || names.contains(&&*text) {
            command.env_remove(name);
        }
    }
    command
}

fn metadata_by(mut cargo: Command, arguments: &[&str]) -> Result<Value> {
    cargo
        .args(["metadata", "--format-version=1"])
        .args(arguments);
    serde_json::from_str(&process::output(&mut cargo)?).context("`cargo metadata` is not JSON")
}

fn target_dir(root: &Path) -> Result<PathBuf> {
    // Cargo takes the variable relative to the folder that it is started in, which is the caller's.
    if let Some(named) = named("CARGO_TARGET_DIR")? {
        return Ok(named);
    }
    let metadata = metadata_by(cargo_in(root), &["--no-deps", "--offline"])?;
    let folder = metadata["target_directory"].as_str();
    Ok(folder
        .context("`cargo metadata` names no target folder")?
        .into())
}

fn cargo_home() -> Result<PathBuf> {
    if let Some(named) = named("CARGO_HOME")? {
        return Ok(named);
    }
    let home = env::home_dir().context("no home directory: set CARGO_HOME")?;
    Ok(home.join(".cargo"))
}
