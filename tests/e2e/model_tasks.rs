//! Tasks that a model does with the tools of five real servers.

use std::collections::BTreeSet;

use callgate_tests::model_tasks::{Model, tasks};

/// Solves the tasks in a mode with at most `max` bytes for the array of tools.
/// Returns the numbers of calls and look-ups of each task.
fn solve(mode: &'static str, max: usize) -> Vec<(usize, usize)> {
    let mut model = Model::new(mode).expect("a session");
    let array = model.known().replace("\\n", " ");
    let words = array.split(|c: char| !c.is_alphanumeric() && c != '_');
    let servers = ["everything_", "fs_", "git_", "memory_", "time_"];
    let is_function = |word: &&str| servers.iter().any(|server| word.starts_with(server));
    let functions: BTreeSet<&str> = words.filter(is_function).collect();
    assert!(functions.len() >= 50, "{functions:?}");
    assert!(array.len() <= max, "{} bytes: {array}", array.len());
    let mut counts = Vec::new();
    for task in tasks().expect("tasks") {
        let done = model.solve(&task);
        let Some(done) = done.unwrap_or_else(|error| panic!("{}: {error}", task["name"])) else {
            continue;
        };
        assert_eq!(done.failed, 0, "{}: {done:#?}", task["name"]);
        assert_eq!(done.outcomes, task["outcomes"], "{done:#?}");
        counts.push((done.calls, done.look_ups));
    }
    counts
}

#[test]
fn scripts_over_fifty_tools_need_no_look_up() {
    let each = [(1, 0), (2, 0), (1, 0), (1, 0), (1, 0), (1, 0), (1, 0)];
    assert_eq!(solve("code", 11_500), each);
}

#[test]
fn calls_over_fifty_tools_need_lookup_per_server() {
    assert_eq!(solve("discovery", 3_300), [(2, 1), (11, 2), (4, 1)]);
}
