//! Putting the archive where the build looks for it: an archive that is
//! named or cached, a local mirror, the release page, or advice.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::archive::Archive;
use super::probe::{self, Answer};
use crate::project::Project;
use crate::{checksum, say};

/// Sees to it that the next `cargo build` finds V8, and says how.
pub(crate) fn supply(project: &Project) -> Result<()> {
    say::step("V8");
    let surroundings = Surroundings::of(project)?;
    let supply = match surroundings.local()? {
        Some(supply) => supply,
        None => surroundings.upstream()?,
    };
    say::detail(supply);
    Ok(())
}

/// Where the archive comes from.
#[derive(Debug, PartialEq, Eq)]
enum Supply {
    Named(String),
    FromSource,
    Cached {
        file: PathBuf,
        checked: bool,
    },
    Mirror {
        from: PathBuf,
        to: PathBuf,
        replaced: bool,
    },
    Upstream(String),
}

impl std::fmt::Display for Supply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Named(archive) => write!(f, "RUSTY_V8_ARCHIVE names it: {archive}"),
            Self::FromSource => {
                f.write_str("V8_FROM_SOURCE is set: the v8 crate compiles it during the build")
            }
            Self::Cached { file, checked } => {
                let not_checked = "not checked (no checksum is known for this target)";
                let how = if *checked {
                    "checksum right"
                } else {
                    not_checked
                };
                write!(f, "in the cache, {how}: {}", file.display())
            }
            Self::Mirror { from, to, replaced } => {
                let corrupt = "a cached file was corrupt; replaced from";
                let how = if *replaced { corrupt } else { "copied from" };
                let (from, to) = (from.display(), to.display());
                write!(f, "{how} the mirror, checksum right: {from} -> {to}")
            }
            Self::Upstream(url) => {
                write!(
                    f,
                    "the release page answers; the v8 crate downloads it in the build: {url}"
                )
            }
        }
    }
}

struct Surroundings {
    archive: Archive,
    cargo_home: PathBuf,
    /// `RUSTY_V8_ARCHIVE`.
    named: Option<OsString>,
    from_source: bool,
    /// The folder of the mirror, and whether it was named.
    mirror: PathBuf,
    mirror_is_named: bool,
}

impl Surroundings {
    fn of(project: &Project) -> Result<Self> {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        let mirror = variable("CALLGATE_V8_MIRROR");
        Ok(Self {
            archive: Archive::for_this_build()?,
            cargo_home: project.cargo_home.clone(),
            named: variable("RUSTY_V8_ARCHIVE"),
            from_source: variable("V8_FROM_SOURCE").is_some_and(|v| v == "1" || v == "true"),
            mirror_is_named: mirror.is_some(),
            mirror: mirror.map_or_else(|| project.root.join("../shared/v8"), PathBuf::from),
        })
    }

    /// The supplies that need no network.
    fn local(&self) -> Result<Option<Supply>> {
        if self.from_source {
            return Ok(Some(Supply::FromSource));
        }
        if let Some(named) = &self.named {
            return Ok(Some(named_archive(named)?));
        }
        let cached = self.archive.cached(&self.cargo_home);
        let found = cached
            .exists()
            .then(|| checksum::of_file(&cached))
            .transpose()?;
        let built_here = fs::read_to_string(self.archive.cached_checksum(&self.cargo_home));
        let built_here = built_here.unwrap_or_default().trim().to_owned();
        let pinned = self.archive.pinned.as_deref();
        let checked = found
            .as_deref()
            .map(|found| Some(found) == pinned || found == built_here);
        let is_unknown = pinned.is_none() && built_here.is_empty();
        if let Some(checked) = checked.filter(|checked| *checked || is_unknown) {
            return Ok(Some(Supply::Cached {
                file: cached,
                checked,
            }));
        }
        if let Some(supply) = self.mirror(&cached, found.is_some())? {
            return Ok(Some(supply));
        }
        if let Some(found) = found {
            bail!(
                "{} has SHA-256 {found}, which is neither pinned nor recorded, and there is no \
                 mirror to replace it from: remove it, or, if you trust it, write that checksum \
                 into {}",
                cached.display(),
                self.archive.cached_checksum(&self.cargo_home).display()
            );
        }
        Ok(None)
    }

    fn mirror(&self, cached: &Path, replaced: bool) -> Result<Option<Supply>> {
        let from = self.mirror.join(self.archive.file_name());
        if !from.is_file() {
            if self.mirror_is_named {
                bail!(
                    "CALLGATE_V8_MIRROR names {}, which has no file {}: correct it or unset it",
                    self.mirror.display(),
                    self.archive.file_name()
                );
            }
            return Ok(None);
        }
        let Some(pinned) = &self.archive.pinned else {
            say::detail(format_args!(
                "a mirror is at {}, but no checksum is pinned for {}: not used",
                self.mirror.display(),
                self.archive.target
            ));
            return Ok(None);
        };
        checksum::copy_verified(&from, cached, pinned)?;
        Ok(Some(Supply::Mirror {
            from,
            to: cached.to_owned(),
            replaced,
        }))
    }

    fn upstream(&self) -> Result<Supply> {
        let url = self.archive.url();
        if !url.starts_with("http:") && !url.starts_with("https:") {
            if Path::new(&url).is_file() {
                return Ok(Supply::Upstream(url));
            }
            bail!("RUSTY_V8_MIRROR leads to {url}, which is not a file: correct it or unset it");
        }
        say::detail(format_args!(
            "not on this machine; asking the release page (10 s): {url}"
        ));
        match probe::probe(&url)? {
            Answer::There => Ok(Supply::Upstream(url)),
            Answer::Refused(status) => {
                bail!(
                    "the release page answers {status} for {url}\n{}",
                    self.other_ways()
                )
            }
            Answer::Silent => bail!("no answer from {url}\n{}", self.other_ways()),
        }
    }

    fn other_ways(&self) -> String {
        format!(
            "V8 can come another way (docs/v8.md):\n  \
             - RUSTY_V8_ARCHIVE=/absolute/path/to/{name}\n  \
             - CALLGATE_V8_MIRROR=/folder/with/that/file (else {mirror})\n  \
             - cargo xtask v8 --from-source: from package registries alone, about two hours",
            name = self.archive.file_name(),
            mirror = self.mirror.display(),
        )
    }
}

fn named_archive(named: &OsString) -> Result<Supply> {
    let text = named.to_str().context("RUSTY_V8_ARCHIVE is not UTF-8")?;
    let remote = text.starts_with("http:") || text.starts_with("https:");
    // The build script runs in a folder of its own, so a relative path means another file there.
    if !remote && !Path::new(text).is_absolute() {
        bail!("RUSTY_V8_ARCHIVE must be an absolute path or an address, but is `{text}`");
    }
    if !remote && !Path::new(text).is_file() {
        bail!("RUSTY_V8_ARCHIVE names {text}, which is not a file: correct it or unset it");
    }
    Ok(Supply::Named(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "an archive";

    struct Machine {
        folder: tempfile::TempDir,
        surroundings: Surroundings,
    }

    fn machine() -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let mirror = folder.path().join("mirror");
        fs::create_dir(&mirror).unwrap();
        let surroundings = Surroundings {
            archive: Archive {
                target: "x86_64-unknown-linux-gnu".to_owned(),
                releases: "https://releases.example".to_owned(),
                pinned: Some(checksum::of_bytes(GOOD.as_bytes())),
            },
            cargo_home: folder.path().join("cargo"),
            named: None,
            from_source: false,
            mirror,
            mirror_is_named: false,
        };
        Machine {
            folder,
            surroundings,
        }
    }

    impl Machine {
        fn cached(&self) -> PathBuf {
            self.surroundings
                .archive
                .cached(&self.surroundings.cargo_home)
        }

        fn in_cache(&self, text: &str) {
            fs::create_dir_all(self.cached().parent().unwrap()).unwrap();
            fs::write(self.cached(), text).unwrap();
        }

        fn in_mirror(&self, text: &str) -> PathBuf {
            let name = "librusty_v8_simdutf_release_x86_64-unknown-linux-gnu.a.gz";
            let file = self.surroundings.mirror.join(name);
            fs::write(&file, text).unwrap();
            file
        }

        /// The supply, or the error with this machine's folder left out.
        fn check(&self, expected: Result<Option<Supply>, &str>) {
            let found = self.surroundings.local().map_err(|error| {
                error
                    .to_string()
                    .replace(&self.folder.path().display().to_string(), "…")
            });
            assert_eq!(found, expected.map_err(str::to_owned));
        }
    }

    #[test]
    fn a_named_archive_comes_first() {
        let mut machine = machine();
        machine.in_cache("corrupt");
        let file = machine.in_mirror(GOOD);
        machine.surroundings.named = Some(file.clone().into());
        machine.check(Ok(Some(Supply::Named(file.display().to_string()))));
        machine.surroundings.named = Some("v8.a.gz".into());
        machine.check(Err(
            "RUSTY_V8_ARCHIVE must be an absolute path or an address, but is `v8.a.gz`",
        ));
        machine.surroundings.named = Some(machine.folder.path().join("none").into());
        machine.check(Err(
            "RUSTY_V8_ARCHIVE names …/none, which is not a file: correct it or unset it",
        ));
    }

    #[test]
    fn the_cache_is_taken_when_its_checksum_is_pinned_or_recorded() {
        let machine = machine();
        machine.check(Ok(None));
        let record = &machine.surroundings;
        let record = record.archive.cached_checksum(&record.cargo_home);
        for text in [GOOD, "built here"] {
            machine.in_cache(text);
            fs::write(&record, checksum::of_bytes(text.as_bytes()) + "\n").unwrap();
            machine.check(Ok(Some(Supply::Cached {
                file: machine.cached(),
                checked: true,
            })));
        }
        machine.in_cache("corrupt");
        let found = machine.surroundings.local().unwrap_err().to_string();
        assert!(found.contains("neither pinned nor recorded"), "{found}");
    }

    #[test]
    fn the_mirror_fills_an_empty_cache_and_replaces_a_corrupt_file() {
        let machine = machine();
        let from = machine.in_mirror(GOOD);
        let to = machine.cached();
        let copied = |replaced| {
            Ok(Some(Supply::Mirror {
                from: from.clone(),
                to: to.clone(),
                replaced,
            }))
        };
        machine.check(copied(false));
        assert_eq!(fs::read_to_string(&to).unwrap(), GOOD);
        machine.in_cache("corrupt");
        machine.check(copied(true));
        assert_eq!(fs::read_to_string(&to).unwrap(), GOOD);
    }

    #[test]
    fn a_corrupt_mirror_is_refused_and_leaves_no_file() {
        let machine = machine();
        let file = machine.in_mirror("corrupt");
        // A list of checksums that lies beside the file proves nothing.
        let list = format!("{}  {}\n", checksum::of_bytes(b"corrupt"), file.display());
        fs::write(machine.surroundings.mirror.join("SHA256SUMS"), list).unwrap();
        machine.check(Err(&format!(
            "…/mirror/librusty_v8_simdutf_release_x86_64-unknown-linux-gnu.a.gz has SHA-256 {}, \
             but {} is the one pinned in xtask; it is not used: get a fresh copy",
            checksum::of_bytes(b"corrupt"),
            checksum::of_bytes(GOOD.as_bytes())
        )));
        assert!(!machine.cached().exists());
    }

    #[test]
    fn a_named_mirror_must_have_the_file() {
        let mut machine = machine();
        machine.surroundings.mirror_is_named = true;
        machine.check(Err("CALLGATE_V8_MIRROR names …/mirror, which has no file \
             librusty_v8_simdutf_release_x86_64-unknown-linux-gnu.a.gz: correct it or unset it"));
    }

    #[test]
    fn a_target_without_a_pin_uses_no_mirror() {
        let mut machine = machine();
        machine.in_mirror(GOOD);
        machine.surroundings.archive.pinned = None;
        machine.check(Ok(None));
        machine.in_cache("anything");
        machine.check(Ok(Some(Supply::Cached {
            file: machine.cached(),
            checked: false,
        })));
    }

    #[test]
    fn a_machine_without_a_way_is_told_the_other_ones() {
        let mut machine = machine();
        machine.surroundings.archive.releases = "/nonexistent".to_owned();
        let error = machine.surroundings.upstream().unwrap_err().to_string();
        assert!(
            error.ends_with("which is not a file: correct it or unset it"),
            "{error}"
        );
        let ways = machine.surroundings.other_ways();
        for way in [
            "RUSTY_V8_ARCHIVE=",
            "CALLGATE_V8_MIRROR=",
            "xtask v8 --from-source",
        ] {
            assert!(ways.contains(way), "{ways}");
        }
    }
}
