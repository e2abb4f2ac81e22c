//! `cargo xtask api`: the list of the library's public items, read from its documentation.
//!
//! The list is in the repository, so that a change of the API shows in a diff. Each type that
//! an item mentions must itself be in the list: a host could not name it otherwise.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};

use crate::project::Project;
use crate::{files, process, say};

const LIST: &str = "crates/callgate/api.txt";
/// The most names in all, and at the crate's root.
const MAX_NAMES: [usize; 2] = [70, 30];
/// Kinds of anchors that name a member of an item.
const MEMBERS: &[&str] = &[
    "associatedconstant",
    "associatedtype",
    "method",
    "structfield",
    "tymethod",
    "variant",
];
/// Anchors of the sections that list implementations of traits.
const IMPLEMENTATIONS: &[&str] = &[
    "blanket-implementations",
    "foreign-impls",
    "implementors",
    "synthetic-implementations",
    "trait-implementations",
];

/// Writes the list.
pub(crate) fn write(project: &Project) -> Result<()> {
    files::write(&project.root.join(LIST), &list(project)?)?;
    say::result(format_args!("{LIST} is written"));
    Ok(())
}

/// Builds the documentation, and compares the public items with the list.
pub(crate) fn check(project: &Project) -> Result<()> {
    let now = list(project)?;
    let before = files::read(&project.root.join(LIST))?;
    let [before, now] = [&before, &now].map(|list| list.lines().collect::<BTreeSet<_>>());
    let added = now.difference(&before).map(|line| format!("+ {line}\n"));
    let gone = before.difference(&now).map(|line| format!("- {line}\n"));
    let changed: String = gone.chain(added).collect();
    ensure!(
        changed.is_empty(),
        "the library's API changed; `cargo xtask api` writes {LIST} anew:\n{changed}"
    );
    Ok(())
}

/// One line for each public item and each of its members.
fn list(project: &Project) -> Result<String> {
    say::step("documentation");
    let mut cargo = project.cargo();
    cargo.env("RUSTDOCFLAGS", "-D warnings");
    cargo.args(["doc", "--locked", "--workspace", "--lib", "--no-deps"]);
    process::run(&mut cargo)?;
    let folder = project.target_dir.join("doc/callgate");
    let index = files::read(&folder.join("all.html"))?;
    let mut lines = BTreeSet::new();
    let mut names = [0, 0];
    for (page, path) in links(&index) {
        let (kind, _) = page
            .rsplit('/')
            .next()
            .and_then(|file| file.split_once('.'))
            .with_context(|| format!("{page} is not the page of an item"))?;
        names[0] += 1;
        names[1] += usize::from(!path.contains("::"));
        let html = files::read(&folder.join(page))?;
        let html = own_part(&html);
        ensure!(
            !html.contains("../callgate_"),
            "{path} mentions a type of an internal crate that `callgate` does not export"
        );
        lines.insert(format!("{kind} {path}"));
        lines.extend(members(html).map(|member| format!("{kind} {path}: {member}")));
    }
    let [all, root] = names;
    say::detail(format_args!(
        "{all} public names, {root} of them at the root"
    ));
    ensure!(
        all <= MAX_NAMES[0] && root <= MAX_NAMES[1],
        "the library has {all} public names, {root} at its root; at most {MAX_NAMES:?}"
    );
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}

/// The pages of all items, with their paths in the crate.
fn links(index: &str) -> impl Iterator<Item = (&str, &str)> {
    let links = index.split("<a href=\"").skip(1);
    let links = links.filter_map(|link| link.split_once("</a>")?.0.split_once("\">"));
    links.filter(|(page, _)| page.contains('.') && !page.starts_with("../"))
}

/// The page before the implementations of traits.
fn own_part(html: &str) -> &str {
    let starts = IMPLEMENTATIONS
        .iter()
        .filter_map(|id| html.find(&format!("id=\"{id}\"")));
    starts.min().map_or(html, |end| &html[..end])
}

/// The members that the page has anchors for, such as `method run`.
fn members(html: &str) -> impl Iterator<Item = String> {
    let ids = html.split("id=\"").skip(1);
    let ids = ids.filter_map(|id| id.split_once('"')?.0.split_once('.'));
    let ids = ids.filter(|(kind, name)| MEMBERS.contains(kind) && !name.ends_with(".fields"));
    ids.map(|(kind, name)| format!("{kind} {name}"))
}
