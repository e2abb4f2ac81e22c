//! Servers of the fixtures, and calls as text.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use callgate_auth::Source;
use callgate_policy::Definition;
use callgate_servers::{
    CallFailure, Phase, ServerSpec, Servers, Status, Stdio, ToolCall, Transport,
};
use serde_json::Value;
use serde_json::value::RawValue;

/// A limit that no test needs on any machine.
const LONG: Duration = Duration::from_secs(60);

/// Waits for something that must come.
pub async fn in_time<T>(what: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(LONG, what).await;
    done.expect("it takes too long")
}

/// The path of a fixture server.
pub fn fixture(name: &str) -> String {
    let test = std::env::current_exe().expect("the test knows its own path");
    let profile = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("target/PROFILE/deps");
    let folder = std::env::var_os("CALLGATE_TEST_BIN_DIR").map(PathBuf::from);
    let path = folder.unwrap_or_else(|| profile.to_owned()).join(name);
    assert!(
        path.exists(),
        "{} is missing: run `cargo build -p callgate-fixture-servers` first",
        path.display()
    );
    path.to_str().expect("a UTF-8 path").to_owned()
}

/// The odd server in a mode, under the mode's name.
pub fn odd(mode: &str) -> ServerSpec {
    ServerSpec::stdio(mode, fixture("callgate-odd-server"), mode.split(' '))
}

/// The odd server with an environment.
pub fn odd_with_env(mode: &str, env: &[(&str, &str)]) -> ServerSpec {
    let mut spec = odd(mode);
    if let Transport::Stdio(Stdio { env: of_spec, .. }) = &mut spec.transport {
        let env = env.iter();
        let env = env.map(|(name, value)| ((*name).to_owned(), Source::text(*value)));
        *of_spec = env.collect::<BTreeMap<_, _>>();
    }
    spec
}

/// Starts servers; one that does not start is in their list.
pub async fn start(specs: Vec<ServerSpec>) -> Servers {
    in_time(Servers::connect(specs)).await
}

/// Starts one server, which must start.
pub async fn one(spec: ServerSpec) -> Servers {
    let servers = start(vec![spec]).await;
    for state in servers.list() {
        if let Status::Failed(error) = state.status {
            panic!("{error}");
        }
    }
    servers
}

/// A line for each server: its revision and tools, or why it did not start; and its warnings.
pub fn states(servers: &Servers) -> String {
    let mut lines = String::new();
    for state in servers.list() {
        match state.status {
            Status::Ready(list) => {
                let names = list
                    .tools
                    .iter()
                    .map(|tool| tool["name"].as_str().unwrap_or("?"));
                let names: Vec<_> = names.collect();
                let (name, version) = (state.name, &list.protocol_version);
                lines += &format!("{name}: {version}, tools [{}]\n", names.join(", "));
                for warning in list.warnings.iter().chain(&list.gaps) {
                    lines += &format!("  warning: {warning}\n");
                }
            }
            Status::Failed(error) => lines += &format!("{error}\n"),
            other => lines += &format!("{other:?}\n"),
        }
    }
    lines
}

/// The definition of a tool by the current list; that of no tool, if it is not listed.
pub fn definition(servers: &Servers, server: &str, tool: &str) -> Definition {
    let state = servers.list().find(|state| state.name == server);
    let entry = match state.map(|state| state.status) {
        Some(Status::Ready(list)) => list
            .tools
            .iter()
            .find(|entry| entry["name"] == tool)
            .cloned(),
        _ => None,
    };
    Definition::of(&entry.unwrap_or_default())
}

/// Makes a call with the server's own caller.
pub async fn try_call(
    servers: &Servers,
    server: &str,
    tool: &str,
    arguments: Value,
) -> Result<Value, CallFailure> {
    let definition = definition(servers, server, tool);
    let answer = decided_call(servers, server, tool, &definition, &arguments, None).await?;
    Ok(serde_json::from_str(answer.get()).expect("JSON"))
}

/// Makes a call of a tool with this definition.
pub async fn decided_call(
    servers: &Servers,
    server: &str,
    tool: &str,
    definition: &Definition,
    arguments: &Value,
    limit: Option<Duration>,
) -> Result<Box<RawValue>, CallFailure> {
    let call = ToolCall {
        server,
        tool,
        definition: definition.hash(),
        arguments: &arguments.to_string(),
        caller: None,
        limit,
    };
    in_time(servers.call(call)).await
}

/// The structured content of an answer, its first text, or the failure.
pub async fn call(servers: &Servers, server: &str, tool: &str, arguments: Value) -> String {
    match try_call(servers, server, tool, arguments).await {
        Ok(result) => match (&result["structuredContent"], &result["content"][0]["text"]) {
            (Value::Null, Value::String(text)) => text.clone(),
            (Value::Null, _) => result.to_string(),
            (content, _) => content.to_string(),
        },
        Err(failure) => format!("{failure} [sent: {}]", failure.sent),
    }
}

/// The answer to the only call of a server.
pub async fn answer(spec: ServerSpec, tool: &str, arguments: Value) -> String {
    let name = spec.name.clone();
    let servers = one(spec).await;
    let answer = call(&servers, &name, tool, arguments).await;
    in_time(servers.shut_down()).await;
    answer
}

/// Waits until the servers are in a state.
pub async fn until(servers: &Servers, reached: impl Fn(&Servers) -> bool) {
    let mut changes = servers.watch();
    in_time(async {
        while !reached(servers) {
            changes.changed().await.expect("the servers are there");
        }
    })
    .await;
}

/// The phase of the only server.
pub fn phase(servers: &Servers) -> Phase {
    servers.list().next().expect("a server").phase
}

/// The names of the tools of the only server.
pub fn tools(servers: &Servers) -> Vec<String> {
    match servers.list().next().expect("a server").status {
        Status::Ready(list) => {
            let names = list.tools.iter().filter_map(|tool| tool["name"].as_str());
            names.map(str::to_owned).collect()
        }
        other => panic!("{other:?}"),
    }
}
