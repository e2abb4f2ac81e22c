//! `cargo xtask fuzz`: the fuzz targets under libFuzzer, with the stable toolchain.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::project::Project;
use crate::{files, process, say};

/// The only tested platform.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
/// The instrumentation for libFuzzer. `cargo fuzz` sets the same, and a sanitizer, which needs a
/// nightly compiler.
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
     -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
     -Cdebug-assertions -Coverflow-checks --cfg fuzzing";
/// Targets that run at the same time.
const AT_ONCE: usize = 2;

#[derive(Args)]
pub(crate) struct Options {
    /// Minutes for each target.
    #[arg(long, default_value_t = 1)]
    minutes: u64,
    /// Names of targets, if not all: the folders in `fuzz/seeds`.
    targets: Vec<String>,
}

pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    let folder = project.target_dir.join("fuzz");
    say::step("build (the first time: about six minutes on two cores)");
    let mut build = project.cargo();
    build.args(["build", "--locked", "--release", "--target", TRIPLE]);
    build.args(["--package", "callgate-fuzz", "--features", "libfuzzer"]);
    build.env("RUSTFLAGS", FLAGS);
    process::run(build.arg("--target-dir").arg(&folder))?;
    let program = folder.join(TRIPLE).join("release/callgate-fuzz");

    let seeds = project.root.join("fuzz/seeds");
    let mut targets = options.targets.clone();
    if targets.is_empty() {
        let entries = fs::read_dir(&seeds)?.collect::<Result<Vec<_>, _>>()?;
        targets.extend(entries.iter().map(|it| files::name(&it.path())));
        targets.sort();
    }
    let mut failed = Vec::new();
    for some in targets.chunks(AT_ONCE) {
        let (names, minutes) = (some.join(" and "), options.minutes);
        say::step(format_args!("{names} for {minutes} min"));
        let started = some.iter().map(|target| {
            let child = start(&program, &folder, &seeds.join(target), target, minutes);
            Ok((target, child?))
        });
        for (target, mut child) in started.collect::<Result<Vec<_>>>()? {
            if !child.wait()?.success() {
                failed.push(target.as_str());
            }
        }
    }
    if !failed.is_empty() {
        bail!(
            "failed: {}; the inputs are in {}, the messages in NAME.log there; fix the code, and \
             keep each input in fuzz/seeds",
            failed.join(", "),
            folder.join("found").display()
        );
    }
    say::result("no target failed");
    Ok(())
}

fn start(program: &Path, folder: &Path, seeds: &Path, target: &str, minutes: u64) -> Result<Child> {
    let (corpus, found) = (folder.join("corpus").join(target), folder.join("found"));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&found)?;
    let log = fs::File::create(found.join(format!("{target}.log")))?;
    let mut fuzz = Command::new(program);
    fuzz.env("CALLGATE_FUZZ_TARGET", target);
    fuzz.arg(format!("-max_total_time={}", minutes * 60));
    fuzz.args(["-timeout=10", "-rss_limit_mb=4096", "-max_len=4096"]);
    fuzz.arg(format!("-artifact_prefix={}/{target}-", found.display()));
    fuzz.arg(corpus).arg(seeds);
    fuzz.stdout(log.try_clone()?).stderr(log);
    fuzz.spawn().context("cannot start the fuzzer")
}
