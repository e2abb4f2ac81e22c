//! The V8 archive: its name, its address, its name in the cache, its checksum. The rules are those of
//! the build script of this version of the v8 crate.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{checksum, process, say};

/// The version of the v8 crate in `Cargo.lock`; a test compares the two.
pub(crate) const VERSION: &str = "150.4.0";

const RELEASES: &str = "https://github.com/denoland/rusty_v8/releases/download";

/// SHA-256 of the archives in a local mirror, by target triple. They were built with the recipe of
/// `cargo xtask v8 --from-source`; a mirror's own list of checksums is not trusted.
const PINNED: &[(&str, &str)] = &[(
    "x86_64-unknown-linux-gnu",
    "f9fa8df1634a9b4392c26926dba869e66965e28781f05796a5c45603c3d3410a",
)];

/// The archive for one target.
pub(crate) struct Archive {
    /// The target triple.
    pub(crate) target: String,
    /// The checksum of a mirror's archive, if it is known.
    pub(crate) pinned: Option<String>,
}

impl Archive {
    /// The archive for the target that cargo builds for.
    pub(crate) fn for_this_build() -> Result<Self> {
        match env::var("CARGO_BUILD_TARGET") {
            Ok(named) if !named.is_empty() => Ok(Self::new(named)),
            _ => Ok(Self::new(host()?)),
        }
    }

    fn new(target: String) -> Self {
        let pinned = PINNED.iter().find(|(name, _)| *name == target);
        let pinned = pinned.map(|(_, sha256)| (*sha256).to_owned());
        Self { target, pinned }
    }

    /// The file name on the release page: deno_core wants the `simdutf` build, in release mode.
    pub(crate) fn file_name(&self) -> String {
        format!("librusty_v8_simdutf_release_{}.a.gz", self.target)
    }

    /// The address on the release page.
    pub(crate) fn url(&self) -> String {
        format!("{RELEASES}/v{VERSION}/{}", self.file_name())
    }

    /// The file that the build script uses instead of a download.
    pub(crate) fn cached(&self, cargo_home: &Path) -> PathBuf {
        let escape = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        cargo_home
            .join(".rusty_v8")
            .join(self.url().chars().map(escape).collect::<String>())
    }

    /// The file beside the cached archive with its checksum, written by set-up.
    pub(crate) fn cached_checksum(&self, cargo_home: &Path) -> PathBuf {
        self.cached(cargo_home).with_added_extension("sha256")
    }

    /// Puts an archive that set-up made or fetched into the cache, and records its checksum.
    pub(crate) fn install(&self, made: &Path, cargo_home: &Path) -> Result<()> {
        let sha256 = checksum::of_file(made)?;
        let cached = self.cached(cargo_home);
        // The checksum first: after an interruption in between, there is no archive without one.
        fs::create_dir_all(cached.parent().unwrap_or(cargo_home))?;
        fs::write(self.cached_checksum(cargo_home), format!("{sha256}\n"))?;
        checksum::copy_verified(made, &cached, &sha256)?;
        say::detail(format_args!("SHA-256 {sha256}: {}", cached.display()));
        Ok(())
    }
}

/// The triple of this machine according to rustc.
fn host() -> Result<String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let text = process::output(Command::new(rustc).arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_name_matches_the_v8_build_script() {
        let archive = Archive::new("x86_64-unknown-linux-gnu".to_owned());
        let name = "https___github_com_denoland_rusty_v8_releases_download_v150_4_0_\
                    librusty_v8_simdutf_release_x86_64_unknown_linux_gnu_a_gz";
        let expected = Path::new("/home/.rusty_v8").join(name);
        assert_eq!(archive.cached(Path::new("/home")), expected);
    }

    #[test]
    fn v8_version_matches_the_lock_file() {
        let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock");
        let lock = std::fs::read_to_string(lock).unwrap();
        let entry = format!("name = \"v8\"\nversion = \"{VERSION}\"\n");
        assert!(
            lock.contains(&entry),
            "Cargo.lock has another v8: see docs/v8.md, A new version"
        );
    }
}
