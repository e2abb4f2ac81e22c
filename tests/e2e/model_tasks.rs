//! Tasks that a model does with the tools of five real servers.

use callgate_tests::model_tasks::{Model, tasks};

/// Does the tasks in a mode, and gives calls and look-ups of each.
fn solve(mode: &'static str) -> Vec<(usize, usize)> {
    let mut model = Model::new(mode).expect("a session");
    let mut counts = Vec::new();
    for task in tasks().expect("tasks") {
        let done = model.solve(&task);
        let Some(done) = done.unwrap_or_else(|error| panic!("{}: {error}", task["name"])) else {
            continue;
        };
        assert_eq!(done.failed, 0, "{}: {done:#?}", task["name"]);
        assert_eq!(
            done.outcomes, task["outcomes"],
            "{}: {done:#?}",
            task["name"]
        );
        counts.push((done.calls, done.look_ups));
    }
    counts
}

#[test]
fn scripts_over_fifty_tools_need_no_look_up() {
    let each = [(1, 0), (2, 0), (1, 0), (1, 0), (1, 0), (1, 0), (1, 0)];
    assert_eq!(solve("code"), each);
}

#[test]
fn calls_over_fifty_tools_need_one_look_up_for_a_server() {
    assert_eq!(solve("discovery"), [(2, 1), (11, 2), (4, 1)]);
}
