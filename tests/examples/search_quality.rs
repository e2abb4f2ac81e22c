//! How well each way of searching finds tools, through a gate as a host has it:
//! by words, by vectors, by both.
//!
//! `search_quality CORPUS URL [MODEL]`: CORPUS is a folder with a `tools/list`
//! result for each server, `SERVER.json`, as `cargo xtask corpus` makes it; URL is
//! an endpoint of embeddings, such as that of `fixtures/embeddings/server.py`. The
//! queries are those of `fixtures/queries`.
//!
//! `search_quality --serve FILE` is a server with the tools of a file.

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

use std::collections::HashSet;
use std::error::Error;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};

use callgate::config::{EmbeddingsConfig, ModelsConfig};
use callgate::{CheckMode, Gate, SearchBy, SearchRequest, ServerSpec};
use callgate_tests::repository;
use serde_json::{Value, json};

type Fallible<T> = Result<T, Box<dyn Error>>;

const WAYS: [(&str, SearchBy); 3] = [
    ("words", SearchBy::Words),
    ("vectors", SearchBy::Vectors),
    ("hybrid", SearchBy::Hybrid),
];

#[tokio::main]
async fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["--serve", file] => serve(Path::new(file)),
        [corpus, url] => measure(Path::new(corpus), url, "all-minilm-l6-v2").await,
        [corpus, url, model] => measure(Path::new(corpus), url, model).await,
        _ => Err("usage: search_quality CORPUS URL [MODEL]".into()),
    }
}

async fn measure(corpus: &Path, url: &str, model: &str) -> Fallible<()> {
    let own = std::env::current_exe()?.display().to_string();
    let mut models = ModelsConfig::default();
    let mut embeddings = EmbeddingsConfig::new(url, model);
    embeddings.timeout = std::time::Duration::from_secs(600);
    models.embeddings = Some(embeddings);
    let mut builder = Gate::builder()
        .check(CheckMode::Off)
        .spare_workers(0)
        .models(models);
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
    let began = std::time::Instant::now();
    loop {
        let mut request = SearchRequest::new("anything");
        request.by = SearchBy::Vectors;
        let found = gate.search(&request).await?;
        if found.notes.is_empty() {
            println!(
                "{} tools, vectors after {:.0?}",
                found.searched,
                began.elapsed()
            );
            break;
        }
        if !found
            .notes
            .iter()
            .all(|note| note.contains("no vectors yet"))
        {
            return Err(found.notes.join("\n").into());
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    println!(
        "{:<18} {:>9} {:>9} {:>9}",
        "", "recall@1", "recall@5", "MRR"
    );
    for set in ["tune", "held"] {
        let queries = repository().join(format!("fixtures/queries/{set}.jsonl"));
        let queries = std::fs::read_to_string(queries)?;
        for (name, by) in WAYS {
            let mut sums = [0.0; 3];
            for line in queries.lines() {
                let labelled: Value = serde_json::from_str(line)?;
                let places = place(&gate, &labelled, by).await?;
                if let Some(place) = places {
                    sums[0] += f64::from(u8::from(place < 1));
                    sums[1] += f64::from(u8::from(place < 5));
                    sums[2] += 1.0 / (place + 1) as f64;
                }
            }
            let [first, five, reciprocal] = sums.map(|sum| sum / queries.lines().count() as f64);
            println!("{set}: {name:<12} {first:>9.3} {five:>9.3} {reciprocal:>9.3}");
        }
    }
    gate.shutdown().await;
    Ok(())
}

/// Where the first right tool is among the ten that are found.
async fn place(gate: &Gate, labelled: &Value, by: SearchBy) -> Fallible<Option<usize>> {
    let right = labelled["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let right: HashSet<&str> = right.collect();
    let mut request = SearchRequest::new(labelled["query"].as_str().unwrap_or_default());
    request.by = by;
    let found = gate.search(&request).await?;
    let tools = gate.tools();
    let is_right = |function: &str| {
        let tool = tools.iter().find(|tool| tool.function == function);
        tool.is_some_and(|tool| right.contains(&*format!("{}/{}", tool.server, tool.tool)))
    };
    Ok(found.hits.iter().position(|hit| is_right(&hit.function)))
}

fn lists(corpus: &Path) -> Fallible<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(corpus)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// A server of MCP 2025-11-25 over standard input and output, which lists tools.
fn serve(file: &Path) -> Fallible<()> {
    let list: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let Some(id) = request.get("id") else {
            continue;
        };
        let answer = match request["method"].as_str() {
            Some("initialize") => json!({ "result": {
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "corpus", "version": "1" },
            } }),
            Some("tools/list") => json!({ "result": { "tools": list["tools"] } }),
            Some("ping") => json!({ "result": {} }),
            _ => json!({ "error": { "code": -32601, "message": "no such method" } }),
        };
        let mut answer = answer;
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = id.clone();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}
