//! The packages: a tarball, two npm packages, a wheel, and a Debian package, made by the tools of each
//! kind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::Release;
use crate::files::{self, copy, copy_all, write};
use crate::{pinned, process};

/// Makes every package and returns the files.
pub(super) fn pack(release: &Release<'_>) -> Result<Vec<PathBuf>> {
    let mut files = vec![tarball(release)?];
    files.extend(npm_packages(release)?);
    files.push(wheel(release)?);
    files.push(debian(release)?);
    let documents = release.prefix.join("share/doc/callgate");
    for name in ["THIRD-PARTY.txt", "callgate.cdx.json"] {
        let file = release.folder.join(name);
        copy(&documents.join(name), &file)?;
        files.push(file);
    }
    Ok(files)
}

fn tarball(release: &Release<'_>) -> Result<PathBuf> {
    let name = release.tarball();
    let file = release.folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    // Makes the archive reproducible.
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--mtime=@0", &format!("--transform=s,^\\.,{name},")]);
    tar.args(["--use-compress-program=gzip -9n", "-cf"])
        .arg(&file);
    tar.arg("-C").arg(&release.prefix).arg(".");
    process::run(&mut tar)?;
    Ok(file)
}

/// The launcher, and the programs of this platform.
fn npm_packages(release: &Release<'_>) -> Result<[PathBuf; 2]> {
    let root = &release.project.root;
    let templates = root.join("packaging/npm");
    let launcher = release.scratch("scratch/npm-callgate")?;
    let manifest = "package.json";
    fill_template(release, &templates.join(manifest), &launcher.join(manifest))?;
    let program = "callgate.js";
    copy(&templates.join(program), &launcher.join(program))?;
    let platform = release.scratch("scratch/npm-linux-x64")?;
    let template = templates.join("linux-x64.json");
    fill_template(release, &template, &platform.join(manifest))?;
    copy_all(&release.prefix, &platform)?;
    for folder in [&launcher, &platform] {
        copy(&root.join("LICENSE"), &folder.join("LICENSE"))?;
    }
    copy(&root.join("README.md"), &launcher.join("README.md"))?;
    let pack = |folder: &Path, name: &str| -> Result<PathBuf> {
        let mut npm = Command::new("npm");
        npm.args(["pack", "--silent", "--pack-destination"]);
        npm.arg(&release.folder).current_dir(folder);
        process::run(&mut npm)?;
        let file = format!("{name}-{}.tgz", release.version);
        Ok(release.folder.join(file))
    };
    Ok([
        pack(&launcher, "callgate")?,
        pack(&platform, "callgate-linux-x64")?,
    ])
}

/// The program is a script of the wheel; the other files are in `lib/callgate` of the environment.
fn wheel(release: &Release<'_>) -> Result<PathBuf> {
    let templates = release.project.root.join("packaging/python");
    let folder = release.scratch("scratch/wheel")?;
    let name = format!("callgate-{}", release.version);
    let data = folder.join(format!("{name}.data"));
    copy_all(&release.prefix.join("bin"), &data.join("scripts"))?;
    for part in ["lib", "share"] {
        copy_all(&release.prefix.join(part), &data.join("data").join(part))?;
    }
    let info = folder.join(format!("{name}.dist-info"));
    fill_template(release, &templates.join("WHEEL"), &info.join("WHEEL"))?;
    fill_template(release, &templates.join("METADATA"), &info.join("METADATA"))?;
    let readme = files::read(&release.project.root.join("README.md"))?;
    let metadata = files::read(&info.join("METADATA"))? + &readme;
    write(&info.join("METADATA"), &metadata)?;
    let license = release.project.root.join("LICENSE");
    copy(&license, &info.join("licenses/LICENSE"))?;

    let tools = release.project.target_dir.join("tools/wheel");
    pinned::pip(&templates, &tools, "the packer of wheels", &[])?;
    let mut wheel = Command::new(pinned::python_in(&tools));
    wheel.args(["-m", "wheel", "pack", "--dest-dir"]);
    process::run(wheel.arg(&release.folder).arg(&folder))?;
    let file = format!("{name}-py3-none-{}.whl", release.platform());
    Ok(release.folder.join(file))
}

fn debian(release: &Release<'_>) -> Result<PathBuf> {
    let folder = release.scratch("scratch/deb")?;
    copy_all(&release.prefix, &folder.join("usr"))?;
    let documents = folder.join("usr/share/doc/callgate");
    fs::rename(documents.join("LICENSE"), documents.join("copyright"))?;
    let control = release.project.root.join("packaging/debian/control");
    fill_template(release, &control, &folder.join("DEBIAN/control"))?;
    let file = format!("callgate_{}_amd64.deb", release.version);
    let file = release.folder.join(file);
    let mut deb = Command::new("dpkg-deb");
    deb.args(["--root-owner-group", "--build", "-Zxz"]);
    process::run(deb.arg(&folder).arg(&file))?;
    Ok(file)
}

/// Copies a template and replaces each `@NAME@` by the release's value.
fn fill_template(release: &Release<'_>, from: &Path, to: &Path) -> Result<()> {
    let text = files::read(from)?
        .replace("@VERSION@", release.version)
        .replace("@GLIBC@", &release.glibc)
        .replace("@PLATFORM@", &release.platform())
        .replace("@KIB@", &release.kib()?.to_string());
    write(to, &text).with_context(|| format!("from {}", from.display()))
}
