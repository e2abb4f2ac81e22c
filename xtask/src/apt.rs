//! Installs packages of Debian where set-up is permitted to.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process;

/// Installs packages as root or with a passwordless `sudo`. An error has the command to run by hand.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let is_root = process::version(Command::new("id").arg("-u")).as_deref() == Some("0");
    let sudo: &[&str] = if is_root { &[] } else { &["sudo", "-n"] };
    let install = [&["install", "--no-install-recommends"], packages].concat();
    for arguments in [&["update"], install.as_slice()] {
        let words = [sudo, &["apt-get", "--quiet", "--yes"], arguments].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        process::run(command.env("DEBIAN_FRONTEND", "noninteractive")).with_context(|| {
            let packages = packages.join(" ");
            format!("run `apt-get install {packages}` as root, then this again")
        })?;
    }
    Ok(())
}
