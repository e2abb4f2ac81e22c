//! The descriptions of a model's tools: the declarations and names of functions in the budget, the
//! servers, and the calls that need approval.

use callgate_tests::{Workbench, cases, odd};
use rmcp::model::Tool;
use serde_json::{Value, json};

use crate::serve_client::{NEWEST, User, can, connect};
use crate::serve_modes::{OLD, SWITCHES, client, demo, description};

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
