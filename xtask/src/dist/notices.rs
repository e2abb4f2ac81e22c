//! Notices in the packages: an SBOM (CycloneDX) and the licences of all dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Release, TARGET};
use crate::files;

pub(super) struct Notices {
    pub(super) licences: String,
    pub(super) sbom: String,
}

/// Further folders of licences in a package.
const MORE_FOLDERS: [&str; 3] = ["v8", "third_party/icu", "v8/third_party/icu"];

pub(super) fn make(release: &Release<'_>, compiler: &Path) -> Result<Notices> {
    let platform = ["--locked", "--filter-platform", TARGET];
    let metadata = release.project.metadata(&platform)?;
    let linked = linked(&metadata);
    let mut dependencies = Dependencies::default();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        // A package of the workspace has no source.
        if linked.contains(text(&package["id"])) && !package["source"].is_null() {
            let manifest = Path::new(text(&package["manifest_path"]));
            let folder = manifest.parent().context("a manifest is in no folder")?;
            dependencies.add("cargo", package, folder);
        }
    }
    let folder = compiler.ancestors().nth(2);
    let folder = folder.context("the compiler is in no package")?;
    let manifest = files::read(&folder.join("package.json"))?;
    dependencies.add("npm", &serde_json::from_str(&manifest)?, folder);

    let Dependencies { components, texts } = dependencies;
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
    let nodes = metadata["resolve"]["nodes"].as_array();
    let nodes = nodes.into_iter().flatten();
    let nodes: BTreeMap<&str, &Value> = nodes.map(|node| (text(&node["id"]), node)).collect();
    let ids = nodes.keys().copied();
    let mut open: Vec<&str> = ids.filter(|id| id.contains("callgate-cli")).collect();
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

#[derive(Default)]
struct Dependencies {
    /// The components of the SBOM.
    components: Vec<Value>,
    /// Packages by the text of their licence: many have the same.
    texts: BTreeMap<String, BTreeSet<String>>,
}

impl Dependencies {
    /// Adds a package with the licence files in its folder.
    fn add(&mut self, ecosystem: &str, package: &Value, folder: &Path) {
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let license = text(&package["license"]);
        self.components.push(json!({
            "type": "library",
            "name": name,
            "version": version,
            "purl": format!("pkg:{ecosystem}/{}@{version}", name.replace('@', "%40")),
            "licenses": [{ "expression": license }],
        }));
        let mut found = licence_files(folder);
        for more in MORE_FOLDERS {
            found.extend(licence_files(&folder.join(more)));
        }
        if found.is_empty() {
            found.push("The package has no licence file.".to_owned());
        }
        for licence in found {
            let packages = self.texts.entry(licence).or_default();
            packages.insert(format!("{name} {version} ({license})"));
        }
    }
}

fn licence_files(folder: &Path) -> Vec<String> {
    const PREFIXES: [&str; 5] = [
        "LICENSE",
        "LICENCE",
        "COPYING",
        "NOTICE",
        "THIRDPARTYNOTICE",
    ];
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| {
        let name = files::name(path).to_uppercase();
        path.is_file() && PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    });
    files.sort();
    let texts = files.iter().filter_map(|path| fs::read(path).ok());
    texts
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
