//! Installs each package in an empty folder and runs it there, without cargo and with an empty home.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::Release;
use crate::files::{self, copy, write};
use crate::{demo, pinned, process, say};

/// The release of Debian with the oldest supported glibc.
const DEBIAN: &str = "bookworm";
const SYSTEM_PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
const WRONG_SCRIPT: &str = "const issue = await ticketing_createIsue({ title: 'a' });\n";

/// An installed package.
struct Installed {
    what: &'static str,
    /// The program and its leading arguments.
    command: Vec<PathBuf>,
    /// `PATH` of the command.
    path: String,
    /// The command's root folder.
    root: PathBuf,
    /// The command's home and working folder, below its root. Empty at first.
    home: PathBuf,
}

pub(super) fn all(release: &Release<'_>) -> Result<()> {
    let suite = pinned::conformance(release.project)?;
    for install in [from_tarball, from_npm, from_wheel, from_debian, from_image] {
        let started = Instant::now();
        let installed = install(release)?;
        let took = started.elapsed();
        let first_run = try_out(release, &installed, &suite)
            .with_context(|| format!("the package for {} does not work", installed.what))?;
        say::result(format_args!(
            "ok  {}: installed in {:.1} s, output of a first script {:.1} s later",
            installed.what,
            took.as_secs_f32(),
            first_run.as_secs_f32()
        ));
    }
    Ok(())
}

/// Below a folder with a space in its name.
fn from_tarball(release: &Release<'_>) -> Result<Installed> {
    let folder = unpacked(release, &release.scratch("installed/a tarball")?)?;
    installed("tarball", folder.join("bin/callgate"), "")
}

fn from_npm(release: &Release<'_>) -> Result<Installed> {
    let folder = release.scratch("installed/npm")?;
    write(&folder.join("package.json"), "{}\n")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--offline", "--no-audit", "--no-fund"]);
    for name in ["callgate", "callgate-linux-x64"] {
        let file = format!("{name}-{}.tgz", release.version);
        npm.arg(release.folder.join(file));
    }
    process::run(npm.current_dir(&folder))?;
    let node = process::output(Command::new("node").args(["-p", "process.execPath"]))?;
    let node = Path::new(node.trim())
        .parent()
        .context("node is in no folder")?;
    let program = folder.join("node_modules/.bin/callgate");
    installed("npm", program, &format!(":{}", node.display()))
}

fn from_wheel(release: &Release<'_>) -> Result<Installed> {
    let folder = release.scratch("installed/wheel")?;
    let (version, platform) = (release.version, release.platform());
    let wheel = format!("callgate-{version}-py3-none-{platform}.whl");
    let mut pip = pinned::pip_in(&folder)?;
    process::run(pip.arg("--no-index").arg(release.folder.join(wheel)))?;
    installed("wheel", folder.join("bin/callgate"), "")
}

fn from_debian(release: &Release<'_>) -> Result<Installed> {
    let root = root_file_system(release, "debian")?;
    let package = format!("callgate_{}_amd64.deb", release.version);
    let place = root.join("tmp/callgate.deb");
    copy(&release.folder.join(&package), &place)?;
    let mut dpkg = Command::new("chroot");
    dpkg.arg(&root).args(["dpkg", "-i", "/tmp/callgate.deb"]);
    process::run(dpkg.env("PATH", SYSTEM_PATH))?;
    in_root("Debian", root, 0)
}

/// Follows `packaging/Dockerfile`, with its user.
fn from_image(release: &Release<'_>) -> Result<Installed> {
    let root = root_file_system(release, "image")?;
    let opt = root.join("opt");
    files::empty(&opt)?;
    fs::rename(unpacked(release, &opt)?, opt.join("callgate"))?;
    let link = root.join("usr/bin/callgate");
    let _no_link_yet = fs::remove_file(&link);
    symlink("/opt/callgate/bin/callgate", link)?;
    in_root("image", root, 65532)
}

/// A new root file system with only Debian's smallest set of packages.
fn root_file_system(release: &Release<'_>, name: &str) -> Result<PathBuf> {
    let root = release.project.target_dir.join("dist/roots").join(name);
    if !root.join("usr/bin/dpkg").exists() {
        say::detail(format_args!(
            "a root file system of Debian {DEBIAN} (some minutes)"
        ));
        files::empty(&root)?;
        let mut debootstrap = Command::new("debootstrap");
        debootstrap.args(["--variant=minbase", DEBIAN]).arg(&root);
        process::run(&mut debootstrap)
            .context("this check runs as root and needs the package debootstrap")?;
    }
    Ok(root)
}

/// Unpacks the tarball in a folder; the folder that was in it.
fn unpacked(release: &Release<'_>, folder: &Path) -> Result<PathBuf> {
    let name = release.tarball();
    let mut tar = Command::new("tar");
    tar.arg("-xf")
        .arg(release.folder.join(format!("{name}.tar.gz")));
    process::run(tar.arg("-C").arg(folder))?;
    Ok(folder.join(name))
}

fn installed(what: &'static str, program: PathBuf, more_path: &str) -> Result<Installed> {
    let home = program
        .ancestors()
        .nth(2)
        .context("the program is in no folder")?
        .join("home");
    files::empty(&home)?;
    Ok(Installed {
        what,
        command: vec![program],
        path: format!("/usr/bin:/bin{more_path}"),
        root: "/".into(),
        home,
    })
}

/// The program in a root file system, run as this user, with its own `/proc`.
fn in_root(what: &'static str, root: PathBuf, user: u32) -> Result<Installed> {
    let home = root.join("tmp/home");
    files::empty(&home)?;
    chown(&home, Some(user), Some(user))?;
    let folder = format!("--root={}", root.display());
    let (group, user) = (format!("--setgid={user}"), format!("--setuid={user}"));
    let unshare = ["unshare", "--mount", "--pid", "--fork", "--mount-proc"];
    let program = [
        &*group,
        &user,
        &folder,
        "--wd=/tmp/home",
        "/usr/bin/callgate",
    ];
    Ok(Installed {
        what,
        command: unshare.iter().chain(&program).map(PathBuf::from).collect(),
        path: SYSTEM_PATH.to_owned(),
        root,
        home: "/tmp/home".into(),
    })
}

/// The configuration in the home folder. It is given by `--config`, so no person has to accept it.
const CONFIG: &str = "callgate.json";

/// Checks that a script runs, a wrong one does not, and a different client is served. Returns the time
/// until the script's output.
fn try_out(release: &Release<'_>, installed: &Installed, suite: &Path) -> Result<Duration> {
    let version = installed.run(&["--version"])?;
    expect(&version, 0, release.version)?;
    let home = installed.root.join(installed.home.strip_prefix("/")?);
    for server in demo::SERVERS {
        let built = release.project.built_as("dist", server);
        copy(&built, &home.join(server))?;
    }
    let config = demo::configuration(&installed.home);
    write(&home.join(CONFIG), &config)?;
    let script = release.project.root.join(demo::SCRIPT);
    copy(&script, &home.join("script.ts"))?;
    write(&home.join("wrong.ts"), WRONG_SCRIPT)?;
    let started = Instant::now();
    let ran = installed.run(&["--config", CONFIG, "run", "script.ts"])?;
    let first_run = started.elapsed();
    expect(&ran, 0, "filed 12 tickets")?;
    expect(&installed.run(&["--config", CONFIG, "doctor"])?, 0, "")?;
    let wrong = installed.run(&["--config", CONFIG, "run", "wrong.ts"])?;
    expect(&wrong, 1, "ticketing_createIssue")?;

    let launcher = "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
    let mut inspector = Command::new("node");
    inspector.arg(suite.join(launcher)).arg("--cli");
    // On the inspector's command line, `--config` would be its own option.
    let (command, before) = installed.command.split_first().context("no command")?;
    let args = before.iter().map(|it| it.display().to_string());
    let args = args.chain(["serve", "--config", CONFIG].map(str::to_owned));
    let entry = json!({ "command": command, "args": args.collect::<Vec<_>>() });
    let file = json!({ "mcpServers": { "callgate": entry } }).to_string();
    write(&home.join("inspector.json"), &file)?;
    inspector.args(["--config", "inspector.json", "--server", "callgate"]);
    inspector.args(["--method", "tools/call", "--tool-name", "run_script"]);
    inspector.args(["--tool-args-json", r#"{ "code": "return 6 * 7" }"#]);
    inspector.env("HOME", &home).current_dir(&home);
    expect(&inspector.output()?, 0, "42")?;
    Ok(first_run)
}

impl Installed {
    fn run(&self, arguments: &[&str]) -> Result<Output> {
        let (program, before) = self.command.split_first().context("there is no command")?;
        let mut command = Command::new(program);
        command.args(before).args(arguments).env_clear();
        command.env("PATH", &self.path).env("HOME", &self.home);
        if self.root == Path::new("/") {
            command.current_dir(&self.home);
        }
        say::detail(format_args!("$ callgate {}", arguments.join(" ")));
        Ok(command.output()?)
    }
}

/// An error unless the program ended with this code and printed this text.
fn expect(output: &Output, code: i32, text: &str) -> Result<()> {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    let all = String::from_utf8_lossy(&all);
    if output.status.code() != Some(code) || !all.contains(text) {
        let status = output.status;
        bail!("it ended with {status}, not with {code} and {text:?}: {all}");
    }
    Ok(())
}
