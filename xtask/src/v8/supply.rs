//! Provides the archive for the build: a named or cached one, or one from a local mirror, the release
//! page, or a build from source.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::archive::Archive;
use super::source;
use crate::project::Project;
use crate::{checksum, process, say};

/// The variable that forbids the build from source: `no`.
const FROM_SOURCE: &str = "CALLGATE_V8_FROM_SOURCE";

/// Makes the archive available to the next `cargo build`, and prints its source.
pub(crate) fn supply(project: &Project) -> Result<()> {
    say::step("V8");
    let surroundings = Surroundings::of(project)?;
    if let Some(supply) = surroundings.local()? {
        say::detail(supply);
        return Ok(());
    }
    if surroundings.download(project)? {
        return Ok(());
    }
    if surroundings.archive.target != source::TARGET {
        bail!(
            "no archive of V8 for {} was found, and the recipe to build one is for {} alone. {}",
            surroundings.archive.target,
            source::TARGET,
            surroundings.other_ways()
        );
    }
    if env::var_os(FROM_SOURCE).is_some_and(|value| value == "no") {
        bail!(
            "no archive of V8 was found, and {FROM_SOURCE}=no forbids building it. {}",
            surroundings.other_ways()
        );
    }
    say::detail(format_args!(
        "V8 is built from source now: {}. Ctrl-C stops it, and the next set-up continues; with \
         {FROM_SOURCE}=no set-up stops here instead. {}",
        source::COST,
        surroundings.other_ways()
    ));
    source::build(project, &source::Options::default())
}

struct Surroundings {
    archive: Archive,
    cargo_home: PathBuf,
    /// `RUSTY_V8_ARCHIVE`.
    named: Option<OsString>,
    /// The folder of the mirror, and whether it was named.
    mirror: PathBuf,
    mirror_is_named: bool,
}

impl Surroundings {
    fn of(project: &Project) -> Result<Self> {
        let mirror = variable("CALLGATE_V8_MIRROR");
        Ok(Self {
            archive: Archive::for_this_build()?,
            cargo_home: project.cargo_home.clone(),
            named: variable("RUSTY_V8_ARCHIVE"),
            mirror_is_named: mirror.is_some(),
            mirror: mirror.map_or_else(|| project.root.join("../shared/v8"), PathBuf::from),
        })
    }

    /// Describes an archive that is available without the network; may copy it from the mirror.
    fn local(&self) -> Result<Option<String>> {
        for name in ["V8_FROM_SOURCE", "RUSTY_V8_MIRROR"] {
            if let Some(value) = variable(name) {
                let value = value.display();
                return Ok(Some(format!("left to the v8 crate: {name}={value}")));
            }
        }
        if let Some(named) = &self.named {
            return Ok(Some(named_archive(named)?));
        }
        let cached = self.archive.cached(&self.cargo_home);
        let file = cached.display();
        if !cached.exists() {
            return self.mirror(&cached);
        }
        let found = checksum::of_file(&cached)?;
        let record = self.archive.cached_checksum(&self.cargo_home);
        let recorded = fs::read_to_string(&record).unwrap_or_default();
        if recorded.trim() == found || self.archive.pinned.as_ref() == Some(&found) {
            return Ok(Some(format!("in the cache, checksum right: {file}")));
        }
        if recorded.is_empty() && self.archive.pinned.is_none() {
            return Ok(Some(format!(
                "in the cache, not checked (no checksum is known for this target): {file}"
            )));
        }
        if let Some(mirror) = self.mirror(&cached)? {
            return Ok(Some(format!("a cached file was corrupt; {mirror}")));
        }
        bail!(
            "{file} has SHA-256 {found}, which is neither pinned nor recorded, and there is no \
             mirror to replace it from: remove it, or, if you trust it, write that checksum into \
             {}",
            record.display()
        );
    }

    fn mirror(&self, cached: &Path) -> Result<Option<String>> {
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
        let (from, to) = (from.display(), cached.display());
        Ok(Some(format!(
            "copied from the mirror, checksum right: {from} -> {to}"
        )))
    }

    /// Fetches the archive from the release page; false if the page gives none.
    fn download(&self, project: &Project) -> Result<bool> {
        let url = self.archive.url();
        say::detail("not on this machine; asking the release page (it has ten seconds to answer)");
        fs::create_dir_all(&project.target_dir)?;
        let file = project.target_dir.join("v8-download.a.gz");
        let mut curl = Command::new("curl");
        curl.args(["--fail", "--location", "--no-progress-meter"]);
        curl.args(["--connect-timeout", "10"]);
        // Ends a stalled transfer.
        curl.args(["--speed-limit", "1000", "--speed-time", "30"]);
        curl.arg("--output").arg(&file).arg(&url);
        let status = process::status(&mut curl);
        let status = status.with_context(|| format!("install curl. {}", self.other_ways()))?;
        if status.success() {
            self.archive.install(&file, &self.cargo_home)?;
        }
        // Fails if curl wrote no file.
        let _ = fs::remove_file(&file);
        Ok(status.success())
    }

    fn other_ways(&self) -> String {
        format!(
            "Other sources of V8 (docs/v8.md):\n  \
             - RUSTY_V8_ARCHIVE=/absolute/path/to/{name}\n  \
             - CALLGATE_V8_MIRROR=/folder/with/that/file (else {mirror})",
            name = self.archive.file_name(),
            mirror = self.mirror.display(),
        )
    }
}

fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn named_archive(named: &OsString) -> Result<String> {
    let text = named.to_str().context("RUSTY_V8_ARCHIVE is not UTF-8")?;
    let remote = text.starts_with("http:") || text.starts_with("https:");
    // The build script runs in a different folder, where a relative path would be wrong.
    if !remote && !Path::new(text).is_absolute() {
        bail!("RUSTY_V8_ARCHIVE must be an absolute path or an address, but is `{text}`");
    }
    if !remote && !Path::new(text).is_file() {
        bail!("RUSTY_V8_ARCHIVE names {text}, which is not a file: correct it or unset it");
    }
    Ok(format!("RUSTY_V8_ARCHIVE names it: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    const GOOD: &str = "an archive";

    struct Machine {
        folder: tempfile::TempDir,
        surroundings: Surroundings,
    }

    fn machine() -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let surroundings = Surroundings {
            archive: Archive {
                target: "x86_64-unknown-linux-gnu".to_owned(),
                pinned: Some(checksum::of_bytes(GOOD.as_bytes())),
            },
            cargo_home: folder.path().join("cargo"),
            named: None,
            mirror: folder.path().join("mirror"),
            mirror_is_named: false,
        };
        Machine {
            folder,
            surroundings,
        }
    }

    impl Machine {
        fn cached(&self) -> PathBuf {
            let archive = &self.surroundings.archive;
            archive.cached(&self.surroundings.cargo_home)
        }

        fn in_cache(&self, text: &str) {
            files::write(&self.cached(), text).unwrap();
        }

        fn in_mirror(&self, text: &str) -> PathBuf {
            let name = "librusty_v8_simdutf_release_x86_64-unknown-linux-gnu.a.gz";
            let file = self.surroundings.mirror.join(name);
            files::write(&file, text).unwrap();
            file
        }

        /// Checks the prefix of the description, or of the error.
        #[track_caller]
        fn check(&self, expected: &str) {
            let found = match self.surroundings.local() {
                Ok(found) => found.unwrap_or_else(|| "none".to_owned()),
                Err(error) => format!("error: {error}"),
            };
            let folder = self.folder.path().display().to_string();
            let expected = expected.replace('…', &folder);
            assert!(found.starts_with(&expected), "{found}");
        }
    }

    #[test]
    fn a_named_archive_comes_first() {
        let mut machine = machine();
        machine.in_cache("corrupt");
        machine.surroundings.named = Some(machine.in_mirror(GOOD).into());
        machine.check("RUSTY_V8_ARCHIVE names it: …/mirror/lib");
        machine.surroundings.named = Some("v8.a.gz".into());
        machine.check(
            "error: RUSTY_V8_ARCHIVE must be an absolute path or an address, but is `v8.a.gz`",
        );
        machine.surroundings.named = Some(machine.folder.path().join("none").into());
        machine.check("error: RUSTY_V8_ARCHIVE names …/none, which is not a file: correct it");
    }

    #[test]
    fn cached_archive_needs_pinned_or_recorded_checksum() {
        let mut machine = machine();
        machine.check("none");
        let made = machine.folder.path().join("made");
        for text in [GOOD, "built here"] {
            files::write(&made, text).unwrap();
            let Surroundings {
                archive,
                cargo_home,
                ..
            } = &machine.surroundings;
            archive.install(&made, cargo_home).unwrap();
            machine.check("in the cache, checksum right");
        }
        machine.in_cache("corrupt");
        let file = machine.cached().display().to_string();
        let sha256 = checksum::of_bytes(b"corrupt");
        machine.check(&format!(
            "error: {file} has SHA-256 {sha256}, which is neither pinned"
        ));
        fs::remove_file(format!("{file}.sha256")).unwrap();
        machine.surroundings.archive.pinned = None;
        machine.check("in the cache, not checked");
    }

    #[test]
    fn mirror_replaces_missing_or_corrupt_cached_archive() {
        let mut machine = machine();
        machine.in_mirror(GOOD);
        for expected in [
            "copied from the mirror",
            "a cached file was corrupt; copied",
        ] {
            machine.check(expected);
            assert_eq!(fs::read_to_string(machine.cached()).unwrap(), GOOD);
            machine.in_cache("corrupt");
        }
        fs::remove_file(machine.cached()).unwrap();
        let file = machine.in_mirror("corrupt");
        // A list of checksums that lies beside the file proves nothing.
        let list = format!("{}  {}\n", checksum::of_bytes(b"corrupt"), file.display());
        files::write(&machine.surroundings.mirror.join("SHA256SUMS"), &list).unwrap();
        let sha256 = checksum::of_bytes(b"corrupt");
        machine.check(&format!("error: {} has SHA-256 {sha256}", file.display()));
        assert!(!machine.cached().exists());
        // Without a pin, a mirror is not used; one that is named must have the file.
        machine.surroundings.archive.pinned = None;
        machine.check("none");
        machine.surroundings.mirror_is_named = true;
        fs::remove_file(file).unwrap();
        machine.check("error: CALLGATE_V8_MIRROR names …/mirror, which has no file");
    }
}
