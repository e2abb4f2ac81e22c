//! How long declarations of a catalog take: `cargo bench -p callgate-typegen`.
//!
//! The tools are those of a real server, once for each of as many servers as it
//! takes: as they are, without result types, and each with one of its own
//! besides, half of them under a name that every server uses. Printed are the
//! median and the best of repeated runs.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]
#![expect(clippy::unwrap_used, reason = "without its data it cannot run")]

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use callgate_typegen::names::assign;
use callgate_typegen::{Detail, ToolSchema, generate};
use serde_json::{Value, json};

const SIZES: [(usize, u32); 3] = [(100, 200), (1_000, 100), (10_000, 10)];

fn main() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../shared/corpus/github-mcp-server.tools.json");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}, which holds the tools: {error}", path.display()));
    let list: Value = serde_json::from_str(&text).unwrap();
    let real = list["tools"].as_array().unwrap();

    println!("median (best) of runs, in milliseconds");
    println!(
        "{:>8}{:>18}{:>18}{:>18}{:>18}{:>12}",
        "tools", "names", "as they are", "with results", "text", "bytes"
    );
    for (size, runs) in SIZES {
        let catalog = catalog(real, size);
        let pairs = || {
            catalog
                .iter()
                .map(|(server, tool, ..)| (server.as_str(), *tool))
        };
        let names = assign(pairs());
        let schemas: Vec<ToolSchema<'_>> = catalog
            .iter()
            .map(|(server, tool, raw, output)| ToolSchema {
                server,
                tool,
                function: names.function(server, tool).unwrap(),
                title: None,
                description: raw["description"].as_str(),
                input: &raw["inputSchema"],
                output: Some(output),
            })
            .collect();
        let inputs: Vec<ToolSchema<'_>> = schemas
            .iter()
            .map(|schema| ToolSchema {
                output: None,
                ..*schema
            })
            .collect();
        let declarations = generate(&schemas);
        let text = declarations.text(Detail::Full, |_| true);
        println!(
            "{size:>8}{:>18}{:>18}{:>18}{:>18}{:>12}",
            times(runs, || assign(pairs())),
            times(runs, || generate(&inputs)),
            times(runs, || generate(&schemas)),
            times(runs, || declarations.text(Detail::Full, |_| true)),
            text.len(),
        );
    }
}

/// Server, tool, definition and result schema of `size` tools.
fn catalog(real: &[Value], size: usize) -> Vec<(String, &str, &Value, Value)> {
    let tools = real.iter().cycle().take(size).enumerate();
    tools
        .map(|(index, raw)| {
            let server = format!("server{}", index / real.len());
            (server, raw["name"].as_str().unwrap(), raw, result(index))
        })
        .collect()
}

fn result(index: usize) -> Value {
    let name = if index.is_multiple_of(2) {
        "Item".to_owned()
    } else {
        format!("Item{index}")
    };
    let item = json!({
        "type": "object",
        "properties": {
            "id": { "type": "integer", "description": "Its number" },
            "name": { "type": "string" },
            "kind": { "const": index % 10 },
            "parent": { "$ref": format!("#/$defs/{name}") },
        },
        "required": ["id", "name"],
    });
    json!({
        "type": "object",
        "properties": { "items": { "type": "array", "items": { "$ref": format!("#/$defs/{name}") } } },
        "$defs": { name: item },
    })
}

fn times<T>(runs: u32, mut run: impl FnMut() -> T) -> String {
    let mut took: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            let made = black_box(run());
            let took = start.elapsed();
            drop(made);
            took
        })
        .collect();
    took.sort();
    let middle = took[took.len() / 2];
    let [middle, best] = [middle, took[0]].map(|took| took.as_secs_f64() * 1_000.0);
    format!("{middle:.2} ({best:.2})")
}
