//! Which tools a client of `callgate serve` sees, and that they stay.

use std::collections::BTreeSet;

use callgate_tests::{Workbench, cases, demo_logging, demo_ticketing, odd};
use rmcp::model::{ProtocolVersion, ReadResourceRequestParams, Tool};
use serde_json::{Value, json};

use crate::guarded::Guarded;
use crate::serve_client::{NEWEST, Session, User, can, connect, shown};

const OLD: ProtocolVersion = ProtocolVersion::V_2025_11_25;
const FINDERS: [&str; 2] = ["search_tools", "get_tool_details"];
const SWITCHES: [&str; 3] = ["list_servers", "enable_server", "disable_server"];

fn demo() -> Value {
    json!({ "logging": demo_logging(), "ticketing": demo_ticketing() })
}

async fn client(bench: &Workbench, version: &ProtocolVersion, flags: &[&str]) -> Session {
    connect(bench, User::new(version, &[]), flags).await
}

async fn names(session: &Session) -> Vec<String> {
    let tools = session.tools().await;
    tools.iter().map(|tool| tool.name.to_string()).collect()
}

/// The rows of the table in docs/serve.md.
#[tokio::test]
async fn each_mode_has_its_tools() {
    let scripts = ["run_script", "wait", "cancel_run"];
    let discovery = ["search_tools", "get_tool_details", "call_tool"];
    let native = [
        "logging_getLogs",
        "ticketing_createIssue",
        "ticketing_listIssues",
    ];
    let rows: [(&[&str], &[&str]); 4] = [
        // The description has more than 2,000 characters.
        (&[], &[&scripts[..], &FINDERS].concat()),
        (
            &["--context-window", "1000"],
            &[&scripts[..], &FINDERS].concat(),
        ),
        (&["--mode", "discovery"], &discovery),
        (&["--mode", "native"], &native),
    ];
    let mut servers = demo();
    let bench = Workbench::new(servers.clone());
    servers["later"] = odd("many");
    servers["later"]["connect"] = "manual".into();
    let more = Workbench::new(servers);
    let empty = Workbench::new(json!({}));
    for version in [OLD, NEWEST] {
        let session = client(&empty, &version, &[]).await;
        assert_eq!(names(&session).await, scripts, "{version}");
        for (flags, expected) in &rows {
            let session = client(&bench, &version, flags).await;
            assert_eq!(names(&session).await, *expected, "{version} {flags:?}");
        }
        // A server that is off can be brought in.
        for (mode, own) in [("code", &scripts[..]), ("discovery", &["call_tool"])] {
            let session = client(&more, &version, &["--mode", mode]).await;
            let listed = names(&session).await;
            let expected = [own, &FINDERS, &SWITCHES].concat();
            let expected: BTreeSet<String> = expected.into_iter().map(str::to_owned).collect();
            assert_eq!(BTreeSet::from_iter(listed), expected, "{version} {mode}");
        }
    }
}

/// The text that a model reads of a tool.
fn description(tools: &[Tool], name: &str) -> String {
    let tool = tools.iter().find(|tool| tool.name == name);
    let description = tool.and_then(|tool| tool.description.as_deref());
    description.expect("a description").to_owned()
}

/// Tokens of what hosts pass on to models of an array.
fn tokens(tools: &[Tool]) -> usize {
    let vocabulary = tiktoken_rs::o200k_base().expect("the vocabulary");
    let passed = |tool: &Tool| {
        let (schema, description) = (&*tool.input_schema, &tool.description);
        json!({ "name": tool.name, "description": description, "input_schema": schema })
    };
    let array: Vec<Value> = tools.iter().map(passed).collect();
    let text = Value::from(array).to_string();
    vocabulary.encode_ordinary(&text).len()
}

#[tokio::test]
async fn declarations_in_description_fit_the_context_budget() {
    let bench = Workbench::with_config(json!({
        "mcpServers": demo(),
        "permissions": { "allow": ["*"], "deny": ["ticketing_createIssue"] },
    }));
    for (case, not_shown) in cases(
        r#"
        ["200000", "3 functions in 2 servers, declared at the end of this text. "] → COMPLETE
        ["200000", "declare function ticketing_listIssues("] → PARTIAL
        ["200000", "- ticketing (2 tools, 1 denied): ticketing_listIssues\n"] → PARTIAL
        ["9000", ", as name(input): result type"] → declare function
        ["9000", "ticketing_listIssues("] → PARTIAL
        ["4000", "PARTIAL: 3 functions in 2 servers, 1 of them declared at the end "] → COMPLETE
        ["4000", "ticketing_listIssues("] → logging_getLogs(
        ["4000", "- logging (1 tool): logging_getLogs\n"] → declare function
        ["500", "PARTIAL: 3 functions in 2 servers, none declared here."] → ticketing_listIssues
        ["500", "- ticketing (2 tools, 1 denied)\n"] → COMPLETE"#,
    ) {
        let [window, shown] = [0, 1].map(|at| case[at].as_str().expect("a text"));
        let session = client(&bench, &OLD, &["--context-window", window]).await;
        let text = description(&session.tools().await, "run_script");
        assert!(text.contains(shown), "{window}: {text}");
        // The call that shows the form stands above.
        let below = text.split_once("\n\n").expect("two parts").1;
        assert!(!below.contains(not_shown), "{window}: {text}");
        for always in [
            ": `await logging_getLogs({})`",
            "DENIED by the configuration, 1 of 3: ticketing_createIssue.\n",
        ] {
            assert!(text.contains(always), "{window}: {text}");
        }
    }
}

/// The first characters of a description, which every client shows.
fn start(text: &str) -> String {
    text.chars().take(2000).collect()
}

/// With hundreds of tools, the names and declarations that a model starts with fit the budget.
#[tokio::test]
async fn hundreds_of_tools_cost_no_more_than_the_budget() {
    for (servers, mode, max) in [
        (12, "code", 7000),
        (25, "code", 7000),
        (25, "discovery", 2500),
    ] {
        let names = (0..servers).map(|number| (format!("records{number}"), odd("many")));
        let bench = Workbench::new(names.collect::<serde_json::Map<_, _>>().into());
        // With a model, there is a line more to say.
        let mut user = User::new(&NEWEST, &[]);
        user.can = can(json!({ "sampling": {} }));
        let session = connect(&bench, user, &["--mode", mode]).await;
        let listed = session.tools().await;
        let tokens = tokens(&listed);
        assert!(tokens <= max, "{tokens} tokens in mode {mode}: {listed:#?}");
        let text = description(&listed, &listed[0].name);
        assert!(text.contains("records0_search_records_39"), "{text}");
        if mode == "code" {
            let tools = 40 * servers;
            let begin = format!("PARTIAL: {tools} functions in {servers} servers");
            for shown in [&*begin, "`await records0_", "search_tools", "records9"] {
                assert!(start(&text).contains(shown), "{shown}: {text}");
            }
            assert!(text.contains("- mcp.extract("), "{text}");
        }
    }
}

/// Large servers do not keep the functions of small ones from being declared, nor their own from
/// being named.
#[tokio::test]
async fn small_servers_are_declared_beside_large_ones() {
    for large in [["archive", "museum"], ["people", "zoo"]] {
        let mut servers = demo();
        for name in large {
            servers[name] = odd("many");
        }
        let bench = Workbench::new(servers);
        let session = client(&bench, &OLD, &[]).await;
        let text = description(&session.tools().await, "run_script");
        for declared in [
            "\nlogging_getLogs({",
            "\nticketing_createIssue({",
            "\nticketing_listIssues(",
        ] {
            assert!(text.contains(declared), "{declared}: {text}");
        }
        let begin = "PARTIAL: 83 functions in 4 servers, ";
        for shown in [
            begin,
            "search_tools",
            "- logging (1 tool): logging_getLogs\n",
        ] {
            assert!(start(&text).contains(shown), "{shown}: {text}");
        }
        for name in large {
            assert!(
                start(&text).contains(&format!("- {name} (40 tools)")),
                "{text}"
            );
            let last = format!("{name}_search_records_39");
            assert!(text.contains(&last), "{text}");
        }
    }
}

/// Servers that are down take one line, without reasons.
#[tokio::test]
async fn unavailable_servers_take_one_line() {
    for down in [["gone", "lost"], ["absent", "broken"]] {
        let mut servers = demo();
        for name in down {
            servers[name] = json!({ "command": format!("/no/such/{name}-program") });
        }
        let bench = Workbench::new(servers);
        for (mode, tool) in [("code", "run_script"), ("discovery", "search_tools")] {
            let session = client(&bench, &NEWEST, &["--mode", mode]).await;
            let listed = session.tools().await;
            let text = description(&listed, tool);
            let line = format!("Not available now: the functions of {} (", down.join(", "));
            assert_eq!(text.matches(&line).count(), 1, "{text}");
            assert!(!text.contains("-program"), "{text}");
            assert!(!text.contains(&format!("- {} (", down[0])), "{text}");
            assert!(text.contains("in 2 servers"), "{text}");
            // Nothing can be enabled.
            assert!(listed.iter().all(|tool| !SWITCHES.contains(&&*tool.name)));
        }
    }
}

/// A client whose user cannot be asked is told at the start, and by searches, which calls fail.
#[tokio::test]
async fn needed_approval_is_told_where_nobody_can_be_asked() {
    for (condition, shown) in [
        (
            json!({ "at": "/title", "glob": "Weekly **" }),
            "title Weekly **",
        ),
        (
            json!({ "at": "/priority", "in": ["low", "medium"] }),
            "priority one of [\"low\",\"medium\"]",
        ),
    ] {
        let rule = json!({ "tool": "ticketing_createIssue", "arguments": [condition] });
        let bench = Workbench::with_config(json!({
            "mcpServers": demo(), "permissions": { "allow": [rule, "ticketing_listIssues"] },
            "asking": { "ways": ["client"] },
        }));
        let asks = "NEED APPROVAL, and here nobody can be asked, so these fail: logging_getLogs.\n";
        let only = format!("ONLY WITH: ticketing_createIssue: {shown}\n");
        for version in [OLD, NEWEST] {
            for (mode, tool) in [("code", "run_script"), ("discovery", "search_tools")] {
                for can_be_asked in [false, true] {
                    let mut user = User::new(&version, &[]);
                    if !can_be_asked {
                        user.can = can(json!({}));
                    }
                    let session = connect(&bench, user, &["--mode", mode]).await;
                    let listed = session.tools().await;
                    let mut texts = vec![description(&listed, tool)];
                    let query = json!({ "query": "create issue, get logs" });
                    texts.push(session.result("search_tools", query).await.1);
                    let functions = ["ticketing_createIssue", "logging_getLogs"];
                    let names = json!({ "names": functions });
                    texts.push(session.result("get_tool_details", names).await.1);
                    for text in texts {
                        let told = [text.contains(asks), text.contains(&only)];
                        assert_eq!(told, [!can_be_asked; 2], "{version} {mode}: {text}");
                    }
                }
            }
        }
    }
}

/// Where many calls need approval, a model reads of which servers, and of which functions of others.
#[tokio::test]
async fn many_needed_approvals_are_named_by_server() {
    let mut servers = demo();
    for name in ["archive", "museum"] {
        servers[name] = odd("many");
    }
    for (permissions, expected) in [
        (
            json!({ "allow": ["archive_*", "logging_*"] }),
            "so these fail: all of ticketing, museum.\n",
        ),
        (
            json!({ "allow": ["*"], "ask": ["archive_search_records_1*", "museum_*"] }),
            "so these fail: all of museum; archive_search_records_1, archive_search_records_10, ",
        ),
    ] {
        let config = json!({
            "mcpServers": servers,
            "permissions": permissions,
            "asking": { "ways": ["client"] },
        });
        let bench = Workbench::with_config(config);
        for (mode, tool) in [("code", "run_script"), ("discovery", "search_tools")] {
            let mut user = User::new(&NEWEST, &[]);
            user.can = can(json!({}));
            let session = connect(&bench, user, &["--mode", mode]).await;
            let text = description(&session.tools().await, tool);
            assert!(text.contains(expected), "{mode}: {text}");
        }
    }
}

/// A search shows how the best tools are called and what they are for, so that no look-up follows.
#[tokio::test]
async fn search_shows_signatures_of_the_best() {
    let mut servers = demo();
    servers["records"] = odd("many");
    let bench = Workbench::new(servers);
    for mode in ["code", "discovery"] {
        let session = client(&bench, &NEWEST, &["--mode", mode]).await;
        for (query, signature, purpose, names) in [
            (
                "create an issue",
                "ticketing_createIssue({",
                "\n  File an issue",
                5,
            ),
            (
                "search records",
                "records_search_records_",
                "\n  Searches the records",
                5,
            ),
        ] {
            let (_, text) = session
                .result("search_tools", json!({ "query": query }))
                .await;
            assert!(text.starts_with(signature), "{query}: {text}");
            assert!(text.contains(purpose), "{query}: {text}");
            let is_name = |line: &&str| line.starts_with("records_") && !line.contains('(');
            assert_eq!(
                text.lines().filter(is_name).count(),
                names,
                "{query}: {text}"
            );
        }
    }
}

/// A model has no command line and no configuration file.
#[tokio::test]
async fn unavailable_server_advice_suits_a_model() {
    let guarded = Guarded::start(&json!({}));
    let mut silent = odd("silent");
    silent["startTimeout"] = json!("300ms");
    let web = json!({ "url": guarded.url, "oauth": { "tokens": "file" } });
    let bench = Workbench::new(json!({ "silent": silent, "web": web }));
    for mode in ["code", "discovery"] {
        let session = client(&bench, &NEWEST, &["--mode", mode]).await;
        let both = ["silent_read", "web_read"];
        let mut calls = vec![
            ("list_servers", json!({})),
            ("enable_server", json!({ "server": "silent" })),
            ("search_tools", json!({ "query": "read" })),
            ("get_tool_details", json!({ "names": both })),
        ];
        calls.extend(both.map(|name| match mode {
            "code" => (
                "run_script",
                json!({ "code": format!("await {name}({{}})") }),
            ),
            _ => ("call_tool", json!({ "name": name, "args": {} })),
        }));
        for (tool, arguments) in calls {
            let (_, text) = session.result(tool, arguments).await;
            let who = "the person who runs Callgate";
            assert!(text.contains(who), "{tool}: {text}");
            for word in ["startTimeout", "callgate auth", "does not start: server"] {
                assert!(!text.contains(word), "{tool}: {text}");
            }
        }
    }
    let ran = bench.run("return [silent_read, web_read]", &[]);
    for advice in ["run `callgate auth login web`", "raise its `startTimeout`"] {
        assert!(ran.stderr.contains(advice), "{ran:?}");
    }
}

#[tokio::test]
async fn tools_are_found_and_called_without_code() {
    let bench = Workbench::demo();
    for version in [OLD, NEWEST] {
        let session = client(&bench, &version, &["--mode", "discovery"]).await;
        let query = json!({ "query": "create issue", "detail": "names" });
        let (is_error, found) = session.result("search_tools", query).await;
        assert!(!is_error, "{found}");
        assert!(found.starts_with("ticketing_createIssue\n"), "{found}");
        let names = json!({ "names": ["ticketing_createIssue", "ticketing_createIsue"] });
        let (is_error, details) = session.result("get_tool_details", names).await;
        assert!(!is_error, "{details}");
        assert!(details.contains("ticketing_createIssue({\n"), "{details}");
        for word in ["Promise", "CallOptions", "declare function"] {
            assert!(!details.contains(word), "{details}");
        }
        let note =
            "note: no tool is named \"ticketing_createIsue\"; did you mean \"ticketing_create";
        assert!(details.contains(note), "{details}");
        for given in ["args", "arguments"] {
            let issue =
                json!({ "name": "ticketing_createIssue", given: { "title": "A", "body": "B" } });
            let called = session.call("call_tool", issue).await;
            let (is_error, said) = shown(&called);
            assert!(!is_error, "{said}");
            // The declared result, as compact JSON.
            let structured = called.structured_content.expect("structured content");
            assert!(structured["issueId"].is_string(), "{structured}");
            assert_eq!(said, structured.to_string());
        }
        let (is_error, servers) = session.result("list_servers", json!({})).await;
        assert!(!is_error);
        assert!(servers.starts_with("- logging (1 tool)"), "{servers}");
    }
}

/// A name that is like no tool's leads to a search.
#[tokio::test]
async fn unlike_name_names_a_search() {
    let bench = Workbench::demo();
    let session = client(&bench, &NEWEST, &["--mode", "discovery"]).await;
    for (name, search) in [
        (
            "ticketing_archive_all",
            r#"{"query":"archive all","server":"ticketing"}"#,
        ),
        (
            "logging_purge_old",
            r#"{"query":"purge old","server":"logging"}"#,
        ),
        ("weather_of_today", r#"{"query":"weather of today"}"#),
    ] {
        for (tool, given) in [
            ("call_tool", json!({ "name": name, "args": {} })),
            ("get_tool_details", json!({ "names": [name] })),
        ] {
            let (is_error, said) = session.result(tool, given).await;
            let expected =
                format!("no tool is named {name:?}; find one with search_tools {search}");
            assert!(is_error && said.contains(&expected), "{tool}: {said}");
        }
    }
}

/// A model that calls a function as a tool gets a result with the call that it meant.
#[tokio::test]
async fn function_called_as_tool_names_the_right_call() {
    let bench = Workbench::demo();
    for version in [OLD, NEWEST] {
        for (mode, tool, given, call) in [
            (
                "code",
                "ticketing_createIssue",
                json!({ "title": "A", "body": "it's" }),
                "run_script with the code: return await ticketing_createIssue(\
                 {\"title\":\"A\",\"body\":\"it's\"})",
            ),
            (
                "discovery",
                "logging_getLogs",
                json!({}),
                "call_tool with { \"name\": \"logging_getLogs\", \"args\": {} }",
            ),
        ] {
            let session = client(&bench, &version, &["--mode", mode]).await;
            let (is_error, said) = session.result(tool, given).await;
            assert!(is_error && said.ends_with(call), "{version} {mode}: {said}");
        }
    }
}

/// A long result is cut like a script's output; the whole is a resource.
#[tokio::test]
async fn long_result_is_cut_without_a_script() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "odd": odd("flaky") },
        "permissions": { "allow": ["odd_text", "odd_lines"] },
    }));
    let (half, lines) = ("ü".repeat(20_000), vec!["- one more line"; 3_000]);
    let text = json!({ "text": format!("first {half} last") });
    let joined = lines.join("\n");
    for mode in ["discovery", "native"] {
        let session = client(&bench, &OLD, &["--mode", mode]).await;
        for (tool, given, whole) in [
            (
                "odd_text",
                text.clone(),
                text["text"].as_str().expect("a text"),
            ),
            ("odd_lines", json!({ "texts": lines }), joined.as_str()),
        ] {
            let (name, given) = match mode {
                "native" => (tool, given),
                _ => ("call_tool", json!({ "name": tool, "args": given })),
            };
            let (is_error, said) = session.result(name, given).await;
            assert!(!is_error && said.len() < 17_500, "{said}");
            let total = format!(" of {} bytes are cut", whole.len());
            let (begin, end) = (&whole[..100], &whole[whole.len() - 101..]);
            for shown in [total.as_str(), begin, end, "ask the tool for less"] {
                assert!(said.contains(shown), "{shown}: {said}");
            }
            let at = said.find("callgate://runs/").expect("an address");
            let uri = said[at..].split(';').next().expect("an end");
            let request = ReadResourceRequestParams::new(uri);
            let read = session
                .client
                .read_resource(request)
                .await
                .expect("contents");
            let read = serde_json::to_value(&read.contents).expect("JSON");
            assert_eq!(read[0]["text"], whole, "{mode}");
        }
    }
}

#[tokio::test]
async fn a_call_with_wrong_arguments_is_not_sent() {
    let bench = Workbench::demo();
    for version in [OLD, NEWEST] {
        for mode in ["native", "discovery"] {
            let flags = ["--ledger", "calls.jsonl", "--mode", mode];
            let session = client(&bench, &version, &flags).await;
            for (given, problem) in cases(
                r#"
                { "title": "A", "text": "B" } → there is no argument "text"; there are title (required), body, priority
                { "body": "B" } → the value: "title" is a required property
                { "title": 5, "bdy": "B" } → there is no argument "bdy"; did you mean "body"?; /title: value is not of type "string""#,
            ) {
                let tool = "ticketing_createIssue";
                let (name, given) = match mode {
                    "native" => (tool, given),
                    _ => ("call_tool", json!({ "name": tool, "args": given })),
                };
                let answer = session.result(name, given).await;
                let expected = format!("{tool} was not called: {problem}");
                assert_eq!(answer, (true, expected), "{version} {mode}");
            }
        }
    }
    assert_eq!(bench.ledger(), [] as [Value; 0]);
}

/// The client's array of tools does not change when the server's tools do.
#[tokio::test]
async fn tool_list_stays_constant_during_a_session() {
    let bench = Workbench::new(json!({ "odd": odd("changes") }));
    let session = client(&bench, &OLD, &["--mode", "native"]).await;
    let before = session.tools().await;
    for (tool, name) in [
        ("odd_add", "fresh"),
        ("odd_change", "fresh"),
        ("odd_remove", "listed"),
    ] {
        let called = session.call(tool, json!({ "name": name })).await;
        assert_ne!(called.is_error, Some(true), "{called:?}");
    }
    // The new tool can be called although it is not in the array.
    let called = session.call("odd_fresh", json!({})).await;
    assert_eq!(shown(&called), (false, "fresh was called".to_owned()));
    // Calls do not wait for the list that lacks this one.
    while session.call("odd_listed", json!({})).await.is_error != Some(true) {}
    // The end of a server does not change the array either.
    session.call("odd_end", json!({})).await;
    assert_eq!(session.tools().await, before);
}

/// Without sessions, each list has the current tools; a client caches it for its TTL.
#[tokio::test]
async fn tool_list_is_rebuilt_without_sessions() {
    let bench = Workbench::with_config(json!({
        "mcpServers": { "odd": odd("changes") },
        "permissions": { "allow": ["*"] },
        "serve": { "mode": "native", "toolsTtl": "1ms" },
    }));
    let session = client(&bench, &NEWEST, &[]).await;
    assert!(!names(&session).await.contains(&"odd_fresh".to_owned()));
    session.call("odd_add", json!({ "name": "fresh" })).await;
    while !names(&session).await.contains(&"odd_fresh".to_owned()) {}

    let session = client(&bench, &OLD, &[]).await;
    let before = names(&session).await;
    session.call("odd_add", json!({ "name": "fresh" })).await;
    let called = session.call("odd_fresh", json!({})).await;
    assert_ne!(called.is_error, Some(true), "{called:?}");
    assert_eq!(names(&session).await, before);
}

#[tokio::test]
async fn tools_are_shown_as_the_configuration_says() {
    let bench = Workbench::with_config(json!({
        "mcpServers": demo(),
        "permissions": { "allow": ["*"] },
        "serve": { "mode": "native" },
        "tools": {
            "ticketing_*": { "visibility": "on-demand" },
            "ticketing_listIssues": { "alwaysOn": true },
            "logging_getLogs": { "visibility": "hidden" },
        },
    }));
    let session = client(&bench, &OLD, &[]).await;
    let [search, details] = FINDERS;
    let expected = [search, details, "call_tool", "ticketing_listIssues"];
    assert_eq!(names(&session).await, expected);
    let query = json!({ "query": "logs issue", "detail": "names" });
    let (_, found) = session.result("search_tools", query).await;
    assert!(found.contains("ticketing_createIssue\n"), "{found}");
    assert!(!found.contains("logging_getLogs"), "{found}");
    let hidden = json!({ "name": "logging_getLogs", "args": {} });
    let (is_error, answer) = session.result("call_tool", hidden).await;
    let is_told = answer.starts_with("no tool is named");
    assert!(is_error && is_told, "{answer}");
    // A script and `callgate tools` do not have the hidden tool either.
    let ran = bench.run("await logging_getLogs({})", &["--check", "off"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let listed = bench.callgate(&["tools"]);
    assert!(!listed.stdout.contains("getLogs"), "{listed:#?}");
}

/// A denied tool is shown with its rule to a model with tools, to a script and to a person.
#[tokio::test]
async fn a_denied_tool_is_found_and_marked_everywhere() {
    let rule = json!({ "tool": "*Issues", "server": "ticketing" });
    let place = "permissions.deny: \"*Issues\"";
    let bench = Workbench::with_config(json!({
        "mcpServers": demo(), "permissions": { "deny": [rule] },
    }));
    let mark = format!("DENIED ({place})");
    let session = client(&bench, &NEWEST, &["--mode", "discovery"]).await;
    let find = |detail: &str| json!({ "query": "list issues", "detail": detail });
    let names = json!({ "names": ["ticketing_listIssues"] });
    let server = json!({ "server": "ticketing" });
    for (tool, arguments, shown) in [
        (
            "search_tools",
            find("names"),
            "ticketing_listIssues: MARK\n",
        ),
        (
            "search_tools",
            find("summaries"),
            "ticketing_listIssues: MARK: ",
        ),
        (
            "search_tools",
            find("signatures"),
            "/** MARK */ ticketing_listIssues(",
        ),
        ("search_tools", find("full"), "/** MARK */\n"),
        ("get_tool_details", names, "/** MARK */\n"),
        ("list_servers", json!({}), "- ticketing (2 tools, 1 denied)"),
        ("enable_server", server, "2 tools, 1 denied"),
    ] {
        let (_, text) = session.result(tool, arguments).await;
        let text = text.replace(&mark, "MARK");
        assert!(text.contains(shown), "{tool}: {text}");
        assert!(
            !text.contains("ticketing_createIssue: MARK"),
            "{tool}: {text}"
        );
    }
    // Others come first, although they match less.
    let (_, text) = session.result("search_tools", find("names")).await;
    assert!(text.starts_with("ticketing_createIssue\n"), "{text}");
    let script = "const { tools } = await mcp.searchTools('list issues', { detail: 'signatures' });
        const details = await mcp.getToolDetails(['ticketing_listIssues', 'logging_getLogs']);
        const found = tools.find(tool => tool.name === 'ticketing_listIssues');
        return [found?.denied, details.tools.map(tool => tool.denied ?? null),
            [found?.summary, found?.declaration, details.declarations].join()]";
    let report = bench.report(script, &["--check=require"]);
    let value = &report["value"]["json"];
    assert_eq!(value[0], place, "{report:#}");
    assert_eq!(value[1], json!([place, null]), "{report:#}");
    let shown = value[2].as_str().expect("texts");
    assert_eq!(shown.matches(&mark).count(), 3, "{shown}");

    let found = bench.callgate(&["search", "list issues", "--json"]).json();
    let hits = found["hits"].as_array().expect("hits");
    let denied = hits.iter().filter(|hit| hit["denied"] == place).count();
    assert_eq!(denied, 1, "{found:#}");
}

/// A search says when it leaves something out, and when there is no good match: to a model with tools, to a
/// script and to a person.
#[tokio::test]
async fn search_notes_omitted_and_poor_matches() {
    let bench = Workbench::demo();
    let session = client(&bench, &NEWEST, &["--mode", "discovery"]).await;
    let [no_event, no_directory] = ["\"calendar\", \"event\"", "\"directory\""];
    let [no_event, no_directory] = [no_event, no_directory]
        .map(|words| format!("no tool speaks of {words}; these are the nearest:\n"));
    let poor = "no tool speaks of ";
    for (query, limit, head, note) in [
        ("", 2, "", "note: 1 more; "),
        ("", 3, "", ""),
        ("issue", 1, "", "note: 1 more; "),
        ("create an issue", 1, "", "note: 1 more; "),
        ("create a calendar event", 9, &*no_event, ""),
        ("list directory", 9, &*no_directory, ""),
        ("send an email", 9, "nothing found among 3 tools", ""),
    ] {
        let given = json!({ "query": query, "limit": limit, "detail": "names" });
        let (is_error, text) = session.result("search_tools", given).await;
        assert!(!is_error && text.starts_with(head), "{query}: {text}");
        let is_poor = head.starts_with(poor);
        assert_eq!(text.contains(poor), is_poor, "{query}: {text}");
        assert!(text.contains(note), "{query}: {text}");
        assert_eq!(text.contains("more; "), !note.is_empty(), "{query}: {text}");

        let script =
            format!("return (await mcp.searchTools({query:?}, {{ limit: {limit} }})).notes");
        let notes = bench.report(&script, &[])["value"]["json"].to_string();
        let limit = limit.to_string();
        let searched = bench.callgate(&["search", query, "--limit", &limit]);
        for notes in [notes, searched.stderr] {
            let told = [notes.contains(poor), notes.contains("1 more; ")];
            assert_eq!(told, [is_poor, !note.is_empty()], "{query}: {notes}");
        }
    }
}

/// The ways of searching that a model is offered, with what there is for them.
#[tokio::test]
async fn only_available_search_methods_are_offered() {
    let model = json!({ "url": "http://127.0.0.1:9/v1", "model": "m" });
    for (models, samples, more) in [
        (json!({}), false, vec![]),
        (json!({}), true, vec!["model"]),
        (json!({ "small": model }), false, vec!["model"]),
        (
            json!({ "embeddings": model }),
            false,
            vec!["vectors", "hybrid"],
        ),
    ] {
        let bench = Workbench::with_config(json!({ "mcpServers": demo(), "models": models }));
        for mode in ["discovery", "code"] {
            let mut user = User::new(&NEWEST, &[]);
            if samples {
                user.can = can(json!({ "sampling": {} }));
            }
            let flags = ["--mode", mode, "--context-window", "1000"];
            let session = connect(&bench, user, &flags).await;
            let listed = session.tools().await;
            let search = listed.iter().find(|tool| tool.name == "search_tools");
            let schema = Value::Object((*search.expect("the tool").input_schema).clone());
            let expected = [&["auto", "words", "regex"][..], &more].concat();
            let offered = &schema["properties"]["by"]["enum"];
            assert_eq!(*offered, json!(expected), "{mode}");
            assert_eq!(schema["properties"]["limit"]["default"], 10);
        }
    }
}
