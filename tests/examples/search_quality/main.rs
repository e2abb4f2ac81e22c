//! How well each way of searching finds tools, through a gate as a host has it:
//! by words, by vectors, by both, by a model that picks; and what other weights of
//! vectors against words would do.
//!
//! `search_quality CORPUS URL [MODEL]`: CORPUS is a folder with a `tools/list` result for each
//! server, `SERVER.json`, as `cargo xtask corpus` makes it; URL is an endpoint of embeddings, such
//! as that of `fixtures/embeddings/server.py`. The queries are those of `fixtures/queries`, and
//! what the model picked is there too (`picks.jsonl`).
//!
//! `search_quality --prompts FILE CORPUS URL` writes what a model is asked for each
//! query to FILE, `{"query": …, "system": …, "prompt": …}` a line, to have another model answer.
//!
//! `search_quality --serve FILE` is a server with the tools of a file.

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

mod picks;

use std::collections::HashSet;
use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate::config::{EmbeddingsConfig, ModelsConfig};
use callgate::{Caller, CheckMode, Gate, Hit, SearchBy, SearchRequest, ServerSpec};
use callgate_catalog::search::{Ranked, fuse};
use callgate_tests::{repository, stand_in};
use serde_json::{Value, json};

use crate::picks::Picks;

type Fallible<T> = Result<T, Box<dyn Error>>;

const WAYS: [(&str, SearchBy); 4] = [
    ("words", SearchBy::Words),
    ("vectors", SearchBy::Vectors),
    ("hybrid", SearchBy::Hybrid),
    ("a model picks", SearchBy::Model),
];

/// The tools that a model is shown, as in a gate: it can pick no other.
const CANDIDATES: usize = 40;

/// The model that the fixture serves.
const MODEL: &str = "all-minilm-l6-v2";
/// The most hits that count.
const SHOWN: usize = 10;
/// How many places of each ranking count when two are made one, as in a gate.
const DEPTH: usize = 100;
const WEIGHTS: [f64; 5] = [1.0, 1.5, 2.0, 3.0, 4.0];
/// How long the vectors of all tools may take.
const PATIENCE: Duration = Duration::from_secs(1800);

#[tokio::main]
async fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["--serve", file] => serve(Path::new(file)),
        ["--prompts", file, corpus, url] => {
            let gate = gate(Path::new(corpus), url, MODEL).await?;
            let written = write_prompts(&gate, Path::new(file)).await;
            gate.shutdown().await;
            written
        }
        [corpus, url] => measure(Path::new(corpus), url, MODEL).await,
        [corpus, url, model] => measure(Path::new(corpus), url, model).await,
        _ => Err("usage: search_quality [--prompts FILE] CORPUS URL [MODEL]".into()),
    }
}

/// A gate over the tools of the corpus, when all have vectors.
async fn gate(corpus: &Path, url: &str, model: &str) -> Fallible<Gate> {
    let own = std::env::current_exe()?.display().to_string();
    let mut models = ModelsConfig::default();
    let mut embeddings = EmbeddingsConfig::new(url, model);
    embeddings.timeout = Duration::from_secs(600);
    models.embeddings = Some(embeddings);
    let builder = Gate::builder().check(CheckMode::Off).spare_workers(0);
    let mut builder = builder.models(models);
    for file in lists(corpus)? {
        let name = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let file = file.display().to_string();
        builder = builder.server(ServerSpec::stdio(name, own.clone(), ["--serve", &file]));
    }
    let gate = builder.build().await?;
    with_vectors(&gate).await?;
    Ok(gate)
}

/// What a model is asked, for it to answer elsewhere.
async fn write_prompts(gate: &Gate, file: &Path) -> Fallible<()> {
    let client = Arc::new(Picks::default());
    let mut out = std::fs::File::create(file)?;
    let queries = [queries("tune")?, queries("held")?].concat();
    for query in queries {
        let mut request = SearchRequest::new(&query.text);
        request.by = SearchBy::Model;
        request.caller = Some(client.clone());
        gate.search(&request).await?;
        for asked in client.asked() {
            let line = json!({ "query": query.text, "system": asked.system, "prompt": asked.text });
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

async fn measure(corpus: &Path, url: &str, model: &str) -> Fallible<()> {
    let gate = gate(corpus, url, model).await?;
    let picks = repository().join("fixtures/queries/picks.jsonl");
    let client = Arc::new(Picks::read(&picks)?);
    println!(
        "{:<22} {:>9} {:>9} {:>9}",
        "", "recall@1", "recall@5", "MRR"
    );
    let mut weighed = Vec::new();
    for set in ["tune", "held"] {
        let queries = queries(set)?;
        for (name, by) in WAYS {
            let mut score = Score::default();
            for query in &queries {
                score.count(place(&gate, &client, query, by).await?);
            }
            score.print(&format!("{set}, {} queries: {name}", queries.len()));
        }
        print_shown(&gate, set, &queries).await?;
        if set == "tune" {
            weighed = by_weight(&gate, &queries).await?;
        }
    }
    for (weight, score) in weighed {
        score.print(&format!("tune: hybrid, weight {weight}"));
    }
    gate.shutdown().await;
    Ok(())
}

/// Waits until all tools have vectors: until then, those of queries may be late.
async fn with_vectors(gate: &Gate) -> Fallible<()> {
    let began = Instant::now();
    let mut request = SearchRequest::new("anything");
    request.by = SearchBy::Vectors;
    request.patience = PATIENCE;
    let found = gate.search(&request).await?;
    if !found.notes.is_empty() {
        return Err(found.notes.join("\n").into());
    }
    let took = began.elapsed();
    println!("{} tools, vectors after {took:.0?}", found.searched);
    Ok(())
}

/// How often a model could pick a right tool: it is among those that it is shown.
async fn print_shown(gate: &Gate, set: &str, queries: &[Labelled]) -> Fallible<()> {
    let mut shown = 0;
    for query in queries {
        let tools = right(gate, query);
        let hits = found(gate, &query.text, SearchBy::Hybrid, CANDIDATES, None).await?;
        shown += usize::from(hits.iter().any(|hit| tools.contains(&hit.function)));
    }
    let part = shown as f64 / queries.len() as f64;
    println!("{set}: a right tool is among the {CANDIDATES} that a model is shown: {part:.3}");
    Ok(())
}

/// What hybrid would be if vectors had these weights against words.
async fn by_weight(gate: &Gate, queries: &[Labelled]) -> Fallible<Vec<(f64, Score)>> {
    let mut scores = WEIGHTS.map(|weight| (weight, Score::default()));
    for query in queries {
        let words = found(gate, &query.text, SearchBy::Words, DEPTH, None).await?;
        let vectors = found(gate, &query.text, SearchBy::Vectors, DEPTH, None).await?;
        let tools = right(gate, query);
        for (weight, score) in &mut scores {
            let rankings = [(1.0, ranked(&words)), (*weight, ranked(&vectors))];
            let fused = fuse(&rankings, SHOWN);
            score.count(fused.iter().position(|hit| tools.contains(hit.function)));
        }
    }
    Ok(scores.into())
}

fn ranked(hits: &[Hit]) -> Vec<Ranked<'_>> {
    let hits = hits.iter().map(|hit| Ranked {
        function: &hit.function,
        server: &hit.server,
        score: hit.score,
    });
    hits.collect()
}

/// Sums over queries.
#[derive(Default)]
struct Score {
    queries: usize,
    first: f64,
    five: f64,
    reciprocal: f64,
}

impl Score {
    fn count(&mut self, place: Option<usize>) {
        self.queries += 1;
        if let Some(place) = place {
            self.first += f64::from(u8::from(place < 1));
            self.five += f64::from(u8::from(place < 5));
            self.reciprocal += 1.0 / (place + 1) as f64;
        }
    }

    fn print(&self, what: &str) {
        let of = |sum: f64| sum / self.queries as f64;
        let (first, five, reciprocal) = (of(self.first), of(self.five), of(self.reciprocal));
        println!("{what:<28} {first:>9.3} {five:>9.3} {reciprocal:>9.3}");
    }
}

/// A query, and the tools that are right.
#[derive(Clone)]
struct Labelled {
    text: String,
    /// As `SERVER/TOOL`.
    tools: HashSet<String>,
}

fn queries(set: &str) -> Fallible<Vec<Labelled>> {
    let file = repository().join(format!("fixtures/queries/{set}.jsonl"));
    let mut queries = Vec::new();
    for line in std::fs::read_to_string(file)?.lines() {
        let line: Value = serde_json::from_str(line)?;
        let tools = line["tools"].as_array().into_iter().flatten();
        queries.push(Labelled {
            text: line["query"].as_str().unwrap_or_default().to_owned(),
            tools: tools.filter_map(Value::as_str).map(str::to_owned).collect(),
        });
    }
    Ok(queries)
}

/// Where the first right tool is among the ten that are found.
async fn place(
    gate: &Gate,
    client: &Arc<Picks>,
    query: &Labelled,
    by: SearchBy,
) -> Fallible<Option<usize>> {
    let hits = found(gate, &query.text, by, SHOWN, Some(client.clone())).await?;
    let right = right(gate, query);
    Ok(hits.iter().position(|hit| right.contains(&hit.function)))
}

/// What a search finds, which is an error where it was not done as it was asked for.
async fn found(
    gate: &Gate,
    query: &str,
    by: SearchBy,
    limit: usize,
    client: Option<Arc<Picks>>,
) -> Fallible<Vec<Hit>> {
    let mut request = SearchRequest::new(query);
    request.by = by;
    request.limit = limit;
    request.caller = client.clone().map(|client| client as Arc<dyn Caller>);
    let found = gate.search(&request).await?;
    let asked = client.map(|client| client.asked());
    match (found.notes.is_empty(), by) {
        (true, _) => Ok(found.hits),
        // A model that picks none, or what is not a tool, is as good as that.
        (false, SearchBy::Model) if asked.is_some_and(|asked| asked.len() == 1) => Ok(found.hits),
        (false, _) => Err(format!("{query}: {}", found.notes.join("; ")).into()),
    }
}

/// The functions of the tools that are right.
fn right(gate: &Gate, query: &Labelled) -> HashSet<String> {
    let tools = gate.tools().into_iter();
    let right = tools.filter(|tool| {
        let path = format!("{}/{}", tool.server, tool.tool);
        query.tools.contains(&path)
    });
    right.map(|tool| tool.function).collect()
}

fn lists(corpus: &Path) -> Fallible<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(corpus)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A server that lists the tools of a file.
fn serve(file: &Path) -> Fallible<()> {
    let list: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    Ok(stand_in::serve(&list["tools"], |_, _| None)?)
}
