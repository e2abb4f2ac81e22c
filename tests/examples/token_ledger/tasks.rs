//! The tasks, and what a model does for them in each mode: which calls, one turn
//! after the other, and which scripts.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::Fallible;
use crate::meter::Meter;
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
    /// A few words.
    pub name: String,
    /// What the job is made of, for readers.
    pub about: String,
    /// What the user says.
    pub prompt: String,
    /// What is looked for where functions are not declared.
    queries: Vec<String>,
    /// The functions it takes.
    functions: Vec<String>,
    /// Calls by turns. Those of one turn do not need each other's results.
    turns: Vec<Vec<(String, Value)>>,
    /// A script for each turn, or the name of its file.
    scripts: Vec<String>,
    /// In what the last script comes to.
    expected: String,
}

impl Task {
    /// By the servers' own tools.
    pub fn by_calls(&self, session: &mut Session, meter: &mut Meter) -> Fallible<()> {
        for calls in &self.turns {
            session.turn(meter, calls)?;
        }
        Ok(())
    }

    /// By looking for tools, reading what they take, and calling them.
    pub fn by_discovery(&self, session: &mut Session, meter: &mut Meter) -> Fallible<()> {
        self.search(session, meter, &json!({}))?;
        let details = json!({ "names": self.functions });
        session.turn(meter, &[("get_tool_details".to_owned(), details)])?;
        for calls in &self.turns {
            let calls = calls.iter().map(|(function, given)| {
                let call = json!({ "name": function, "args": given });
                ("call_tool".to_owned(), call)
            });
            session.turn(meter, &calls.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// By scripts; what is not declared is looked for first.
    pub fn by_scripts(&self, session: &mut Session, meter: &mut Meter) -> Fallible<()> {
        if !self.functions.iter().all(|name| session.declares(name)) {
            let how = json!({ "detail": "signatures", "limit": 3 });
            self.search(session, meter, &how)?;
        }
        let mut last = String::new();
        for script in &self.scripts {
            let call = ("run_script".to_owned(), json!({ "code": script }));
            last = session.turn(meter, &[call])?.concat();
        }
        if !last.contains(&self.expected) {
            return Err(format!("{:?} is not in {last}", self.expected).into());
        }
        Ok(())
    }

    /// All queries in one turn.
    fn search(&self, session: &mut Session, meter: &mut Meter, how: &Value) -> Fallible<()> {
        let calls = self.queries.iter().map(|query| {
            let mut arguments = how.clone();
            arguments["query"] = json!(query);
            ("search_tools".to_owned(), arguments)
        });
        let found = session.turn(meter, &calls.collect::<Vec<_>>())?.concat();
        let missing = self
            .functions
            .iter()
            .find(|name| !found.contains(name.as_str()));
        if let Some(name) = missing {
            return Err(format!("{name} is not found by {:?}:\n{found}", self.queries).into());
        }
        Ok(())
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
