//! Which archive: its name, its address, its name in the cache, its checksum.
//! The rules are those of the v8 crate's build script, of this version alone.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{checksum, process, say};

/// The version of the v8 crate that `Cargo.lock` names; a test holds the two together.
pub(crate) const VERSION: &str = "150.4.0";

const RELEASES: &str = "https://github.com/denoland/rusty_v8/releases/download";

/// SHA-256 of the archives that a local mirror may hold, by target triple. They were built by
/// `cargo xtask v8 --from-source`'s recipe; a mirror's own list of checksums proves nothing.
const PINNED: &[(&str, &str)] = &[(
    "x86_64-unknown-linux-gnu",
    "f9fa8df1634a9b4392c26926dba869e66965e28781f05796a5c45603c3d3410a",
)];

/// The archive for one target.
pub(crate) struct Archive {
    /// The target triple.
    pub(crate) target: String,
    /// The checksum a mirror's archive must have, where one is known.
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
        let (prefix, extension) = if self.target.contains("windows") {
            ("", "lib")
        } else {
            ("lib", "a")
        };
        format!(
            "{prefix}rusty_v8_simdutf_release_{}.{extension}.gz",
            self.target
        )
    }

    /// The address on the release page.
    pub(crate) fn url(&self) -> String {
        format!("{RELEASES}/v{VERSION}/{}", self.file_name())
    }

    /// The file that the build script takes instead of a download.
    pub(crate) fn cached(&self, cargo_home: &Path) -> PathBuf {
        let escape = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        cargo_home
            .join(".rusty_v8")
            .join(self.url().chars().map(escape).collect::<String>())
    }

    /// The file beside the cached archive with the checksum of one that set-up made or fetched.
    pub(crate) fn cached_checksum(&self, cargo_home: &Path) -> PathBuf {
        let mut path = self.cached(cargo_home).into_os_string();
        path.push(".sha256");
        path.into()
    }

    /// Puts an archive that set-up made or fetched into the cache, and records its checksum.
    pub(crate) fn install(&self, made: &Path, cargo_home: &Path) -> Result<()> {
        let sha256 = checksum::of_file(made)?;
        let cached = self.cached(cargo_home);
        // The record first: a build that is interrupted in between meets no unknown file.
        fs::create_dir_all(cached.parent().unwrap_or(cargo_home))?;
        fs::write(self.cached_checksum(cargo_home), format!("{sha256}\n"))?;
        checksum::copy_verified(made, &cached, &sha256)?;
        say::detail(format_args!("SHA-256 {sha256}: {}", cached.display()));
        Ok(())
    }
}

/// The triple of this machine, as rustc says it.
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
        let check = |target: &str, expected: &str| {
            let path = Archive::new(target.to_owned()).cached(Path::new("/home"));
            let name = format!(
                "https___github_com_denoland_rusty_v8_releases_download_v150_4_0_{expected}"
            );
            assert_eq!(path, Path::new("/home/.rusty_v8").join(name));
        };
        check(
            "x86_64-unknown-linux-gnu",
            "librusty_v8_simdutf_release_x86_64_unknown_linux_gnu_a_gz",
        );
        check(
            "x86_64-pc-windows-msvc",
            "rusty_v8_simdutf_release_x86_64_pc_windows_msvc_lib_gz",
        );
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
