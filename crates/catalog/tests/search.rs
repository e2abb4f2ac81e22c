//! Finding tools: the results of queries, and of hostile definitions and queries.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails the test")]

use callgate_catalog::search::{Entry, SearchIndex};
use callgate_catalog::{Catalog, ToolDefinition};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The functions that a query finds, the best first.
fn found(index: &SearchIndex, query: &str) -> Vec<String> {
    let found = index.by_words(query, |_| true, 10).ranked;
    assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
    let functions = found.iter().map(|ranked| ranked.function.to_owned());
    functions.collect()
}

fn catalog(tools: &[(&str, Value)]) -> Catalog {
    let definitions = tools.iter().map(|(server, raw)| {
        let mut raw = raw.clone();
        if raw.get("inputSchema").is_none() {
            raw["inputSchema"] = json!({ "type": "object" });
        }
        ToolDefinition::parse(server, &raw).unwrap()
    });
    Catalog::build(definitions.collect())
}

fn index(catalog: &Catalog) -> SearchIndex {
    SearchIndex::build(entries(catalog))
}

fn entries(catalog: &Catalog) -> impl Iterator<Item = Entry<'_>> {
    catalog.tools().iter().map(|tool| Entry {
        function: &tool.function,
        definition: &tool.definition,
        keywords: Vec::new(),
        about: None,
    })
}

fn forge() -> Catalog {
    let severity = json!({ "type": "string", "enum": ["blocker", "minor"] });
    let issue = json!({ "title": { "type": "string" }, "severity": severity });
    let tool = |name: &str, description: &str| json!({ "name": name, "description": description });
    let mut create = tool("create_issue", "Open a ticket. Labels are optional.");
    create["inputSchema"] = json!({ "type": "object", "properties": issue });
    let list = json!({ "name": "listIssues", "title": "Tickets, newest first" });
    catalog(&[
        ("hub", create),
        ("hub", list),
        ("hub", tool("merge_pull_request", "Merge a pull request.")),
        ("fs", tool("read_file", "The text of a file.")),
        ("fs", tool("file_system_info", "Free space.")),
        ("chat", tool("post", "Send a message to people.")),
    ])
}

#[test]
fn unknown_query_words_are_named() {
    let catalog = forge();
    let index = index(&catalog);
    for (query, words, is_topic) in [
        (
            "merge the unreviewed pull requests",
            vec!["unreviewed"],
            false,
        ),
        ("show me all the calendars", vec!["calendars"], true),
        ("read a spreadsheet cell", vec!["spreadsheet", "cell"], true),
        ("create an issue", vec![], false),
        ("of the", vec![], false),
    ] {
        let unknown = index.unknown_words(query, |_| true);
        assert_eq!(unknown.words, words, "{query}");
        assert_eq!(unknown.is_topic, is_topic, "{query}");
    }
    // Of one server alone.
    let unknown = index.unknown_words("merge a file", |server| server == "fs");
    assert_eq!(unknown.words, ["merge"]);
}

/// Tools of files, git, a memory and the time, as real servers have them.
const DESK: &str = "\
fs read_file Read the complete contents of a file as text. DEPRECATED: Use read_text_file instead.
fs read_text_file Read the complete contents of a file from the file system as text.
fs read_media_file Read an image or audio file.
fs write_file Create a new file or overwrite an existing file.
fs move_file Move or rename files and directories. Both must be within allowed directories.
git git_log Shows the commit logs, with author and date
git git_commit Records changes to the repository
git git_branch List Git branches
memory create_entities Create multiple new entities in the knowledge graph
memory read_graph Read the entire knowledge graph
memory search_nodes Search for nodes in the knowledge graph based on a query
time get_current_time Get current time in a specific timezone
time get_time Deprecated: use get_current_time";

/// Tools of memory, browsers, files and forges, in the words of their servers.
const OFFICE: &str = "\
memory create_entities Create multiple new entities in the knowledge graph
memory add_observations Add new observations to existing entities in the knowledge graph
memory delete_relations Delete multiple relations from the knowledge graph
memory search_nodes Search for nodes in the knowledge graph based on a query
chrome evaluate_script Evaluate JavaScript inside the target page. Returns the response as JSON.
chrome fill_form Fill out multiple form elements (inputs, selects, checkboxes, radios) at once. \
ALWAYS prefer this tool over multiple individual 'fill' or 'click' calls when interacting with \
forms. It is significantly faster, more reliable, and reduces turn count. Example: Fill username, \
password, and check 'Remember Me' in one call.
chrome start_trace Start a performance trace on the selected web page.
chrome take_heapsnapshot Capture a heap snapshot of the page to save to a path. Use to \
analyze the memory distribution of JavaScript objects and debug memory leaks.
browser navigate Navigate to a URL
browser run_code_unsafe Run a code snippet. Unsafe: executes arbitrary JavaScript in the server.
files get_file_info Retrieve metadata about a file or directory. Returns size and permissions.
files list_with_sizes Get a detailed listing of a directory, including sizes.
files read_text_file Read the complete contents of a file as text.
files write_file Create a new file or save text to a file on disk.
github list_issues List the issues of a GitHub repository
gitlab list_issues List the issues of a GitLab project
git git_show Show the contents of a commit
db query Run a query on PostgreSQL
db explain The plan of a query. Works with PostgreSQL only.
traces export Send spans to an opentelemetry collector
google-maps directions Directions between two places
ideas mind_map Draw a map of ideas";

fn desk() -> Catalog {
    from_lines(DESK)
}

/// A catalog of lines with a server, a name and a description.
fn from_lines(lines: &str) -> Catalog {
    let tools = lines.lines().map(|line| {
        let [server, name, said] = *line.splitn(3, ' ').collect::<Vec<_>>() else {
            panic!("{line}");
        };
        (server, json!({ "name": name, "description": said }))
    });
    catalog(&tools.collect::<Vec<_>>())
}

#[test]
fn query_without_good_match_is_detected() {
    let catalog = desk();
    let index = index(&catalog);
    for (query, fits) in [
        ("send an email", false),
        ("send a message to slack", false),
        ("create a calendar event", false),
        ("translate text to French", false),
        ("what is the weather in Paris", false),
        ("read a spreadsheet", false),
        ("query the database", false),
        ("read a file", true),
        ("rename file", true),
        ("show commits", true),
        ("current time", true),
        ("what time is it in Tokyo timezone", true),
        ("create entities", true),
        ("git_comit", true),
        ("getCurrentTime", true),
        ("grph", true),
        ("fs", true),
    ] {
        let found = index.by_words(query, |_| true, 3);
        assert_eq!(found.fits, fits, "{query}: {found:?}");
    }
    let found = index.by_words("read file", |_| true, 2);
    assert_eq!((found.ranked.len(), found.more), (2, 8), "{found:?}");
    let found = index.by_pattern("^git", |_| true, 2, || true).unwrap();
    assert_eq!((found.ranked.len(), found.more), (2, 1), "{found:?}");
}

#[test]
fn deprecated_tools_rank_after_equal_matches() {
    let catalog = desk();
    let index = index(&catalog);
    for (query, first, later) in [
        ("read file", "fs_read_text_file", "fs_read_file"),
        (
            "contents of a file as text",
            "fs_read_text_file",
            "fs_read_file",
        ),
        ("get time", "time_get_current_time", "time_get_time"),
        // A query for a tool's name finds that tool first.
        ("fs_read_file", "fs_read_file", "fs_read_text_file"),
        ("time_get_time", "time_get_time", "time_get_current_time"),
    ] {
        let found = found(&index, query);
        let place = |name: &str| found.iter().position(|it| it == name);
        assert!(
            place(first) < place(later) && place(first) < Some(2),
            "{query}: {found:?}"
        );
    }
    for pattern in ["^(fs_)?read", "time"] {
        let found = index.by_pattern(pattern, |_| true, 10, || true).unwrap();
        let last = found.ranked.last().unwrap().function;
        let is_old = catalog.get(last).unwrap().definition.is_deprecated();
        assert!(is_old, "{pattern}: {found:?}");
    }
}

#[test]
fn tools_are_found_by_names_and_descriptions() {
    let catalog = forge();
    let index = index(&catalog);
    for (query, first) in [
        ("list issues", "hub_listIssues"),
        ("creating an issue", "hub_create_issue"),
        ("newest tickets", "hub_listIssues"),
        ("severity blocker", "hub_create_issue"),
        ("chat message", "chat_post"),
        ("merge a PULL-request", "hub_merge_pull_request"),
        ("filesystem", "fs_file_system_info"),
        // Names that are not quite right.
        ("hub_create_isue", "hub_create_issue"),
        ("HUB.ListIssues", "hub_listIssues"),
        ("raed file", "fs_read_file"),
        ("mergepullrequest", "hub_merge_pull_request"),
    ] {
        let found = found(&index, query);
        assert_eq!(found.first().map_or("", String::as_str), first, "{query}");
    }
    for query in ["quantum chromodynamics", ""] {
        assert!(found(&index, query).is_empty(), "{query}");
    }
}

#[test]
fn everyday_words_find_tools_of_other_words() {
    let catalog = from_lines(OFFICE);
    let index = index(&catalog);
    for (query, first) in [
        ("remember a fact about a person", "memory_add_observations"),
        ("store a note in memory", "memory_add_observations"),
        ("run javascript on the page", "chrome_evaluate_script"),
        ("how big is a file", "files_get_file_info"),
        ("remember that Ann likes tea", "memory_add_observations"),
        ("execute JavaScript in a page", "chrome_evaluate_script"),
        ("how large is this directory", "files_list_with_sizes"),
        ("visit a website", "browser_navigate"),
    ] {
        let found = found(&index, query);
        assert_eq!(
            found.first().map_or("", String::as_str),
            first,
            "{query}: {found:?}"
        );
    }
}

#[test]
fn mixed_case_words_match_joined_and_parted_words() {
    let catalog = from_lines(OFFICE);
    let index = index(&catalog);
    for (spellings, count) in [
        (["javascript", "JavaScript", "java script"], 3),
        (["postgresql", "PostgreSQL", "postgre SQL"], 2),
        (["opentelemetry", "OpenTelemetry", "Open Telemetry"], 1),
        (["heapsnapshot", "heapSnapshot", "heap snapshot"], 1),
    ] {
        let best = spellings.map(|query| {
            let matched = index.by_words(query, |_| true, count);
            assert!(matched.fits, "{query}: {matched:?}");
            let functions = matched.ranked.iter().map(|ranked| ranked.function);
            functions.collect::<Vec<_>>()
        });
        assert_eq!(best[0].len(), count, "{best:?}");
        assert!(best.iter().all(|other| *other == best[0]), "{best:?}");
    }
}

#[test]
fn servers_named_in_queries_come_first() {
    let catalog = from_lines(OFFICE);
    let index = index(&catalog);
    for (query, first) in [
        ("memory", "memory_add_observations"),
        ("save this in memory", "memory_add_observations"),
        ("github issues", "github_list_issues"),
        ("issues on GitLab", "gitlab_list_issues"),
        ("GitHub", "github_list_issues"),
        ("googlemaps", "google_maps_directions"),
        ("a map of thoughts", "ideas_mind_map"),
    ] {
        let found = found(&index, query);
        assert_eq!(
            found.first().map_or("", String::as_str),
            first,
            "{query}: {found:?}"
        );
    }
}

#[test]
fn only_the_servers_asked_for_are_searched() {
    let catalog = forge();
    let index = index(&catalog);
    let of = |server: &str| {
        let found = index
            .by_words("file message issue", |one| one == server, 10)
            .ranked;
        let functions = found.iter().map(|ranked| ranked.function.to_owned());
        functions.collect::<Vec<_>>()
    };
    assert_eq!(of("chat"), ["chat_post"]);
    assert_eq!(of("nobody"), Vec::<String>::new());
    assert_eq!(index.count(|server| server == "hub"), 3);
    assert_eq!(index.by_words("issue", |_| true, 1).ranked.len(), 1);
    assert!(index.by_words("issue", |_| true, 0).ranked.is_empty());
}

#[test]
fn keywords_and_server_purpose_are_searched() {
    let catalog = forge();
    let index = SearchIndex::build(entries(&catalog).map(|entry| {
        Entry {
            keywords: (entry.function == "chat_post")
                .then_some("announcement")
                .into_iter()
                .collect(),
            about: (entry.definition.server == "fs").then_some("The archive of invoices"),
            ..entry
        }
    }));
    assert_eq!(found(&index, "announcements"), ["chat_post"]);
    assert_eq!(found(&index, "invoice").len(), 2);
}

#[test]
fn equal_scores_are_ordered_by_name() {
    let tools: Vec<(&str, Value)> = ["z", "b", "a", "y"]
        .map(|server| (server, json!({ "name": "ping", "description": "Answers." })))
        .into();
    let catalog = catalog(&tools);
    let expected = ["a_ping", "b_ping", "y_ping", "z_ping"];
    assert_eq!(found(&index(&catalog), "ping"), expected);
}

#[test]
fn expression_matches_rank_names_before_titles_and_descriptions() {
    let catalog = forge();
    let index = index(&catalog);
    let check = |pattern: &str, expected: &[&str]| {
        let matched = index.by_pattern(pattern, |_| true, 10, || true).unwrap();
        assert!(matched.is_complete);
        let functions = matched.ranked.iter().map(|ranked| ranked.function);
        assert_eq!(functions.collect::<Vec<_>>(), expected, "{pattern}");
    };
    check("ticket", &["hub_listIssues", "hub_create_issue"]);
    check("^hub_.*issues?$", &["hub_create_issue", "hub_listIssues"]);
    check("FILE", &["fs_file_system_info", "fs_read_file"]);
    check("nothing at all", &[]);
    for (pattern, expected) in [
        ("(a", "unclosed group"),
        (
            r"(?:\w{900}){900}",
            "it is too large once compiled; use smaller counts",
        ),
        (&"a".repeat(5_000), "it has 5000 bytes; the limit is 1000"),
    ] {
        let fault = index
            .by_pattern(pattern, |_| true, 10, || true)
            .unwrap_err();
        assert_eq!(fault.to_string(), expected);
    }
    let ended = index.by_pattern("x", |_| true, 10, || false).unwrap();
    assert!(!ended.is_complete && ended.ranked.is_empty());
}

#[test]
fn repeated_words_do_not_make_the_best_match() {
    let stuffed = "invoice ".repeat(100_000);
    let properties =
        (0..10_000).map(|n| (format!("invoice_{n}"), json!({ "description": "invoice" })));
    let properties: serde_json::Map<String, Value> = properties.collect();
    let input = json!({ "type": "object", "properties": properties });
    let stuffed = json!({ "name": "anything", "description": stuffed, "inputSchema": input });
    let catalog = catalog(&[
        ("bad", stuffed),
        (
            "bad",
            json!({ "name": "other", "title": "invoice invoice invoice" }),
        ),
        (
            "good",
            json!({ "name": "create_invoice", "description": "Writes an invoice." }),
        ),
    ]);
    let index = index(&catalog);
    assert_eq!(found(&index, "invoice")[0], "good_create_invoice");
}

#[test]
fn other_tools_do_not_lower_the_score() {
    let pay = json!({ "name": "pay_bill", "description": "Pays a bill." });
    let mut tools = vec![("good", pay)];
    let alone = catalog(&tools);
    let score = |catalog: &Catalog| index(catalog).by_words("pay", |_| true, 1).ranked[0].score;
    let before = score(&alone);
    let long = "lorem ".repeat(10_000);
    tools.push(("bad", json!({ "name": "x", "description": long })));
    // Only how rare a word is depends on others: it is rarer among more.
    assert!(score(&catalog(&tools)) >= before);
}

proptest! {
    #[test]
    fn no_query_and_no_definition_panics(
        query in "\\PC{0,60}",
        name in "[a-zA-Z0-9_é-]{1,40}",
        description in "\\PC{0,200}",
    ) {
        let catalog = catalog(&[
            ("s", json!({ "name": name, "description": description })),
            ("größe", json!({ "name": "列出仓库" })),
        ]);
        let index = index(&catalog);
        let found = index.by_words(&query, |_| true, 10).ranked;
        prop_assert!(found.iter().all(|ranked| ranked.score.is_finite() && ranked.score > 0.0));
        let whole = index.by_words(&name, |_| true, 10).ranked;
        prop_assert!(name.bytes().all(|byte| !byte.is_ascii_alphanumeric()) || !whole.is_empty());
        let _matched = index.by_pattern(&query, |_| true, 10, || true);
    }
}
