//! The tasks of `fixtures/tasks`, by the calls and the bytes that they take.

use callgate_tests::model_tasks::{Done, Model, bench, tasks};

use crate::Fallible;
use crate::catalog::Catalog;
use crate::meter::grouped;

/// The tools that the tasks are done with, except those that are denied.
pub fn catalog() -> Fallible<Catalog> {
    Ok(Catalog {
        size: 51,
        servers: 5,
        bench: bench()?,
    })
}

/// Prints a row for each task and mode.
pub fn measure() -> Fallible<()> {
    println!("| task | mode | calls | look-ups | failed | bytes to the model | from it |");
    println!("|---|---|---:|---:|---:|---:|---:|");
    for mode in ["code", "discovery"] {
        let mut model = Model::new(mode)?;
        let mut total = Done {
            to_model: model.known().len(),
            ..Done::default()
        };
        print("*array of tools*", mode, &total);
        for task in tasks()? {
            let Some(done) = model.solve(&task)? else {
                continue;
            };
            print(task["name"].as_str().unwrap_or_default(), mode, &done);
            total.calls += done.calls;
            total.look_ups += done.look_ups;
            total.failed += done.failed;
            total.to_model += done.to_model;
            total.from_model += done.from_model;
        }
        print("**all**", mode, &total);
    }
    Ok(())
}

fn print(task: &str, mode: &str, done: &Done) {
    let counts = [done.calls, done.look_ups, done.failed];
    let counts = counts.map(|count| count.to_string()).join(" | ");
    let [to_model, from_model] = [done.to_model, done.from_model].map(grouped);
    println!("| {task} | {mode} | {counts} | {to_model} | {from_model} |");
}
