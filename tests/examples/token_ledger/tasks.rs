//! The tasks, and the model's work on them in each mode: the calls, one turn
//! after the other, and the scripts.

use callgate_serve::config::ToolMode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Fallible;
use crate::meter::Cost;
use crate::session::Session;

/// The server and the name of each tool that a task uses, and one more.
pub const USED: [(&str, &str); 10] = [
    ("filesystem", "list_directory"),
    ("filesystem", "read_text_file"),
    ("github", "add_issue_comment"),
    ("github", "issue_read"),
    ("github", "list_issues"),
    ("github", "list_pull_requests"),
    ("slack", "slack_get_users"),
    ("slack", "slack_post_message"),
    ("time", "convert_time"),
    ("time", "get_current_time"),
];

/// A job that a user gives to a model.
#[derive(Deserialize)]
pub struct Task {
    /// A short name.
    pub name: String,
    /// The steps of the job, for readers.
    pub about: String,
    /// The user's prompt.
    pub prompt: String,
    /// The words to search by where functions are not named.
    queries: Vec<String>,
    /// The functions it takes.
    functions: Vec<String>,
    /// Calls by turns. Those of one turn do not need each other's results.
    turns: Vec<Vec<(String, Value)>>,
    /// A script for each turn, or the name of its file.
    scripts: Vec<String>,
    /// A text that the last script's result contains.
    expected: String,
}

impl Task {
    /// Performs the task in a mode: with the servers' own tools, with tools that are looked up and
    /// called, or with scripts, where undeclared tools are looked up.
    pub fn perform(&self, session: &mut Session, cost: &mut Cost, mode: ToolMode) -> Fallible<()> {
        if mode != ToolMode::Native {
            self.look_up(session, cost)?;
        }
        if mode == ToolMode::Code {
            let mut last = String::new();
            for script in &self.scripts {
                let call = ("run_script".to_owned(), json!({ "code": script }));
                last = session.turn(cost, &[call])?.concat();
            }
            if !last.contains(&self.expected) {
                return Err(format!("{:?} is not in {last}", self.expected).into());
            }
            return Ok(());
        }
        for calls in &self.turns {
            let calls = calls.iter().map(|(function, given)| match mode {
                ToolMode::Native => (function.clone(), given.clone()),
                _ => (
                    "call_tool".to_owned(),
                    json!({ "name": function, "args": given }),
                ),
            });
            session.turn(cost, &calls.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// One turn, unless the functions are declared: by their names, or, if those are not shown, by
    /// words.
    fn look_up(&self, session: &mut Session, cost: &mut Cost) -> Fallible<()> {
        let shows = |end: &str| {
            let mut functions = self.functions.iter();
            functions.all(|name| session.shows(&format!("{name}{end}")))
        };
        if shows("(") {
            return Ok(());
        }
        let calls = if shows("") {
            let names = json!({ "names": self.functions });
            vec![("get_tool_details".to_owned(), names)]
        } else {
            let search = |query: &String| {
                let words = json!({ "query": query, "detail": "signatures", "limit": 3 });
                ("search_tools".to_owned(), words)
            };
            self.queries.iter().map(search).collect()
        };
        let found = session.turn(cost, &calls)?.concat();
        match self.functions.iter().find(|name| !found.contains(*name)) {
            Some(name) => Err(format!("{name} is not in the answer to {calls:?}:\n{found}").into()),
            None => Ok(()),
        }
    }
}

/// All of them, the best for scripts first.
pub fn all() -> Fallible<Vec<Task>> {
    let mut tasks: Vec<Task> = serde_json::from_str(include_str!("tasks.json"))?;
    for script in tasks.iter_mut().flat_map(|task| &mut task.scripts) {
        let file = match script.as_str() {
            "logs.ts" => include_str!("logs.ts"),
            "issues.ts" => include_str!("issues.ts"),
            "reviews.ts" => include_str!("reviews.ts"),
            _ => continue,
        };
        file.trim_end().clone_into(script);
    }
    Ok(tasks)
}
