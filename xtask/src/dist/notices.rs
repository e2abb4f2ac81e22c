//! Notices in the packages: an SBOM (CycloneDX) and the licences of all dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Release, TARGET};
use crate::project::Project;
use crate::{files, process};

pub(super) struct Notices {
    pub(super) licences: String,
    pub(super) sbom: String,
}

/// Folders of licences in a package, besides its own.
const MORE_FOLDERS: [&str; 3] = ["v8", "third_party/icu", "v8/third_party/icu"];

/// The output of `cargo metadata`: the workspace and its dependencies, for the target of the
/// packages.
pub(super) fn metadata(project: &Project) -> Result<Value> {
    let mut cargo = project.cargo();
    cargo.args(["metadata", "--locked", "--format-version", "1"]);
    cargo.args(["--filter-platform", TARGET]);
    serde_json::from_str(&process::output(&mut cargo)?).context("cargo metadata is not JSON")
}

pub(super) fn make(release: &Release<'_>, compiler: &Path) -> Result<Notices> {
    let metadata = metadata(release.project)?;
    let linked = linked(&metadata);
    let mut components = Vec::new();
    // Packages by the text of a licence: many have the same.
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        // A package of the workspace has no source.
        if !linked.contains(text(&package["id"])) || package["source"].is_null() {
            continue;
        }
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let license = text(&package["license"]);
        components.push(component("cargo", name, version, license));
        let manifest = Path::new(text(&package["manifest_path"]));
        let folder = manifest.parent().context("a manifest lies in no folder")?;
        let shown = format!("{name} {version} ({license})");
        let mut found = licence_files(folder);
        found.extend(
            MORE_FOLDERS
                .iter()
                .flat_map(|more| licence_files(&folder.join(more))),
        );
        if found.is_empty() {
            found.push("The package has no licence file.".to_owned());
        }
        for licence in found {
            texts.entry(licence).or_default().insert(shown.clone());
        }
    }
    let package = compiler
        .ancestors()
        .nth(2)
        .context("the compiler is in no package")?;
    let manifest: Value = serde_json::from_str(&files::read(&package.join("package.json"))?)?;
    let (name, version) = (text(&manifest["name"]), text(&manifest["version"]));
    components.push(component("npm", name, version, text(&manifest["license"])));
    for licence in licence_files(package) {
        texts
            .entry(licence)
            .or_default()
            .insert(format!("{name} {version}"));
    }

    let mut licences = String::new();
    for (licence, packages) in texts {
        for package in packages {
            licences += &format!("{package}\n");
        }
        licences += &format!("\n{}\n\n{}\n\n", licence.trim(), "-".repeat(80));
    }
    let sbom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "name": "callgate", "version": release.version,
            "licenses": [{ "license": { "id": "Apache-2.0" } }],
        } },
        "components": components,
    });
    Ok(Notices {
        licences,
        sbom: format!("{sbom:#}\n"),
    })
}

/// Ids of the packages that are linked into the programs.
fn linked(metadata: &Value) -> BTreeSet<&str> {
    let nodes = metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten();
    let nodes: BTreeMap<&str, &Value> = nodes.map(|node| (text(&node["id"]), node)).collect();
    let mut open: Vec<&str> = nodes
        .keys()
        .filter(|id| id.contains("callgate-cli"))
        .copied()
        .collect();
    let mut linked = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !linked.insert(id) {
            continue;
        }
        let needs = nodes.get(id).and_then(|node| node["deps"].as_array());
        for need in needs.into_iter().flatten() {
            // A dependency of builds or tests has a kind.
            let kinds = need["dep_kinds"].as_array().into_iter().flatten();
            if kinds.into_iter().any(|kind| kind["kind"].is_null()) {
                open.push(text(&need["pkg"]));
            }
        }
    }
    linked
}

fn component(ecosystem: &str, name: &str, version: &str, license: &str) -> Value {
    json!({
        "type": "library",
        "name": name,
        "version": version,
        "purl": format!("pkg:{ecosystem}/{}@{version}", name.replace('@', "%40")),
        "licenses": [{ "expression": license }],
    })
}

fn licence_files(folder: &Path) -> Vec<String> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = files::name(path).to_uppercase();
            let starts = [
                "LICENSE",
                "LICENCE",
                "COPYING",
                "NOTICE",
                "THIRDPARTYNOTICE",
            ];
            path.is_file() && starts.iter().any(|start| name.starts_with(start))
        })
        .collect();
    files.sort();
    let texts = files.iter().filter_map(|path| fs::read(path).ok());
    texts
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
