//! `cargo xtask dist`: the packages, from one build in the profile `dist`, in `target/dist/packages`.
//!
//! All packages contain the same folder (`stage`): in `bin` the programs `callgate` and
//! `callgate-worker`, and in `lib/callgate` the type checker. `callgate` finds both relative to
//! itself.

mod check;
mod notices;
mod packages;
mod stage;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::project::Project;
use crate::{checksum, demo, files, process, say, setup, typescript};

/// The platform of the packages.
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Target sizes of a package in bytes: compressed, and installed.
const MAX_COMPRESSED: u64 = 45_000_000;
const MAX_INSTALLED: u64 = 115_000_000;

/// One release, and the folders that it is made in.
struct Release<'a> {
    project: &'a Project,
    /// The version of the workspace.
    version: &'static str,
    /// The lowest supported glibc, such as `2.34`.
    glibc: String,
    /// The folder that is installed.
    prefix: PathBuf,
    /// The folder of the packages.
    folder: PathBuf,
}

/// Makes the packages; with `check`, also installs and runs each.
pub(crate) fn run(project: &Project, check: bool) -> Result<()> {
    setup::for_build(project)?;
    let compiler = typescript::install(project)?;
    say::step("build in the profile `dist` (the first time: about forty minutes on two cores)");
    demo::build(project, "dist")?;

    say::step("packages");
    let folder = project.target_dir.join("dist/packages");
    files::empty(&folder)?;
    let release = Release {
        project,
        version: env!("CARGO_PKG_VERSION"),
        glibc: glibc(&demo::PROGRAMS.map(|name| project.built_as("dist", name)))?,
        prefix: project.target_dir.join("dist/prefix"),
        folder,
    };
    stage::fill(&release, &compiler)?;
    let files = packages::pack(&release)?;

    let mut sums = String::new();
    for file in &files {
        let name = files::name(file);
        sums += &format!("{}  {name}\n", checksum::of_file(file)?);
        let bytes = fs::metadata(file)?.len();
        say::result(format_args!("{:>7} MB  {name}", megabytes(bytes)));
    }
    files::write(&release.folder.join("SHA256SUMS"), &sums)?;
    let installed = release.kib()? << 10;
    say::result(format_args!(
        "{:>7} MB  installed; aims: {} MB, and {} MB for each package",
        megabytes(installed),
        megabytes(MAX_INSTALLED),
        megabytes(MAX_COMPRESSED)
    ));
    say::result(format_args!("glibc {} or later", release.glibc));
    if check {
        check::all(&release)?;
    }
    Ok(())
}

impl Release<'_> {
    /// The name of the tarball and of the folder in it.
    fn tarball(&self) -> String {
        format!("callgate-{}-{TARGET}", self.version)
    }

    /// The platform tag of wheels (PEP 600).
    fn platform(&self) -> String {
        format!("manylinux_{}_x86_64", self.glibc.replace('.', "_"))
    }

    fn kib(&self) -> Result<u64> {
        let mut du = Command::new("du");
        du.args(["--summarize", "--apparent-size", "--block-size=1K"]);
        let size = process::output(du.arg(&self.prefix))?;
        let size = size.split_whitespace().next().unwrap_or_default();
        size.parse().context("du prints no size")
    }

    /// An empty folder for parts of packages.
    fn scratch(&self, name: &str) -> Result<PathBuf> {
        let folder = self.project.target_dir.join("dist").join(name);
        files::empty(&folder)?;
        Ok(folder)
    }
}

/// The highest version of glibc whose symbols the programs use.
fn glibc(programs: &[PathBuf]) -> Result<String> {
    let symbols = process::output(Command::new("objdump").arg("-T").args(programs))?;
    let versions = symbols.split("GLIBC_").skip(1).map(|version| {
        let end = version.find(|c: char| c != '.' && !c.is_ascii_digit());
        let mut parts = version[..end.unwrap_or(version.len())].split('.');
        let mut part = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
        (part(), part())
    });
    let (major, minor): (u32, u32) = versions.max().unwrap_or_default();
    Ok(format!("{major}.{minor}"))
}

/// Bytes as tenths of megabytes, in text.
fn megabytes(bytes: u64) -> String {
    format!("{}.{}", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}
