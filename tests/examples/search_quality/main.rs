//! The quality of each way of searching for tools, through a gate of the library:
//! by words, by vectors, by both, by a model that picks.
//!
//! `search_quality CORPUS [URL]`: CORPUS is a folder with a `tools/list` result for each
//! server, `SERVER.json`, as `cargo xtask corpus` makes it; URL is an endpoint of embeddings, such
//! as that of `fixtures/embeddings/server.py`. The queries are those of `fixtures/queries`, each
//! with the tools that are right; the model's picks are there too (`picks.jsonl`). Ranking is
//! tuned on `tune.jsonl` alone. Fails if words find less than they should.
//!
//! `search_quality --serve FILE` is a server with the tools of a file.

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate::config::{EmbeddingsConfig, ModelsConfig};
use callgate::faces::{Caller, Refusal};
use callgate::faces::{Offers, Wanted};
use callgate::settings::{CheckMode, SearchBy};
use callgate::{Gate, SearchRequest, ServerSpec, ToolInfo};
use callgate_tests::{repository, stand_in};
use futures::future::BoxFuture;
use serde_json::{Value, json};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Ways of searching. Those from the second on need vectors.
const WAYS: [(&str, SearchBy); 4] = [
    ("words", SearchBy::Words),
    ("vectors", SearchBy::Vectors),
    ("hybrid", SearchBy::Hybrid),
    ("a model picks", SearchBy::Model),
];
/// The floors of recall@1, recall@5 and MRR by words: a little below those in `docs/search.md`.
const FLOORS: [(&str, [f64; 3]); 3] = [
    ("tune", [0.47, 0.75, 0.58]),
    ("held", [0.46, 0.77, 0.58]),
    ("misspelt names", [0.98, 0.99, 0.98]),
];
/// The model that the fixture serves.
const MODEL: &str = "all-minilm-l6-v2";
/// The most hits that count.
const SHOWN: usize = 10;
/// The time limit for the vectors of all tools.
const PATIENCE: Duration = Duration::from_secs(1800);

/// A query and the functions that are right.
struct Query {
    text: String,
    right: HashSet<String>,
}

#[tokio::main]
async fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [flag, file] if flag == "--serve" => {
            let list: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
            Ok(stand_in::serve(&list["tools"], |_, _| None)?)
        }
        [corpus, url @ ..] if url.len() < 2 => {
            measure(Path::new(corpus), url.first().map(String::as_str)).await
        }
        _ => Err("usage: search_quality CORPUS [URL]".into()),
    }
}

/// A gate over the tools of the corpus, when all have vectors: until then, those of queries may be
/// late.
async fn gate(corpus: &Path, url: Option<&str>) -> Fallible<Gate> {
    let own = std::env::current_exe()?.display().to_string();
    let mut models = ModelsConfig::default();
    models.embeddings = url.map(|url| {
        let mut embeddings = EmbeddingsConfig::new(url, MODEL);
        embeddings.timeout = Duration::from_secs(600);
        embeddings
    });
    let builder = Gate::builder().check(CheckMode::Off).spare_workers(0);
    let mut builder = builder.models(models);
    let files = std::fs::read_dir(corpus)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files: Vec<_> = files.collect::<std::io::Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let file = file.display().to_string();
        builder = builder.server(ServerSpec::stdio(&*name, own.clone(), ["--serve", &file]));
    }
    let gate = builder.build().await?;
    let began = Instant::now();
    let mut request = SearchRequest::new("anything");
    request.by = url.map_or(SearchBy::Words, |_| SearchBy::Vectors);
    request.patience = PATIENCE;
    let found = gate.search(&request).await?;
    if url.is_some() && !found.notes.is_empty() {
        return Err(found.notes.join("\n").into());
    }
    let took = began.elapsed();
    println!("{} tools, ready after {took:.0?}", found.searched);
    Ok(gate)
}

async fn measure(corpus: &Path, url: Option<&str>) -> Fallible<()> {
    let gate = gate(corpus, url).await?;
    let tools = gate.tools();
    let mut client = Picks::default();
    for pick in lines("picks")? {
        let query = pick["query"].as_str().unwrap_or_default();
        let names = json!({ "names": pick["names"] }).to_string();
        client.0.insert(query.to_owned(), names);
    }
    let client: Arc<dyn Caller> = Arc::new(client);
    println!("{:<46} recall@1  recall@5       MRR", "");
    for (set, floors) in FLOORS {
        let queries = match set {
            "misspelt names" => misspelt(&tools),
            set => labelled(set, &tools)?,
        };
        let has_vectors = url.is_some() && set != "misspelt names";
        for (name, by) in WAYS.iter().take(if has_vectors { 4 } else { 1 }) {
            let mut sums = [0.0; 3];
            for query in &queries {
                let found = search(&gate, &client, &query.text, *by).await?;
                if let Some(place) = found.iter().position(|one| query.right.contains(one)) {
                    sums[0] += f64::from(u8::from(place < 1));
                    sums[1] += f64::from(u8::from(place < 5));
                    sums[2] += 1.0 / (place + 1) as f64;
                }
            }
            let reached = sums.map(|sum| sum / queries.len() as f64);
            let [first, five, reciprocal] = reached;
            let what = format!("{set}, {} queries: {name}", queries.len());
            println!("{what:<46} {first:>8.3} {five:>9.3} {reciprocal:>9.3}");
            let is_less = reached
                .iter()
                .zip(floors)
                .any(|(reached, floor)| *reached < floor);
            if *by == SearchBy::Words && is_less {
                return Err(format!("that is less than {floors:?}").into());
            }
        }
    }
    gate.shutdown().await;
    Ok(())
}

/// The JSON lines of a file in `fixtures/queries`.
fn lines(name: &str) -> Fallible<Vec<Value>> {
    let file = repository().join(format!("fixtures/queries/{name}.jsonl"));
    let text = std::fs::read_to_string(file)?;
    let lines = text.lines().map(serde_json::from_str);
    Ok(lines.collect::<Result<_, _>>()?)
}

/// The queries of a file, with their right tools as `SERVER/TOOL`.
fn labelled(set: &str, tools: &[ToolInfo]) -> Fallible<Vec<Query>> {
    let function = |path: &Value| {
        let path = path.as_str().unwrap_or_default();
        let tool = tools
            .iter()
            .find(|tool| format!("{}/{}", tool.server, tool.tool) == path);
        let tool = tool.ok_or_else(|| format!("{set}.jsonl names {path}, which is no tool"))?;
        Ok(tool.function.clone())
    };
    let query = |line: &Value| {
        let right = line["tools"].as_array().into_iter().flatten().map(function);
        Ok(Query {
            text: line["query"].as_str().unwrap_or_default().to_owned(),
            right: right.collect::<Fallible<_>>()?,
        })
    };
    lines(set)?.iter().map(query).collect()
}

/// Names as a person types them from memory: without the server, with other separators, with a
/// letter missing or two swapped.
fn misspelt(tools: &[ToolInfo]) -> Vec<Query> {
    let query = |(index, tool): (usize, &ToolInfo)| {
        let (function, name) = (&tool.function, &tool.tool);
        let at = function.len() / 2;
        let text = match index % 4 {
            0 => name.replace(['_', '-'], ""),
            1 => format!("{}{}", &function[..at], &function[at + 1..]),
            2 => name.to_uppercase().replace('_', "-"),
            _ => {
                let mut letters: Vec<char> = function.chars().collect();
                letters.swap(at - 1, at);
                letters.into_iter().collect()
            }
        };
        // A name without a server matches the tools of all servers.
        let is_right = |other: &&ToolInfo| {
            other.function == *function || index % 2 == 0 && other.tool == *name
        };
        let right = tools.iter().filter(is_right);
        let right = right.map(|other| other.function.clone()).collect();
        Query { text, right }
    };
    tools.iter().enumerate().map(query).collect()
}

/// The ten functions that are found. A search that was not done as it was asked for is an error.
async fn search(
    gate: &Gate,
    client: &Arc<dyn Caller>,
    query: &str,
    by: SearchBy,
) -> Fallible<Vec<String>> {
    let mut request = SearchRequest::new(query);
    request.by = by;
    request.limit = SHOWN;
    request.caller = Some(Arc::clone(client));
    let found = gate.search(&request).await?;
    // Words may find little, and a model may pick no tools or unknown names.
    if !found.notes.is_empty() && matches!(by, SearchBy::Vectors | SearchBy::Hybrid) {
        return Err(format!("{query}: {}", found.notes.join("; ")).into());
    }
    Ok(found.hits.into_iter().map(|hit| hit.function).collect())
}

/// A client with recorded answers of a model, by query.
#[derive(Default)]
struct Picks(BTreeMap<String, String>);

impl Caller for Picks {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.sampling = true;
        offers
    }

    fn answer<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let text = wanted.params.pointer("/messages/0/content/text");
        let prompt = text.and_then(Value::as_str).unwrap_or_default();
        let query = prompt.lines().next().unwrap_or_default();
        let query = query.strip_prefix("Query: ").unwrap_or_default();
        let answer = self.0.get(query).map_or(r#"{"names":[]}"#, String::as_str);
        let content = json!({ "type": "text", "text": answer });
        let message = json!({ "role": "assistant", "model": "recorded", "content": content });
        Box::pin(std::future::ready(Ok(message)))
    }
}
