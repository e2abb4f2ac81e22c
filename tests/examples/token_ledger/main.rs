//! A model's input and output, in tokens: for catalogs of several sizes, before the first
//! turn, and for five tasks in each mode of `callgate serve`. `CALLGATE_BENCH_PROGRAM` names a
//! different `callgate`.
//!
//! `token_ledger CORPUS` prints tables. CORPUS is a folder with a `tools/list` result
//! for each server, `SERVER.json`, as `cargo xtask corpus` makes it. Each task is
//! really done in each mode; the tools answer what `answers` says.
//!
//! `token_ledger --replay FILE` is a server with the tools of a file.

#![expect(clippy::print_stdout, reason = "the tables go to standard output")]

mod answers;
mod catalog;
mod meter;
mod session;
mod tasks;

use std::error::Error;
use std::path::Path;

use callgate_serve::config::ToolMode;
use callgate_tests::stand_in;
use serde_json::Value;

use catalog::{Catalog, Tools};
use meter::{Cost, grouped};
use session::Session;
use tasks::Task;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// The sizes of the catalogs, in tools.
const SIZES: [usize; 3] = [10, 100, 1000];
const MODES: [ToolMode; 3] = [ToolMode::Native, ToolMode::Discovery, ToolMode::Code];

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["--replay", file] => {
            let list: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
            Ok(stand_in::serve(&list["tools"], answers::answer)?)
        }
        [corpus] => measure(Path::new(corpus)),
        _ => Err("usage: token_ledger CORPUS".into()),
    }
}

fn measure(corpus: &Path) -> Fallible<()> {
    if meter::tokens("a") == 0 {
        return Err("the vocabulary o200k_base cannot be loaded".into());
    }
    let all = catalog::tools(corpus)?;
    let tasks = tasks::all()?;
    print_starts(&all)?;
    let mut costs = Vec::new();
    for size in SIZES {
        let catalog = Catalog::of(&all, size)?;
        for mode in MODES {
            let mut session = Session::begin(&catalog, mode)?;
            for (at, task) in tasks.iter().enumerate() {
                let mut cost = Cost::new(session.start(), &task.prompt);
                let done = task.perform(&mut session, &mut cost, mode);
                done.map_err(|error| {
                    format!("{} with {} tools, {mode}: {error}", task.name, catalog.size)
                })?;
                // The model reads the last results.
                cost.turn();
                costs.push((catalog.size, mode, at, cost));
            }
        }
    }
    for (at, task) in tasks.iter().enumerate() {
        let of_task = costs.iter().filter(|(_, _, of, _)| *of == at);
        let of_task = of_task.map(|(size, mode, _, cost)| (*size, *mode, cost));
        print_task(task, &of_task.collect::<Vec<_>>());
    }
    Ok(())
}

fn print_starts(all: &Tools) -> Fallible<()> {
    println!("Tokens at the start (the array of tools):\n");
    println!("| tools | servers | direct | discovery | code |");
    println!("|---:|---:|---:|---:|---:|");
    let github = all.iter().filter(|(name, _)| *name == "github");
    let github = github.map(|(name, tools)| (name.clone(), tools.clone()));
    let mut catalogs = vec![
        Catalog::of_real_servers()?,
        Catalog::of_servers(&github.collect())?,
    ];
    for size in SIZES {
        catalogs.push(Catalog::of(all, size)?);
    }
    catalogs.sort_by_key(|catalog| catalog.size);
    for catalog in catalogs {
        let starts = MODES.map(|mode| Session::begin(&catalog, mode));
        let starts = starts
            .into_iter()
            .map(|session| Ok(grouped(session?.start())));
        let starts = starts.collect::<Fallible<Vec<_>>>()?.join(" | ");
        println!(
            "| {} | {} | {starts} |",
            grouped(catalog.size),
            catalog.servers
        );
    }
    Ok(())
}

/// A row for each size; the least number is bold.
fn print_task(task: &Task, costs: &[(usize, ToolMode, &Cost)]) {
    println!("\n### {}\n\n{}\n", task.name, task.about);
    println!(
        "| tools | new: direct | discovery | code | billed: direct | discovery | code | turns |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    for row in costs.chunks(MODES.len()) {
        let Some((size, _, _)) = row.first() else {
            continue;
        };
        let cells = |of: fn(&Cost) -> usize| {
            let min = row.iter().map(|(_, _, cost)| of(cost)).min();
            let cells = row.iter().map(|(_, _, cost)| {
                let bold = if Some(of(cost)) == min { "**" } else { "" };
                format!("{bold}{}{bold}", grouped(of(cost)))
            });
            cells.collect::<Vec<_>>().join(" | ")
        };
        let turns = row.iter().map(|(_, _, cost)| cost.turns.to_string());
        let turns: Vec<String> = turns.collect();
        println!(
            "| {} | {} | {} | {} |",
            grouped(*size),
            cells(|cost| cost.new),
            cells(|cost| cost.billed),
            turns.join(", ")
        );
    }
}
