//! What it costs to hold results to their schema:
//! `cargo run --release -p callgate-schema --example fit_cost`.

#![expect(clippy::print_stdout, reason = "it is what it is for")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use callgate_schema::{Declared, Fit};
use serde_json::{Value, json};

fn main() {
    let entry = json!({
        "type": "object",
        "properties": {
            "id": { "type": "integer" },
            "at": { "type": "string", "format": "date-time" },
            "level": { "enum": ["debug", "info", "warn", "error"] },
            "message": { "type": "string" },
            "tags": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["id", "at", "level", "message"],
    });
    let schema = Declared::new(json!({
        "type": "object",
        "properties": { "entries": { "type": "array", "items": { "$ref": "#/$defs/entry" } } },
        "required": ["entries"],
        "$defs": { "entry": entry },
    }));
    for entries in [1, 100, 10_000, 78_000] {
        let entry = |id| {
            json!({
                "id": id, "at": "2026-01-02T03:04:05Z", "level": "info",
                "message": "a message of some length, as they are in logs", "tags": ["a", "b"],
            })
        };
        let entries: Vec<Value> = (0..entries).map(entry).collect();
        let text = json!({ "entries": entries }).to_string();
        let mut times = Vec::new();
        let until = Instant::now() + Duration::from_secs(2);
        while times.len() < 5 || Instant::now() < until {
            let start = Instant::now();
            assert_eq!(schema.fit(black_box(&text)), Fit::Fits);
            times.push(start.elapsed());
        }
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        let quick = schema.is_quick(text.len());
        println!("{:>9} bytes: {median:?} (at once: {quick})", text.len());
    }
}
