//! Servers that are connected to when they are called, what is kept of them from
//! one start to the next, and skills.

use std::path::Path;
use std::sync::{Arc, Mutex};

use callgate::config::CacheConfig;
use callgate::{
    Answer, Connect, Definition, Event, Gate, Grant, Rules, RunRequest, ServerSpec, ServerState,
    Shown, Status, Transport, ask_with, question_text,
};
use callgate_tests::{Workbench, binary, real_servers};
use expect_test::expect;
use serde_json::{Value, json};

use crate::cli::check;

/// A configuration's entry for an odd server that notes each of its starts in a
/// file `NAME.starts`, and starts only while there is no file `NAME.ill`.
fn counted(name: &str, mode: &str, more: Value) -> Value {
    let script =
        format!("[ -e {name}.ill ] && exit 3; echo started >> {name}.starts; exec \"$0\" \"$@\"");
    let mut entry = json!({
        "command": "sh",
        "args": ["-c", script, binary("callgate-odd-server"), mode],
        "cwd": ".",
    });
    let members = more.as_object().expect("an object").clone();
    entry.as_object_mut().expect("an object").extend(members);
    entry
}

fn starts(bench: &Workbench, name: &str) -> usize {
    let starts = std::fs::read_to_string(bench.path().join(format!("{name}.starts")));
    starts.unwrap_or_default().lines().count()
}

#[test]
fn a_lazy_server_is_listed_checked_and_typed_without_being_started() {
    let bench = Workbench::new(json!({ "odd": counted("odd", "many", json!({
        "connect": "lazy", "description": "Forty of a kind."
    })) }));
    // The first time, nothing is known of it.
    let first = bench.callgate(&["tools"]);
    assert_eq!((first.code, starts(&bench, "odd")), (0, 1), "{first:#?}");
    let again = bench.callgate(&["-v", "tools"]);
    assert_eq!(again.stdout, first.stdout);
    let logged = again
        .stderr
        .lines()
        .filter_map(|line| line.split_once(" INFO "));
    let logged: Vec<&str> = logged.map(|(_, event)| event).collect();
    let known = "callgate::live_catalog: the tools of a server are known from an earlier time \
        server=\"odd\" revision=\"2025-11-25\" tools=40";
    assert_eq!(logged, [known], "{again:#?}");
    let types = bench.callgate(&["types", "odd_search_records_1"]);
    assert!(
        types.stdout.contains("function odd_search_records_1"),
        "{types:#?}"
    );
    bench.write(
        "script.ts",
        "await odd_search_records_1({ query: 'x', project: 'p' })",
    );
    assert_eq!(bench.callgate(&["check", "script.ts"]).code, 0);
    let none = bench.run("return 1", &[]);
    assert_eq!((none.code, starts(&bench, "odd")), (0, 1), "{none:#?}");
    // A run that calls it starts it.
    let called = bench.run(
        "await Promise.all([1, 2, 3].map(() => odd_search_records_1({ query: 'x', project: 'p' }))); return 'ok'",
        &[],
    );
    assert_eq!(called.stdout, "ok\n", "{called:#?}");
    assert_eq!(starts(&bench, "odd"), 2);
}

#[test]
fn a_server_that_is_down_is_listed_as_it_was_and_not_called() {
    let bench = Workbench::new(json!({ "odd": counted("odd", "many", json!({})) }));
    let up = bench.callgate(&["tools"]);
    bench.write("odd.ill", "");
    let down = bench.callgate(&["tools"]);
    assert_eq!((down.code, &down.stdout), (0, &up.stdout), "{down:#?}");
    assert!(down.stderr.contains("exit code 3"), "{down:#?}");
    assert!(
        down.stderr
            .contains("its tools are listed as they were less than a minute ago"),
        "{down:#?}"
    );
    let called = bench.run(
        "await odd_search_records_1({ query: 'x', project: 'p' })",
        &[],
    );
    assert_eq!(called.code, 5, "{called:#?}");
    // Nor does a check say well of it, and a call does not wait for it.
    bench.write(
        "script.ts",
        "await odd_search_records_1({ query: 'x', project: 'p' })",
    );
    let checked = bench.callgate(&["check", "script.ts"]);
    assert_eq!(checked.code, 5, "{checked:#?}");
    assert!(
        checked
            .stdout
            .contains("line 1: odd_search_records_1 is not available: server `odd` did not start"),
        "{checked:#?}"
    );
    let called = bench.callgate(&["call", "odd_search_records_1"]);
    assert_eq!(called.code, 5, "{called:#?}");
    assert!(called.stderr.contains("exit code 3"), "{called:#?}");
    // What it is declared as, is known.
    let types = bench.callgate(&["types", "odd_search_records_1"]);
    assert_eq!(types.code, 0, "{types:#?}");
    // Without what was kept, it has no tools.
    std::fs::remove_dir_all(bench.cache().join("callgate")).expect("the cache");
    let lost = bench.callgate(&["tools"]);
    assert!(!lost.stdout.contains("odd_search_records_1"), "{lost:#?}");
}

/// Its start is the call's, and fails as that of any other server.
#[test]
fn a_lazy_server_that_does_not_start_for_a_call_is_missing() {
    let script = "[ -e odd.ill ] && { echo no database >&2; exit 3; }; exec \"$0\" flaky";
    let lazy = json!({
        "command": "sh",
        "args": ["-c", script, binary("callgate-odd-server")],
        "cwd": ".",
        "connect": "lazy",
    });
    let bench = Workbench::new(json!({ "odd": lazy }));
    assert_eq!(bench.callgate(&["tools"]).code, 0);
    bench.write("odd.ill", "");
    check(
        &bench,
        &bench.callgate(&["call", "odd_text"]),
        expect![[r#"
            exit code 5
            --- stdout
            --- stderr
            callgate: server `odd` did not start: it ended with exit code 3; run its command by hand to see why; its last words on stderr:
              no database
              its tools are listed as they were less than a minute ago
        "#]],
    );
    // A script that ran is no run for which a server was missing.
    let ran = bench.run("await odd_text()", &[]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let row = ran
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("  1 odd_text failed in "));
    let said = row
        .and_then(|row| row.split_once(" ms: "))
        .expect("a row for the call")
        .1;
    expect![[r#"server `odd` did not start: it ended with exit code 3; run its command by hand to see why; its last words on stderr:\n  no database (code -32000)"#]].assert_eq(said);
}

#[test]
fn another_configuration_is_asked_for_anew() {
    let entry = |secret: &str| {
        counted(
            "odd",
            "many",
            json!({ "connect": "lazy", "env": { "TOKEN": secret } }),
        )
    };
    let bench = Workbench::new(json!({ "odd": entry("hunter2") }));
    for expected in [1, 1] {
        assert_eq!(bench.callgate(&["tools"]).code, 0);
        assert_eq!(starts(&bench, "odd"), expected);
    }
    let config = json!({ "mcpServers": { "odd": entry("hunter3") } });
    bench.write("callgate.json", &config.to_string());
    assert_eq!(bench.callgate(&["tools"]).code, 0);
    assert_eq!(starts(&bench, "odd"), 2);
    // Nor can a secret be found in what is kept.
    assert!(!everything_in(bench.cache()).contains("hunter"));
}

/// The texts of all files under a folder.
fn everything_in(folder: &Path) -> String {
    let mut texts = String::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path().is_dir() {
            true => texts.push_str(&everything_in(&entry.path())),
            false => {
                let bytes = std::fs::read(entry.path()).expect("a file");
                texts.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
    }
    texts
}

#[test]
fn nothing_is_kept_where_nothing_is_to_be() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "odd": counted("odd", "many", json!({ "connect": "lazy" })) },
        "cache": { "enabled": false },
    }));
    for expected in [1, 2] {
        assert_eq!(bench.callgate(&["tools"]).code, 0);
        assert_eq!(starts(&bench, "odd"), expected);
    }
    assert!(!bench.cache().join("callgate").exists());
}

#[test]
fn a_damaged_cache_is_told_of_and_made_good() {
    let bench = Workbench::new(json!({ "odd": counted("odd", "many", json!({})) }));
    let well = bench.callgate(&["tools"]);
    let folder = bench.cache().join("callgate/servers");
    let file = std::fs::read_dir(&folder)
        .expect("a folder")
        .flatten()
        .next();
    std::fs::write(file.expect("a file").path(), "{").expect("a file");
    let told = bench.callgate(&["tools"]);
    assert_eq!(told.stdout, well.stdout);
    assert!(
        told.stderr
            .contains("what was kept of server \"odd\" is passed over, and written anew"),
        "{told:#?}"
    );
    assert_eq!(bench.callgate(&["tools"]).stderr, "");
}

#[test]
fn a_skill_connects_its_servers_and_no_others() {
    let bench = Workbench::new(json!({
        "one": counted("one", "many", json!({})),
        "two": counted("two", "many", json!({})),
        "three": counted("three", "many", json!({ "connect": "manual" })),
    }));
    std::fs::create_dir(bench.path().join("skill")).expect("a folder");
    let skill = |servers: &str| {
        let text =
            format!("---\nname: mail\ndescription: Sort.\nservers: {servers}\n---\n# Mail\n");
        bench.write("skill/SKILL.md", &text);
    };
    skill("[two, three]");
    let ran = bench.callgate(&["tools", "--skill", "skill"]);
    assert!(!ran.stdout.contains("one_search_records_1"), "{ran:#?}");
    assert!(
        ran.stdout.contains("two_search_records_1")
            && ran.stdout.contains("three_search_records_1")
    );
    let started = ["one", "two", "three"].map(|name| starts(&bench, name));
    assert_eq!(started, [0, 1, 1]);
    bench.write(
        "script.ts",
        "await one_search_records_1({ query: 'x', project: 'p' })",
    );
    for mode in ["off", "require"] {
        let refused = bench.callgate(&["check", "script.ts", "--check", mode, "--skill", "skill"]);
        let why = "one_search_records_1 is not available: server \"one\" is disabled";
        assert!(
            refused.stdout.contains(why) || refused.stderr.contains(why),
            "{mode}: {refused:#?}"
        );
    }
    skill("[twoo]");
    let unknown = bench.callgate(&["tools", "--skill", "skill"]);
    assert_eq!(unknown.code, 2);
    expect![[r#"
        callgate: skill "mail" names the server "twoo", and none has this name; did you mean "two"?
    "#]]
    .assert_eq(&unknown.stderr);
    let nowhere = bench.callgate(&["tools", "--skill", "none"]);
    assert_eq!(nowhere.code, 2);
    expect![[r#"
        callgate: skill none/SKILL.md: No such file or directory (os error 2)
    "#]]
    .assert_eq(&nowhere.stderr);
}

fn spec(name: &str, mode: &str) -> ServerSpec {
    ServerSpec::stdio(name, binary("callgate-odd-server"), [mode])
}

async fn gate(server: ServerSpec, cache: Option<CacheConfig>, rules: Rules) -> Gate {
    let gate = Gate::builder()
        .worker_binary(binary("callgate-worker"))
        .server(server)
        .cache(cache)
        .rules(rules)
        .build();
    gate.await.expect("a gate")
}

fn all() -> Rules {
    Rules::new(["*"], [], []).expect("a pattern")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gates_servers_are_switched_and_keep_their_names() {
    let mut server = spec("odd", "changes");
    server.description = Some("Changes itself.".to_owned());
    server.connect = Connect::Manual;
    let gate = gate(server, None, all()).await;
    let [listed] = gate.servers().try_into().expect("one server");
    assert_eq!(listed.state, ServerState::Disabled);
    assert_eq!(listed.description.as_deref(), Some("Changes itself."));
    assert!(!gate.has_tool("odd_pid"));
    let enabled = gate.enable("odd").await.expect("it starts");
    assert_eq!((enabled.state, enabled.tools), (ServerState::Connected, 8));
    let names: Vec<String> = gate.tools().into_iter().map(|tool| tool.function).collect();
    let disabled = gate.disable("odd").await.expect("it is known");
    assert_eq!((disabled.state, disabled.tools), (ServerState::Disabled, 8));
    assert!(gate.tools().is_empty());
    // Whoever calls a tool of it hears that, not that there is none.
    let why = "odd_pid is not available: server \"odd\" is disabled";
    assert_eq!(gate.unknown_tool_message("odd_pid"), why);
    let code = "try { await mcp.callTool('odd_pid', {}) } catch (error) { return error.message }";
    let report = gate.run(RunRequest::new(code)).await;
    assert_eq!(report.to_string().lines().next(), Some(why));
    gate.enable("odd").await.expect("it starts");
    let again: Vec<String> = gate.tools().into_iter().map(|tool| tool.function).collect();
    assert_eq!(again, names);
    let unknown = gate.enable("add").await.expect_err("there is none");
    expect![[r#"no server is named "add"; did you mean "odd"?"#]].assert_eq(&unknown.to_string());
    let unknown = gate.disable("od").await.expect_err("there is none");
    expect![[r#"no server is named "od"; did you mean "odd"?"#]].assert_eq(&unknown.to_string());
    gate.shutdown().await;
}

/// A run's calls of a server that is switched off meanwhile say so.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_script_hears_that_its_server_is_disabled() {
    let gate = Arc::new(gate(spec("odd", "hang-on-call"), None, all()).await);
    let (began, mut begun) = tokio::sync::mpsc::unbounded_channel();
    let code = "const said = [];
         try { await odd_hang({}) } catch (error) { said.push(error.message) }
         try { await odd_cancelled({}) } catch (error) { said.push(error.message) }
         return said;";
    let request = RunRequest::new(code).on_event(move |event| {
        if let Event::CallStarted { .. } = event {
            let _told = began.send(());
        }
    });
    let running = tokio::spawn({
        let gate = Arc::clone(&gate);
        async move { gate.run(request).await }
    });
    begun.recv().await.expect("a call");
    gate.disable("odd").await.expect("it is known");
    let report = running.await.expect("no panic");
    assert_eq!(report.status, Status::Completed, "{report}");
    let said = report.to_string();
    assert_eq!(said.matches("is disabled").count(), 2, "{said}");
    gate.shutdown().await;
}

/// What was allowed for good is shown beside what it is now, though another process
/// allowed it.
#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_changed_since_another_process_shows_how() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = || Some(CacheConfig::at(folder.path()));
    let own = json!({ "name": "listed", "inputSchema": { "type": "object" } });
    let mut before = own.clone();
    before["description"] = "Lists what it has.".into();
    let granted = Arc::new(Definition::of(&before));
    let keeper = gate(spec("odd", "changes"), cache(), all()).await;
    let kept = keeper
        .keep(&[Grant::new("odd_listed").of(Arc::clone(&granted))])
        .await;
    // There is no file to keep the grant in; a judge's own "always" is below.
    assert!(kept.is_err());
    keeper.shutdown().await;

    let bench = Workbench::with_config(json!({ "mcpServers": {} }));
    let config = callgate::config::Config::load(&bench.path().join("callgate.json")).expect("one");
    let keeper = Gate::builder()
        .config(&config)
        .cache(cache())
        .worker_binary(binary("callgate-worker"))
        .build()
        .await
        .expect("a gate");
    let kept = keeper.keep(&[Grant::new("odd_listed").of(granted)]).await;
    kept.expect("it is written into the file");
    keeper.shutdown().await;

    let config = callgate::config::Config::load(&bench.path().join("callgate.json")).expect("one");
    let asked: Arc<Mutex<Option<String>>> = Arc::default();
    let noted = Arc::clone(&asked);
    let asker = ask_with(move |question| {
        *noted.lock().expect("no panic") = Some(question_text(&question, Shown::Short, Some(80)));
        std::future::ready(Answer::Deny)
    });
    let later = Gate::builder()
        .config(&config)
        .cache(cache())
        .server(spec("odd", "changes"))
        .asker(asker)
        .worker_binary(binary("callgate-worker"))
        .build()
        .await
        .expect("a gate");
    let report = later.run("await odd_listed({})").await;
    assert_eq!(report.status, Status::Denied, "{report}");
    later.shutdown().await;
    let asked = asked.lock().expect("no panic").take().expect("a question");
    let (_, change) = asked.split_once("├ its definition").expect("a change");
    expect![[r#"
        has changed since it was allowed:
        │ - "description": "Lists what it has.","#]]
    .assert_eq(change.trim());
}

/// Other people's servers, with everything at once: at first learned, then known,
/// idle and back.
#[tokio::test(flavor = "multi_thread")]
async fn real_servers_are_lazy_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let modules = real_servers().join("node/node_modules/@modelcontextprotocol");
    let server = |name: &str, entry: &str, last: &Path| {
        let mut spec = ServerSpec::stdio(name, "node", [""]);
        if let Transport::Stdio(stdio) = &mut spec.transport {
            let entry = modules.join(entry).display().to_string();
            stdio.args = vec![entry, last.display().to_string()];
        }
        spec.connect = Connect::Lazy;
        spec.idle = Some(std::time::Duration::ZERO);
        spec
    };
    let build = || {
        Gate::builder()
            .worker_binary(binary("callgate-worker"))
            .cache(Some(CacheConfig::at(folder.path())))
            .server(server(
                "fs",
                "server-filesystem/dist/index.js",
                folder.path(),
            ))
            .server(server(
                "every",
                "server-everything/dist/index.js",
                Path::new("stdio"),
            ))
            .rules(all())
            .build()
    };
    let first = build().await.expect("a gate");
    let names: Vec<String> = first
        .tools()
        .into_iter()
        .map(|tool| tool.function)
        .collect();
    assert!(names.len() > 20, "{names:?}");
    first.shutdown().await;
    let second = build().await.expect("a gate");
    let states: Vec<ServerState> = second.servers().into_iter().map(|it| it.state).collect();
    assert_eq!(states, [ServerState::Idle, ServerState::Idle]);
    let known: Vec<String> = second
        .tools()
        .into_iter()
        .map(|tool| tool.function)
        .collect();
    assert_eq!(known, names);
    let report = second
        .run(
            "const [folders, echo] = await Promise.all([
               fs_list_allowed_directories({}), every_echo({ message: 'hi' })]);
             return String(echo);",
        )
        .await;
    assert_eq!(report.status, Status::Completed, "{report}");
    second.shutdown().await;
}
