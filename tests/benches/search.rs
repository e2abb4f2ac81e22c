//! What finding tools costs among many: the time of a query, of making the
//! index, and what it takes up.
//!
//! The tools are real ones, if their lists are there (`../shared/corpus`, and the
//! folder that `CALLGATE_TOOL_CORPUS` names), repeated under other names until
//! there are as many as asked for.

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate_catalog::search::{Entry, SearchIndex};
use callgate_catalog::{Catalog, ToolDefinition};
use serde_json::{Value, json};

/// How often every query is asked.
const ROUNDS: usize = 20;
/// How often the index is made; the shortest time counts.
const BUILDS: usize = 5;

fn main() {
    let real = real_tools();
    let queries = queries();
    println!(
        "search, over {} real tools, repeated; {} queries",
        real.len(),
        queries.len()
    );
    println!(
        "{:<8} {:>10} {:>12} {:>6} {:>10} {:>10} {:>10} {:>10}",
        "tools", "index", "one changed", "MB", "p50", "p99", "best p99", "regex p50"
    );
    for tools in [100, 1_000, 10_000] {
        measure(tools, &real, &queries);
    }
}

fn measure(tools: usize, real: &[Value], queries: &[String]) {
    let definitions = (0..tools).map(|n| {
        let (round, at) = (n / real.len(), n % real.len());
        let mut raw = real[at].clone();
        if round > 0 {
            let name = raw["name"].as_str().unwrap_or_default();
            raw["name"] = json!(format!("{name}_{}", VARIED[round % VARIED.len()]));
        }
        let server = format!("server{}", n / 50);
        ToolDefinition::parse(&server, &raw).expect("a tool")
    });
    let catalog = Catalog::build(definitions.collect());
    let index = SearchIndex::build(entries(&catalog));
    let built = shortest(|| {
        black_box(SearchIndex::build(entries(&catalog)));
    });
    let changed = one_changed(&catalog);
    let rebuilt = shortest(|| {
        black_box(SearchIndex::build_after(&index, entries(&changed)));
    });
    let (words, best) = times(queries, |query| {
        black_box(index.by_words(query, |_| true, 10));
    });
    let patterns: Vec<String> = queries
        .iter()
        .take(20)
        .map(|query| query.replace(' ', ".*"))
        .collect();
    let (regex, _) = times(&patterns, |pattern| {
        black_box(index.by_pattern(pattern, |_| true, 10, || true).is_ok());
    });
    let at = |times: &[Duration], percent: usize| times[(times.len() - 1) * percent / 100];
    println!(
        "{tools:<8} {built:>10.1?} {rebuilt:>12.1?} {:>6.1} {:>10.1?} {:>10.1?} {:>10.1?} {:>10.1?}",
        index.bytes() as f64 / 1e6,
        at(&words, 50),
        at(&words, 99),
        at(&best, 99),
        at(&regex, 50),
    );
}

/// Words that names are varied with.
const VARIED: &[&str] = &[
    "draft", "batch", "archive", "team", "report", "history", "remote", "shared", "daily",
    "legacy", "external", "internal", "public", "private", "group", "template", "backup", "audit",
];

fn entries(catalog: &Catalog) -> impl Iterator<Item = Entry<'_>> {
    catalog.tools().iter().map(|tool| Entry {
        function: &tool.function,
        definition: &tool.definition,
        keywords: Vec::new(),
        about: None,
    })
}

/// The catalog after one server has listed its tools anew.
fn one_changed(catalog: &Catalog) -> Catalog {
    let tools = catalog.tools().iter().map(|tool| {
        let definition = &tool.definition;
        match definition.server.as_str() {
            "server0" => Arc::new(ToolDefinition::clone(definition)),
            _ => Arc::clone(definition),
        }
    });
    Catalog::build_after(catalog.names(), tools.collect())
}

fn shortest(mut make: impl FnMut()) -> Duration {
    let times = (0..BUILDS).map(|_| {
        let before = Instant::now();
        make();
        before.elapsed()
    });
    times.min().unwrap_or_default()
}

/// All times, and the best of each query, which other work on the machine has no
/// part in; both in order.
fn times(queries: &[String], mut ask: impl FnMut(&str)) -> (Vec<Duration>, Vec<Duration>) {
    let mut all = Vec::new();
    let mut best = vec![Duration::MAX; queries.len()];
    for _ in 0..ROUNDS {
        for (query, best) in queries.iter().zip(&mut best) {
            let before = Instant::now();
            ask(query);
            let time = before.elapsed();
            *best = time.min(*best);
            all.push(time);
        }
    }
    all.sort_unstable();
    best.sort_unstable();
    (all, best)
}

fn queries() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/queries");
    let texts = ["tune", "held"].map(|set| {
        std::fs::read_to_string(folder.join(format!("{set}.jsonl"))).expect("labelled queries")
    });
    let lines = texts.iter().flat_map(|text| text.lines());
    let query = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a query");
        line["query"].as_str().unwrap_or_default().to_owned()
    };
    lines.map(query).collect()
}

fn real_tools() -> Vec<Value> {
    let named = std::env::var_os("CALLGATE_TOOL_CORPUS").map(PathBuf::from);
    let listed = named.and_then(|folder| folder.read_dir().ok());
    let files = listed.into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<PathBuf> = files
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    if files.is_empty() {
        let file = "../../shared/corpus/github-mcp-server.tools.json";
        files.push(Path::new(env!("CARGO_MANIFEST_DIR")).join(file));
    }
    let mut tools = Vec::new();
    for file in files {
        let listed = std::fs::read(file).ok();
        let listed = listed.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        if let Some(Value::Array(listed)) = listed.map(|mut listed| listed["tools"].take()) {
            tools.extend(listed);
        }
    }
    if tools.is_empty() {
        println!("no real tools are beside the checkout: made-up ones serve");
        tools.push(json!({
            "name": "create_issue", "description": "Creates an issue in a repository.",
            "inputSchema": { "type": "object", "properties": { "title": { "type": "string" } } },
        }));
    }
    tools
}
