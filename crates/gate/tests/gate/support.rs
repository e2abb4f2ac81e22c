//! Odd servers, runs, askers and reviewers for the tests.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate_catalog::{Tool, ToolDefinition};
use callgate_gate::{
    Answer, Asker, CallError, CallOptions, Dispatcher, LedgerLine, NoAsker, Question, ResultReview,
    Review, Reviewed, Reviewer, Setup,
};
use callgate_policy::flow::{FlowEnd, FlowRule};
use callgate_policy::{Definition, Hints, Rules, Verdict};
use callgate_schema::Declared;
use callgate_servers::{ServerSpec, ServerState, Servers, Status, Stdio, Transport};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// The directory with the fixture servers.
fn bin_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os("CALLGATE_TEST_BIN_DIR") {
        return dir.into();
    }
    let test = std::env::current_exe().expect("the test knows its own path");
    test.parent()
        .and_then(|deps| deps.parent())
        .expect("target/PROFILE/deps")
        .to_owned()
}

/// The path of a fixture server.
pub fn fixture(name: &str) -> String {
    let path = bin_dir().join(name);
    assert!(
        path.exists(),
        "{} is missing: run `cargo build -p callgate-fixture-servers` first",
        path.display()
    );
    path.to_str().expect("a UTF-8 path").to_owned()
}

/// A run under these rules.
pub fn setup(rules: Arc<Rules>, asker: Arc<dyn Asker>) -> Setup {
    let mut setup = Setup::default();
    setup.rules.calls = rules;
    setup.people.asker = Some(asker);
    setup
}

/// The odd server in a mode, under the mode's name.
pub fn odd(mode: &str) -> ServerSpec {
    let args = mode.split(' ').map(str::to_owned).collect();
    let stdio = Stdio {
        command: fixture("callgate-odd-server"),
        args,
        ..Stdio::default()
    };
    ServerSpec::new(mode, Transport::Stdio(stdio))
}

/// The odd server in a mode, under a name of its own.
pub fn named((name, mode): (&str, &str)) -> ServerSpec {
    let mut spec = odd(mode);
    spec.name = name.to_owned();
    spec
}

/// Starts one server and a run in which everything is allowed.
pub async fn one(spec: ServerSpec) -> (Servers, Run, String) {
    let name = spec.name.clone();
    let servers = Servers::connect(vec![spec]).await;
    if let Some(ServerState {
        status: Status::Failed(error),
        ..
    }) = servers.list().next()
    {
        panic!("{error}");
    }
    let run = servers.run(allow_all(), Arc::new(NoAsker));
    (servers, run, name)
}

pub fn allow_all() -> Arc<Rules> {
    Arc::new(Rules::builder().allow("*").build().expect("a pattern"))
}

/// A rule for data that goes from one server to another.
pub fn flow_rule(from: &str, to: &str, action: Verdict) -> FlowRule {
    FlowRule {
        from: FlowEnd::parse(from).expect("an end"),
        to: FlowEnd::parse(to).expect("an end"),
        min_bytes: None,
        action,
    }
}

/// The questions that were asked.
#[derive(Clone, Default)]
pub struct Asked(Arc<Mutex<Vec<Question>>>);

impl Asked {
    pub fn all(&self) -> Vec<Question> {
        self.0.lock().expect("no panic").clone()
    }

    pub fn len(&self) -> usize {
        self.all().len()
    }
}

/// Always gives the same answer, and keeps the questions.
pub fn always(answer: Answer) -> (Arc<dyn Asker>, Asked) {
    let asked = Asked::default();
    let noted = asked.clone();
    let asker = Arc::new(move |question: Question| {
        noted.0.lock().expect("no panic").push(question);
        async move {
            tokio::task::yield_now().await;
            answer
        }
    });
    (asker, asked)
}

/// A reviewer that denies, asks about and withholds texts by a word in them.
pub struct Words;

impl Reviewer for Words {
    fn review_arguments<'a>(&'a self, call: Reviewed<'a>) -> BoxFuture<'a, Review> {
        let has = |word: &str| call.arguments.contains(word);
        let review = if has("deny") {
            Review::Deny("a word".to_owned())
        } else if has("ask") {
            Review::Ask("another word".to_owned())
        } else {
            Review::Allow
        };
        async move { review }.boxed()
    }

    fn review_result<'a>(
        &'a self,
        _: Reviewed<'a>,
        result: &'a str,
    ) -> BoxFuture<'a, ResultReview> {
        let review = if result.contains("hide") {
            ResultReview::Withhold("not for scripts".to_owned())
        } else {
            ResultReview::Allow
        };
        async move { review }.boxed()
    }
}

/// A tool to call. Without a definition it has the one that its server lists.
#[derive(Clone, Default)]
pub struct Target {
    pub function: String,
    pub server: String,
    pub tool: String,
    pub title: Option<String>,
    pub hints: Hints,
    pub definition: Option<Arc<Definition>>,
    pub output_schema: Option<Declared>,
}

/// A run, and the servers whose lists have its tools.
#[derive(Clone)]
pub struct Run {
    pub dispatcher: Arc<Dispatcher>,
    servers: Servers,
}

impl Run {
    pub async fn call(
        &self,
        target: Target,
        arguments: Box<RawValue>,
        options: CallOptions,
    ) -> Result<Box<RawValue>, CallError> {
        let tool = self.tool(target);
        self.dispatcher.call(&tool, arguments, options).await
    }

    pub fn ledger(&self) -> Vec<LedgerLine> {
        self.dispatcher.lines()
    }

    fn tool(&self, target: Target) -> Tool {
        let definition = target.definition.unwrap_or_else(|| {
            let state = self.servers.list().find(|it| it.name == target.server);
            let listed = match state.map(|state| state.status) {
                Some(Status::Ready(ready)) => {
                    let mut tools = ready.tools.iter();
                    tools.find(|tool| tool["name"] == *target.tool).cloned()
                }
                _ => None,
            };
            Arc::new(Definition::of(&listed.unwrap_or_default()))
        });
        let raw: Value = serde_json::from_str(definition.text()).expect("JSON");
        let mut parsed = ToolDefinition::new(&target.server, &target.tool);
        parsed.description = raw["description"].as_str().map(str::to_owned);
        parsed.identity = definition;
        parsed.title = target.title;
        parsed.hints = target.hints;
        parsed.output_schema = target.output_schema;
        Tool::new(&target.function, parsed)
    }
}

/// Begins runs.
pub trait Runs {
    fn run(&self, rules: Arc<Rules>, asker: Arc<dyn Asker>) -> Run {
        self.run_with(setup(rules, asker))
    }

    fn run_with(&self, setup: Setup) -> Run;
}

impl Runs for Servers {
    fn run_with(&self, setup: Setup) -> Run {
        Run {
            dispatcher: Arc::new(Dispatcher::new(self.clone(), setup)),
            servers: self.clone(),
        }
    }
}

/// The tool of a server, without an output schema.
pub fn target(server: &str, tool: &str) -> Target {
    Target {
        function: format!("{}_{tool}", server.replace(['-', ' '], "_")),
        server: server.to_owned(),
        tool: tool.to_owned(),
        ..Target::default()
    }
}

pub fn raw(value: Value) -> Box<RawValue> {
    to_raw_value(&value).expect("JSON")
}

/// Calls a tool and gives its result, or its error, as one text.
pub async fn call(run: &Run, server: &str, tool: &str, arguments: Value) -> String {
    show(
        run.call(target(server, tool), raw(arguments), CallOptions::default())
            .await,
    )
}

/// Calls a tool without arguments and gives its result, or its error, as a script sees it.
pub async fn go(run: &Run, target: Target) -> String {
    let result = in_time(run.call(target, raw(json!({})), CallOptions::default())).await;
    result.map_or_else(|error| error.to_string(), |value| value.to_string())
}

/// The decision about each call.
pub fn decisions(run: &Run) -> String {
    let lines = run.ledger().into_iter();
    let lines = lines.map(|line| format!("{} {}\n", line.function, line.decision));
    lines.collect()
}

pub fn show(result: Result<Box<RawValue>, CallError>) -> String {
    match result {
        Ok(value) => value.to_string(),
        Err(error) => format!("{error:?}"),
    }
}

/// Fails rather than hangs.
pub async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), what)
        .await
        .expect("it hangs")
}
