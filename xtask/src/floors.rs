//! `cargo xtask floors`: checks the layout of the workspace.
//!
//! - A crate uses only crates of lower floors.
//! - No file of a crate imports from the crate's own `lib.rs`.
//! - No circle of imports inside a crate has more than three files.
//! - Only `process`, `sandbox` and `worker` have unsafe code.
//! - Only dependencies that must move together are pinned with `=`.
//!
//! The rules do not apply to test code. Imports are found by their paths, without parsing Rust.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::project::Project;
use crate::say;

/// The crates by floor, lowest first, without `callgate-`.
const FLOORS: &[&str] = &[
    "text",
    "files policy process rust-types schema script typegen",
    "auth catalog check models sandbox store",
    "servers worker",
    "gate",
    "callgate",
    "serve",
    "cli",
];

/// Crates of tests and tools, which may use every crate.
const FREE: &[&str] = &["fixture-servers", "fuzz", "tests", "xtask"];

/// Crates that may have unsafe code.
const UNSAFE: &[&str] = &["process", "sandbox", "worker"];

/// Dependencies that are pinned with `=`: names or prefixes.
const PINNED: &[&str] = &["deno_core", "deno_error", "swc_", "rmcp"];

/// Maximum files in one circle of imports.
const MAX_CIRCLE: usize = 3;

pub(crate) fn run(project: &Project) -> Result<()> {
    check(project)?;
    say::result("the layout holds");
    Ok(())
}

/// Checks all rules; the error lists every fault.
pub(crate) fn check(project: &Project) -> Result<()> {
    say::step("floors");
    let mut faults = crate_faults(project)?;
    let manifest = fs::read_to_string(project.root.join("Cargo.toml"))?;
    faults.extend(pin_faults(&manifest));
    anyhow::ensure!(
        faults.is_empty(),
        "the layout does not hold (ARCHITECTURE.md has the rules):\n{}",
        faults.join("\n")
    );
    Ok(())
}

fn crate_faults(project: &Project) -> Result<Vec<String>> {
    let metadata = project.metadata(&["--no-deps", "--offline"])?;
    let floor = |name: &str| {
        let has = |floor: &&str| floor.split(' ').any(|one| one == name);
        FLOORS.iter().position(has)
    };
    let mut faults = Vec::new();
    for package in array(&metadata["packages"]) {
        let name = short(&package["name"]);
        if FREE.contains(&name) {
            continue;
        }
        let Some(own) = floor(name) else {
            faults.push(format!("{name} has no floor in xtask/src/floors.rs"));
            continue;
        };
        for dependency in array(&package["dependencies"]) {
            let used = short(&dependency["name"]);
            let counts = dependency["path"].is_string() && dependency["kind"] != "dev";
            if counts && floor(used).is_none_or(|floor| floor >= own) {
                faults.push(format!("{name} uses {used}, which is not on a lower floor"));
            }
        }
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let folder = manifest.parent().context("a package has a folder")?;
        faults.extend(Modules::read(&folder.join("src"))?.faults(name));
    }
    Ok(faults)
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The name of a crate, without `callgate-`.
fn short(name: &Value) -> &str {
    let name = name.as_str().unwrap_or_default();
    name.strip_prefix("callgate-").unwrap_or(name)
}

/// Faults in the version requirements of the workspace.
fn pin_faults(manifest: &str) -> impl Iterator<Item = String> {
    manifest.lines().filter_map(|line| {
        let (name, requirement) = line.split_once(" = ")?;
        let is_exact = requirement.starts_with("\"=") || requirement.contains("version = \"=");
        (is_exact && !PINNED.iter().any(|pinned| name.starts_with(pinned)))
            .then(|| format!("Cargo.toml pins {name} with `=`"))
    })
}

/// The source files of one crate, by module path: `["host", "pool"]` for `src/host/pool.rs`.
struct Modules(BTreeMap<Vec<String>, String>);

impl Modules {
    /// Reads the library's files, without test code, comments and strings.
    fn read(source: &Path) -> Result<Self> {
        let mut modules = BTreeMap::new();
        let mut folders = vec![(source.to_owned(), Vec::new())];
        while let Some((folder, path)) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let file: PathBuf = entry?.path();
                let stem = file.file_stem().unwrap_or_default().to_string_lossy();
                let mut path = path.clone();
                match &*stem {
                    "tests" | "fake" | "bin" => continue,
                    "lib" | "main" | "mod" => {}
                    name => path.push(name.to_owned()),
                }
                if file.is_dir() {
                    folders.push((file, path));
                } else if file.extension().is_some_and(|extension| extension == "rs") {
                    modules.insert(path, code(&fs::read_to_string(&file)?));
                }
            }
        }
        Ok(Self(modules))
    }

    fn faults(&self, crate_name: &str) -> Vec<String> {
        let mut faults = Vec::new();
        let mut imports = BTreeMap::new();
        for (module, code) in &self.0 {
            let shown = module.join("/");
            if !UNSAFE.contains(&crate_name)
                && code.split(|c| !is_word(c)).any(|word| word == "unsafe")
            {
                faults.push(format!("{crate_name}: {shown} has unsafe code"));
            }
            let mut used = BTreeSet::new();
            for path in self.paths(module, code) {
                let depth = (1..=path.len())
                    .take_while(|depth| self.0.contains_key(&path[..*depth]))
                    .count();
                let target = &path[..depth];
                if target.is_empty() && !module.is_empty() {
                    let name = path.join("::");
                    faults.push(format!("{crate_name}: {shown} imports {name} from lib.rs"));
                } else if target != module {
                    used.insert(target.to_vec());
                }
            }
            imports.insert(module.clone(), used);
        }
        for circle in circles(&imports) {
            let files: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
            let (count, files) = (files.len(), files.join(", "));
            faults.push(format!("{crate_name}: circle of {count} files: {files}"));
        }
        faults
    }

    /// The paths in a module's code that name something of the same crate, from the crate's root.
    fn paths(&self, module: &[String], code: &str) -> Vec<Vec<String>> {
        let mut paths = Vec::new();
        for (at, _) in code.match_indices("::") {
            let before = &code[..at];
            let start = before.trim_end_matches(is_word).len();
            if before[..start].ends_with("::") {
                continue;
            }
            let first = &before[start..];
            let mut child = module.to_vec();
            child.push(first.to_owned());
            let base = match first {
                "crate" => Vec::new(),
                "self" => module.to_vec(),
                "super" => module.split_last().map_or(&[][..], |(_, up)| up).to_vec(),
                _ if self.0.contains_key(&child) => child,
                _ => continue,
            };
            expand(&code[at + 2..], base, &mut paths);
        }
        paths
    }
}

/// Adds the paths that start with `base` and continue with the text: names, `super` or a list in
/// braces. Returns the text after them.
fn expand<'a>(text: &'a str, mut base: Vec<String>, paths: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut list) = text.strip_prefix('{') {
        while let Some(c) = list.trim_start().chars().next() {
            list = match c {
                '}' => return &list.trim_start()[1..],
                ',' => &list.trim_start()[1..],
                _ => expand(list, base.clone(), paths),
            };
        }
        return list;
    }
    let rest = text.trim_start_matches(is_word);
    let name = &text[..text.len() - rest.len()];
    match name {
        "super" => drop(base.pop()),
        "self" => {}
        name => base.push(name.to_owned()),
    }
    match rest.strip_prefix("::") {
        Some(rest) if !rest.starts_with('<') => expand(rest, base, paths),
        _ => {
            paths.push(base);
            // The rest of an item, such as `as Name`.
            rest.trim_start_matches(|c| !matches!(c, ',' | '}'))
        }
    }
}

/// Groups of modules that import each other, directly or not, with more than [`MAX_CIRCLE`] files.
fn circles(imports: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>) -> BTreeSet<Vec<&Vec<String>>> {
    let reachable = |from| {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(module) = open.pop() {
            for next in imports.get(module).into_iter().flatten() {
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reached: BTreeMap<_, _> = imports.keys().map(|from| (from, reachable(from))).collect();
    let circles = imports.keys().map(|from| {
        let both = |to: &&Vec<String>| reached.get(*to).is_some_and(|back| back.contains(from));
        reached[from]
            .iter()
            .copied()
            .filter(both)
            .collect::<Vec<_>>()
    });
    circles.filter(|circle| circle.len() > MAX_CIRCLE).collect()
}

/// Rust code without comments, texts in one line, and inline test modules.
fn code(source: &str) -> String {
    let source = source.split("\n#[cfg(test)]\nmod tests {").next();
    let lines = source.unwrap_or_default().lines().map(|line| {
        let line = line.split("//").next().unwrap_or_default();
        line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(files: &[(&str, &str)]) -> Modules {
        let file = |(name, text): &(&str, &str)| {
            let path = name.split('/').filter(|part| !part.is_empty());
            (path.map(str::to_owned).collect(), code(text))
        };
        Modules(files.iter().map(file).collect())
    }

    #[test]
    fn lib_imports_unsafe_code_and_cycles_are_faults() {
        let modules = modules(&[
            ("", "mod a; mod b; pub use a::A;"),
            (
                "a",
                "use crate::{A, b::{self, c::C}};\nunsafe { b::x(\"crate::No\") }",
            ),
            ("b", "mod c; use super::d; // crate::No"),
            ("b/c", "use super::super::a; use crate::b::X as Y;"),
            (
                "d",
                "use crate::a::A;\n#[cfg(test)]\nmod tests {\nuse crate::No;\n}",
            ),
        ]);
        let expected = [
            "x: a has unsafe code",
            "x: a imports A from lib.rs",
            "x: circle of 4 files: a, b, b/c, d",
        ];
        assert_eq!(modules.faults("x"), expected);
    }

    #[test]
    fn only_some_dependencies_may_be_pinned() {
        let manifest = "rmcp = { version = \"=3\" }\nswc_a = \"=1\"\nurl = \"=2\"\nhttp = \"1\"";
        let faults: Vec<_> = pin_faults(manifest).collect();
        assert_eq!(faults, ["Cargo.toml pins url with `=`"]);
    }
}
