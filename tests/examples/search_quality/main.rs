//! How well each way of searching finds tools, through a gate as a host has it:
//! by words, by vectors, by both, by a model that picks.
//!
//! `search_quality CORPUS URL`: CORPUS is a folder with a `tools/list` result for each
//! server, `SERVER.json`, as `cargo xtask corpus` makes it; URL is an endpoint of embeddings, such
//! as that of `fixtures/embeddings/server.py`. The queries are those of `fixtures/queries`, and
//! what the model picked is there too (`picks.jsonl`).
//!
//! `search_quality --serve FILE` is a server with the tools of a file.

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callgate::caller::{Offers, Wanted};
use callgate::config::{EmbeddingsConfig, ModelsConfig};
use callgate::{Caller, CheckMode, Gate, Refusal, SearchBy, SearchRequest, ServerSpec};
use callgate_tests::{repository, stand_in};
use futures::future::BoxFuture;
use serde_json::{Value, json};

type Fallible<T> = Result<T, Box<dyn Error>>;

const WAYS: [(&str, SearchBy); 4] = [
    ("words", SearchBy::Words),
    ("vectors", SearchBy::Vectors),
    ("hybrid", SearchBy::Hybrid),
    ("a model picks", SearchBy::Model),
];

/// The model that the fixture serves.
const MODEL: &str = "all-minilm-l6-v2";
/// The most hits that count.
const SHOWN: usize = 10;
/// How long the vectors of all tools may take.
const PATIENCE: Duration = Duration::from_secs(1800);

#[tokio::main]
async fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [flag, file] if flag == "--serve" => {
            let list: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
            Ok(stand_in::serve(&list["tools"], |_, _| None)?)
        }
        [corpus, url] => measure(Path::new(corpus), url).await,
        _ => Err("usage: search_quality CORPUS URL".into()),
    }
}

/// A gate over the tools of the corpus, when all have vectors: until then, those of queries may be
/// late.
async fn gate(corpus: &Path, url: &str) -> Fallible<Gate> {
    let own = std::env::current_exe()?.display().to_string();
    let mut models = ModelsConfig::default();
    let mut embeddings = EmbeddingsConfig::new(url, MODEL);
    embeddings.timeout = Duration::from_secs(600);
    models.embeddings = Some(embeddings);
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
    request.by = SearchBy::Vectors;
    request.patience = PATIENCE;
    let found = gate.search(&request).await?;
    if !found.notes.is_empty() {
        return Err(found.notes.join("\n").into());
    }
    let took = began.elapsed();
    println!("{} tools, vectors after {took:.0?}", found.searched);
    Ok(gate)
}

async fn measure(corpus: &Path, url: &str) -> Fallible<()> {
    let gate = gate(corpus, url).await?;
    let mut client = Picks::default();
    for pick in lines("picks")? {
        let query = pick["query"].as_str().unwrap_or_default();
        let names = json!({ "names": pick["names"] }).to_string();
        client.0.insert(query.to_owned(), names);
    }
    let client: Arc<dyn Caller> = Arc::new(client);
    println!("{:<28} recall@1  recall@5       MRR", "");
    for set in ["tune", "held"] {
        let queries = lines(set)?;
        for (name, by) in WAYS {
            let [mut first, mut five, mut reciprocal] = [0.0; 3];
            for query in &queries {
                if let Some(place) = place(&gate, &client, query, by).await? {
                    first += f64::from(u8::from(place < 1));
                    five += f64::from(u8::from(place < 5));
                    reciprocal += 1.0 / (place + 1) as f64;
                }
            }
            let what = format!("{set}, {} queries: {name}", queries.len());
            let [first, five, reciprocal] =
                [first, five, reciprocal].map(|sum| sum / queries.len() as f64);
            println!("{what:<28} {first:>8.3} {five:>9.3} {reciprocal:>9.3}");
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

/// Where the first right tool is among the ten that are found: the tools of a query are
/// `SERVER/TOOL`. A search that was not done as it was asked for is an error.
async fn place(
    gate: &Gate,
    client: &Arc<dyn Caller>,
    query: &Value,
    by: SearchBy,
) -> Fallible<Option<usize>> {
    let text = query["query"].as_str().unwrap_or_default();
    let right = query["tools"].as_array().into_iter().flatten();
    let right: HashSet<&str> = right.filter_map(Value::as_str).collect();
    let mut request = SearchRequest::new(text);
    request.by = by;
    request.limit = SHOWN;
    request.caller = Some(Arc::clone(client));
    let found = gate.search(&request).await?;
    // A model may pick none, or what is not a tool.
    if !found.notes.is_empty() && by != SearchBy::Model {
        return Err(format!("{text}: {}", found.notes.join("; ")).into());
    }
    let tools = gate.tools();
    let is_right = |function: &str| {
        let tool = tools.iter().find(|tool| tool.function == function);
        tool.is_some_and(|tool| right.contains(&*format!("{}/{}", tool.server, tool.tool)))
    };
    Ok(found.hits.iter().position(|hit| is_right(&hit.function)))
}

/// A client whose model answers, by query, as was written down before.
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
        let query = query.strip_prefix("Looked for: ").unwrap_or_default();
        let answer = self.0.get(query).map_or(r#"{"names":[]}"#, String::as_str);
        let content = json!({ "type": "text", "text": answer });
        let message = json!({ "role": "assistant", "model": "recorded", "content": content });
        Box::pin(std::future::ready(Ok(message)))
    }
}
