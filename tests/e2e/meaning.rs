//! Search by meaning, with an endpoint of embeddings. A real model is measured by
//! `cargo xtask search-quality`.

use std::path::{Path, PathBuf};

use callgate::config::{CacheConfig, EmbeddingsConfig, ModelsConfig};
use callgate::settings::{CheckMode, SearchBy};
use callgate::{Gate, GateBuilder, SearchRequest, SearchResults, ServerSpec};
use callgate_tests::binary;
use serde_json::{Value, json};

use crate::endpoint::Endpoint;

pub(crate) fn builder() -> GateBuilder {
    let server = |name: &str| {
        let program = binary(&format!("callgate-demo-{name}"));
        ServerSpec::stdio(name, program.display().to_string(), [] as [&str; 0])
    };
    Gate::builder()
        .worker_binary(binary("callgate-worker"))
        .check(CheckMode::Off)
        .server(server("logging"))
        .server(server("ticketing"))
}

/// The vectors of a request's texts: for each text, the counts of some letters.
fn vectors(body: &Value) -> Value {
    let vector = |text: &Value| {
        let text = text.as_str().unwrap_or_default();
        let count = |letter: char| text.matches(letter).count() as f64 + 0.1;
        json!([
            count('a'),
            count('e'),
            count('i'),
            count('o'),
            count('s'),
            count('t')
        ])
    };
    let texts = body["input"].as_array().cloned().unwrap_or_default();
    let entry = |(index, text)| json!({ "index": index, "embedding": vector(text) });
    json!({ "data": texts.iter().enumerate().map(entry).collect::<Vec<_>>() })
}

fn embeddings(url: &str) -> ModelsConfig {
    let mut models = ModelsConfig::default();
    models.embeddings = Some(EmbeddingsConfig::new(url, "letters"));
    models
}

pub(crate) async fn search(gate: &Gate, query: &str, by: SearchBy) -> SearchResults {
    let mut request = SearchRequest::new(query);
    request.by = by;
    gate.search(&request).await.expect("a search")
}

pub(crate) fn functions(found: &SearchResults) -> Vec<&str> {
    found.hits.iter().map(|hit| hit.function.as_str()).collect()
}

/// The result of a search once all tools have vectors.
async fn settled(gate: &Gate, query: &str, by: SearchBy) -> SearchResults {
    loop {
        let found = search(gate, query, by).await;
        if !found
            .notes
            .iter()
            .any(|note| note.contains("no vectors yet"))
        {
            return found;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn tool_vectors_are_cached_between_gates() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let endpoint = Endpoint::answering(vectors);
    let gate = || async {
        let builder = builder().models(embeddings(&endpoint.url));
        let builder = builder.cache(Some(CacheConfig::at(folder.path())));
        builder.build().await.expect("a gate")
    };
    let first = gate().await;
    let found = settled(&first, "tttttttttt", SearchBy::Vectors).await;
    assert_eq!(found.notes, [] as [&str; 0]);
    assert_eq!(found.hits.len(), found.searched, "{found:?}");
    assert!(
        found.hits.is_sorted_by(|a, b| a.score >= b.score),
        "{found:?}"
    );
    // By default, both rankings are merged.
    let auto = search(&first, "create an issue", SearchBy::Auto).await;
    let hybrid = search(&first, "create an issue", SearchBy::Hybrid).await;
    assert_eq!(functions(&auto), functions(&hybrid));
    assert_eq!(functions(&auto)[0], "ticketing_createIssue");
    let asked = |endpoint: &Endpoint| {
        let asked = endpoint.asked();
        let texts = asked
            .iter()
            .map(|body| body["input"].as_array().map_or(0, Vec::len));
        // A query is a request of one text.
        texts.filter(|count| *count > 1).sum::<usize>()
    };
    // Each tool once.
    assert_eq!(asked(&endpoint), found.searched);
    drop(first);
    // A second gate reads the cached vectors.
    let second = gate().await;
    let again = settled(&second, "tttttttttt", SearchBy::Vectors).await;
    assert_eq!(functions(&again), functions(&found));
    assert_eq!(asked(&endpoint), found.searched);
    drop(second);
    // A damaged file is written again.
    let file = vectors_in(folder.path()).pop().expect("a file");
    let vectors = || serde_json::from_slice::<Value>(&std::fs::read(&file).expect("the file")).ok();
    let good = vectors();
    std::fs::write(&file, "{").expect("a damaged file");
    let third = gate().await;
    settled(&third, "tttttttttt", SearchBy::Vectors).await;
    while vectors() != good {
        tokio::task::yield_now().await;
    }
    assert_eq!(asked(&endpoint), 2 * found.searched);
}

/// The files of vectors in the folder of a cache.
fn vectors_in(cache: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(cache).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let files = paths.flat_map(|path| match path.is_dir() {
        true => vectors_in(&path),
        false => vec![path],
    });
    let is_of_vectors = |path: &PathBuf| path.parent().is_some_and(|it| it.ends_with("vectors"));
    files.filter(is_of_vectors).collect()
}
