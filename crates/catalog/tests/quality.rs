//! How well tools are found: queries in natural words over real tools, each with
//! the tools that are right. Ranking is tuned on `tune.jsonl` alone.
//!
//! The tools of other people's servers are not in the repository. `cargo xtask search-quality`
//! installs the servers, lists their tools and runs this with the table.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails the test")]
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use callgate_catalog::search::{Entry, Ranked, SearchIndex};
use callgate_catalog::{Catalog, ToolDefinition};
use serde_json::Value;

/// Names the folder with a list of tools for each server.
const VARIABLE: &str = "CALLGATE_TOOL_CORPUS";

/// A query and the tools that are right, each as `server/tool`.
struct Labelled {
    query: String,
    right: HashSet<String>,
}

/// How well a strategy did on a set of queries.
#[derive(Debug, Clone, Copy)]
struct Quality {
    /// The part of the queries with a right tool in the first place.
    first: f64,
    /// The part with one among the first five.
    five: f64,
    /// The mean of 1 / place of the first right tool, 0 beyond the tenth.
    reciprocal: f64,
}

#[test]
fn the_labelled_queries_are_sound() {
    let (tune, held) = (labelled("tune"), labelled("held"));
    assert!(tune.len() + held.len() >= 200);
    assert!(tune.len().abs_diff(held.len()) <= 1);
    let both = tune.iter().chain(&held);
    let distinct: HashSet<&str> = both.clone().map(|one| one.query.as_str()).collect();
    assert_eq!(distinct.len(), tune.len() + held.len());
    assert!(both.clone().all(|one| !one.right.is_empty()));
    // Without the tools it can be told at least that their servers are among those that are listed.
    let servers = servers();
    for path in both.clone().flat_map(|one| &one.right) {
        let server = path.split('/').next().unwrap_or_default();
        assert!(servers.contains(server), "{path}");
    }
    let Some(corpus) = corpus() else { return };
    let tools = paths(&corpus);
    for Labelled { query, right } in both {
        assert!(right.is_subset(&tools), "{query}: {right:?}");
    }
}

#[test]
fn real_tools_are_found() {
    let Some(catalog) = corpus() else { return };
    let index = index(&catalog);
    let servers = catalog.by_server().len();
    println!("\n{} tools of {servers} servers", catalog.tools().len());
    println!(
        "{:<34} {:>9} {:>9} {:>9}",
        "", "recall@1", "recall@5", "MRR"
    );
    let words = |query: &str| index.by_words(query, |_| true, 10).ranked;
    let in_names = |query: &str| having_words_in_name(&catalog, query);
    // A little below what `docs/search.md` says.
    for (set, floors) in [("tune", [0.46, 0.73, 0.57]), ("held", [0.42, 0.74, 0.55])] {
        let queries = labelled(set);
        let what = format!("{set}, {} queries", queries.len());
        measured(&catalog, &queries, in_names).print(&format!("{what}: words in names"));
        let found = measured(&catalog, &queries, words);
        found.print(&format!("{what}: words"));
        let [first, five, reciprocal] = floors;
        found.is_at_least(first, five, reciprocal);
    }
    let mangled = mangled_names(&catalog);
    let found = measured(&catalog, &mangled, words);
    found.print(&format!("{} mangled names: words", mangled.len()));
    found.is_at_least(0.98, 0.99, 0.98);
}

fn measured<'a>(
    catalog: &Catalog,
    queries: &[Labelled],
    search: impl Fn(&str) -> Vec<Ranked<'a>>,
) -> Quality {
    let mut sums = [0.0; 3];
    for one in queries {
        let found = search(&one.query);
        let is_right = |ranked: &Ranked<'_>| one.right.contains(&path(catalog, ranked));
        if let Some(place) = found.iter().position(is_right) {
            let [first, five] = [place < 1, place < 5].map(|is| f64::from(u8::from(is)));
            for (sum, score) in sums.iter_mut().zip([first, five, 1.0 / (place + 1) as f64]) {
                *sum += score;
            }
        }
    }
    let [first, five, reciprocal] = sums.map(|sum| sum / queries.len() as f64);
    Quality {
        first,
        five,
        reciprocal,
    }
}

impl Quality {
    #[track_caller]
    fn is_at_least(self, first: f64, five: f64, reciprocal: f64) {
        let is_good = self.first >= first && self.five >= five && self.reciprocal >= reciprocal;
        assert!(
            is_good,
            "{self:?} is less than {first}, {five}, {reciprocal}"
        );
    }

    fn print(self, what: &str) {
        let Self {
            first,
            five,
            reciprocal,
        } = self;
        println!("{what:<34} {first:>9.3} {five:>9.3} {reciprocal:>9.3}");
    }
}

fn index(catalog: &Catalog) -> SearchIndex {
    SearchIndex::build(catalog.tools().iter().map(|tool| Entry {
        function: &tool.function,
        definition: &tool.definition,
        keywords: Vec::new(),
        about: None,
    }))
}

/// The baseline: tools with the most words of the query in their function's name.
fn having_words_in_name<'a>(catalog: &'a Catalog, query: &str) -> Vec<Ranked<'a>> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query.split(' ').filter(|word| word.len() > 2).collect();
    let ranked = catalog.tools().iter().map(|tool| {
        let name = tool.function.to_lowercase();
        Ranked {
            function: &tool.function,
            server: &tool.definition.server,
            score: words.iter().filter(|word| name.contains(*word)).count() as f64,
        }
    });
    let mut ranked: Vec<Ranked<'a>> = ranked.filter(|ranked| ranked.score > 0.0).collect();
    ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.function.cmp(b.function)));
    ranked.truncate(10);
    ranked
}

/// Names as a person types them from memory: without the
/// server, with other separators, with a letter missing or two swapped.
fn mangled_names(catalog: &Catalog) -> Vec<Labelled> {
    let tools = catalog.tools();
    let mangled = tools.iter().enumerate().map(|(index, tool)| {
        let (function, name) = (&tool.function, &tool.definition.name);
        let at = function.len() / 2;
        let query = match index % 4 {
            0 => name.replace(['_', '-'], ""),
            1 => format!("{}{}", &function[..at], &function[at + 1..]),
            2 => name.to_uppercase().replace('_', "-"),
            _ => {
                let mut letters: Vec<char> = function.chars().collect();
                letters.swap(at - 1, at);
                letters.into_iter().collect()
            }
        };
        // Without its server, a name is that of all servers that have it.
        let is_bare = index % 2 == 0;
        let right = tools.iter().filter(|other| {
            other.function == *function || is_bare && other.definition.name == *name
        });
        Labelled {
            query,
            right: right.map(|other| path_of(&other.definition)).collect(),
        }
    });
    mangled.collect()
}

fn paths(catalog: &Catalog) -> HashSet<String> {
    let tools = catalog.tools().iter();
    tools.map(|tool| path_of(&tool.definition)).collect()
}

fn path(catalog: &Catalog, ranked: &Ranked<'_>) -> String {
    path_of(&catalog.get(ranked.function).unwrap().definition)
}

fn path_of(definition: &ToolDefinition) -> String {
    format!("{}/{}", definition.server, definition.name)
}

fn labelled(set: &str) -> Vec<Labelled> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/queries")
        .join(format!("{set}.jsonl"));
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let right = line["tools"].as_array().unwrap().iter();
        let right = right.map(|tool| tool.as_str().unwrap().to_owned());
        Labelled {
            query: line["query"].as_str().unwrap().to_owned(),
            right: right.collect(),
        }
    });
    lines.collect()
}

/// The servers whose tools `cargo xtask corpus` lists.
fn servers() -> HashSet<String> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tool-corpus/servers.json");
    let listed: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let names = listed.as_array().unwrap().iter();
    let names = names.map(|server| server["name"].as_str().unwrap().to_owned());
    // That one is no package.
    names.chain(["github".to_owned()]).collect()
}

/// The tools of all servers, if they have been listed.
fn corpus() -> Option<Catalog> {
    let Some(folder) = std::env::var_os(VARIABLE) else {
        println!("skipped: {VARIABLE} names no folder; `cargo xtask search-quality` does");
        return None;
    };
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    let all = files.iter().flat_map(|file| {
        let server = file.file_stem().unwrap().to_str().unwrap();
        definitions(server, file)
    });
    Some(Catalog::build(all.collect()))
}

fn definitions(server: &str, file: &Path) -> Vec<ToolDefinition> {
    let listed: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let tools = listed["tools"].as_array().unwrap().iter();
    let parsed = tools.map(|tool| ToolDefinition::parse(server, tool).unwrap());
    parsed.collect()
}
