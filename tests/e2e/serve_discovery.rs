//! Searches for tools, and calls of tools without a script.

use callgate_tests::{Workbench, cases, odd};
use rmcp::model::ReadResourceRequestParams;
use serde_json::{Value, json};

use crate::guarded::Guarded;
use crate::serve_client::{NEWEST, User, can, connect, shown};
use crate::serve_modes::{OLD, client, demo};

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
