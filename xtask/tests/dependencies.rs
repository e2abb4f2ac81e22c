//! The locked dependencies: their licences, sources and versions. Advisories are not checked, because
//! their database is not in a package registry.

use std::process::Command;

use serde_json::Value;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Licences that permit distribution in a package with the notices that `cargo xtask dist` collects.
/// A new one needs a look at its conditions.
const LICENCES: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CDLA-Permissive-2.0", // data: the root certificates
    "ISC",
    "MIT",
    "MIT-0",
    "NCSA",
    "Unicode-3.0",
    "Zlib",
];

/// Packages with a licence that is not on the list, each with a reason.
const EXCEPTIONS: [(&str, &str); 1] = [
    // Unmodified, and its source is public (MPL-2.0, section 3.2).
    ("cooked-waker", "MPL-2.0"),
];

/// Packages of which a second version would double a large or security-relevant part of the program.
const SINGLE: [&str; 12] = [
    "axum",
    "deno_core",
    "hyper",
    "jsonschema",
    "reqwest",
    "rmcp",
    "rustls",
    "serde",
    "serde_json",
    "tokio",
    "url",
    "v8",
];

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn packages() -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut metadata = Command::new(cargo);
    metadata.args(["metadata", "--locked", "--format-version", "1"]);
    let output = metadata.output().expect("cargo");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let mut metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    match metadata["packages"].take() {
        Value::Array(packages) => packages,
        other => panic!("no packages: {other}"),
    }
}

/// True for an expression of groups joined by `AND`, each with a permitted alternative. Another form
/// of expression is refused.
fn is_permitted(licence: &str) -> bool {
    licence.replace('/', " OR ").split(" AND ").all(|group| {
        let group = group.trim_matches(['(', ')']);
        let mut alternatives = group.split(" OR ").map(str::trim);
        alternatives.any(|alternative| LICENCES.contains(&alternative))
    })
}

#[test]
fn locked_dependencies_have_permitted_licences_sources_and_versions() {
    let packages = packages();
    let mut faults = Vec::new();
    for package in &packages {
        let (name, licence) = (text(&package["name"]), text(&package["license"]));
        if !is_permitted(licence) && !EXCEPTIONS.contains(&(name, licence)) {
            faults.push(format!("{name} has the licence {licence:?}"));
        }
        let source = &package["source"];
        if !source.is_null() && source != REGISTRY {
            faults.push(format!("{name} comes from {source}"));
        }
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        for dependency in dependencies.filter(|_| source.is_null()) {
            if dependency["path"].is_null() && dependency["req"] == "*" {
                faults.push(format!(
                    "{name} takes any version of {}",
                    dependency["name"]
                ));
            }
        }
    }
    for name in SINGLE {
        let versions = packages.iter().filter(|package| package["name"] == name);
        let versions: Vec<&str> = versions.map(|it| text(&it["version"])).collect();
        if versions.len() != 1 {
            faults.push(format!("{name} has the versions {versions:?}, not one"));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn licence_needs_a_permitted_alternative_in_each_group() {
    for good in ["MIT", "MIT/Apache-2.0", "(GPL-3.0 OR MIT) AND Unicode-3.0"] {
        assert!(is_permitted(good), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT AND GPL-3.0) OR AGPL-3.0",
    ] {
        assert!(!is_permitted(bad), "{bad}");
    }
}
