//! From a server's raw entries to a catalog: the kept tools, the dropped ones, and
//! the warnings about them.

use callgate_catalog::{Catalog, Meant, ToolDefinition};
use callgate_schema::Declared;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

/// Builds a catalog of entries, shows its functions with their originals, then
/// the malformed entries, then the warnings.
fn check(entries: &[(&str, Value)], expected: Expect) {
    let (catalog, malformed) = build(entries);
    let mut text = String::new();
    for tool in catalog.tools() {
        let function = &tool.function;
        assert_eq!(catalog.get(function), Some(tool));
        let (server, name) = (&tool.definition.server, &tool.definition.name);
        assert_eq!(
            catalog.names().function(server, name),
            Some(function.as_str())
        );
        text.push_str(&format!("{function} = {server:?} {name:?}\n"));
    }
    for line in malformed {
        text.push_str(&format!("malformed: {line}\n"));
    }
    for warning in catalog.warnings() {
        text.push_str(&format!("warning: {warning}\n"));
    }
    expected.assert_eq(&text);
}

fn build(entries: &[(&str, Value)]) -> (Catalog, Vec<String>) {
    let mut definitions = Vec::new();
    let mut malformed = Vec::new();
    for (server, raw) in entries {
        match ToolDefinition::parse(server, raw) {
            Ok(definition) => definitions.push(definition),
            Err(error) => malformed.push(error.to_string()),
        }
    }
    (Catalog::build(definitions), malformed)
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

#[test]
fn every_member_of_a_definition_is_read() {
    let raw = json!({
        "name": "getLogs",
        "title": "Get logs",
        "description": "Newest first.",
        "inputSchema": { "type": "object", "properties": { "limit": { "type": "integer" } } },
        "outputSchema": { "type": "object" },
        "annotations": {
            "title": "Logs",
            "readOnlyHint": true,
            "destructiveHint": false,
            "idempotentHint": true,
            "openWorldHint": false,
            "other": 1,
        },
        "icons": [],
        "_meta": { "x": 1 },
    });
    let tool = ToolDefinition::parse("logging", &raw).unwrap();
    let names = (tool.server.as_str(), tool.name.as_str());
    assert_eq!(names, ("logging", "getLogs"));
    let texts = (tool.title.as_deref(), tool.description.as_deref());
    assert_eq!(texts, (Some("Get logs"), Some("Newest first.")));
    assert_eq!(tool.input_schema, raw["inputSchema"]);
    let output = tool.output_schema.as_ref().map(Declared::value);
    assert_eq!(output, Some(&raw["outputSchema"]));
    assert_eq!(tool.older_title.as_deref(), Some("Logs"));
    let hints = tool.hints;
    let given = [
        hints.read_only,
        hints.destructive,
        hints.idempotent,
        hints.open_world,
    ];
    assert_eq!(given, [true, false, true, false].map(Some));
    assert!(tool.warnings.is_empty());
}

#[test]
fn app_only_tool_is_hidden() {
    let seen_by = |name: &str, visibility: Value| {
        let mut tool = tool(name);
        tool["_meta"] = json!({ "ui": { "visibility": visibility } });
        ("s", tool)
    };
    check(
        &[
            seen_by("app_only", json!(["app"])),
            seen_by("both", json!(["model", "app"])),
            seen_by("nobody", json!([])),
            seen_by("odd", json!("model")),
            seen_by("null", json!(null)),
            ("s", tool("plain")),
        ],
        expect![[r#"
            s_both = "s" "both"
            s_null = "s" "null"
            s_plain = "s" "plain"
        "#]],
    );
    let (catalog, _) = build(&[seen_by("odd name", json!("model"))]);
    assert_eq!(catalog.not_for_models()[0].function, "s_odd_name");
}

#[test]
fn malformed_entry_is_dropped_alone() {
    let mut deep = json!({});
    for _ in 0..300 {
        deep = json!({ "p": deep });
    }
    let object = json!({ "type": "object" });
    check(
        &[
            ("s", json!("tool")),
            ("s", json!({ "inputSchema": object })),
            ("s", json!({ "name": 5, "inputSchema": object })),
            ("s", tool("")),
            ("s", tool(&"n".repeat(1_000_000))),
            ("s", tool("bell\u{7}")),
            ("s", json!({ "name": "bare" })),
            ("s", json!({ "name": "null", "inputSchema": null })),
            ("s", json!({ "name": "list", "inputSchema": [] })),
            (
                "s",
                json!({ "name": "string", "inputSchema": json!({ "type": "string" }) }),
            ),
            ("s", json!({ "name": "deep", "inputSchema": deep })),
            ("s", json!({ "name": "untyped", "inputSchema": {} })),
            ("s", tool("good")),
        ],
        expect![[r#"
            s_untyped = "s" "untyped"
            s_good = "s" "good"
            malformed: server "s": a tool is dropped: the entry is not an object
            malformed: server "s": a tool is dropped: it has no `name`
            malformed: server "s": a tool is dropped: `name` is not a string
            malformed: server "s": the tool "" is dropped: `name` is empty
            malformed: server "s": the tool "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"… is dropped: `name` has 1000000 bytes; the limit is 256
            malformed: server "s": the tool "bell\u{7}" is dropped: `name` holds control characters
            malformed: server "s": the tool "bare" is dropped: it has no `inputSchema`
            malformed: server "s": the tool "null" is dropped: `inputSchema` is not an object
            malformed: server "s": the tool "list" is dropped: `inputSchema` is not an object
            malformed: server "s": the tool "string" is dropped: `inputSchema` does not have the `type` "object"
            malformed: server "s": the tool "deep" is dropped: `inputSchema` is nested deeper than 200 levels
        "#]],
    );
}

#[test]
fn invalid_descriptive_members_are_ignored() {
    let object = json!({ "type": "object" });
    let a = json!({
        "name": "a",
        "inputSchema": object,
        "outputSchema": "x",
        "title": 1,
        "description": [],
        "annotations": { "readOnlyHint": "yes", "title": null },
    });
    let b = json!({ "name": "b", "inputSchema": object, "outputSchema": [], "annotations": true });
    let c = json!({ "name": "c", "inputSchema": object, "outputSchema": null });
    check(
        &[("s", a), ("s", b), ("s", c)],
        expect![[r#"
            s_a = "s" "a"
            s_b = "s" "b"
            s_c = "s" "c"
            warning: server "s": `outputSchema` of the tool "a" is ignored: it is not an object
            warning: server "s": `title` of the tool "a" is ignored: it is not a string
            warning: server "s": `description` of the tool "a" is ignored: it is not a string
            warning: server "s": `readOnlyHint` of the tool "a" is ignored: it is not a boolean
            warning: server "s": `outputSchema` of the tool "b" is ignored: it is not an object
            warning: server "s": `annotations` of the tool "b" is ignored: it is not an object
        "#]],
    );
}

#[test]
fn duplicates_collisions_and_degradations_are_reported() {
    let odd = json!({
        "name": "odd",
        "inputSchema": { "type": "object", "properties": { "x": { "type": "date" } } },
    });
    check(
        &[
            ("s", tool("delete")),
            ("s", tool("delete")),
            ("s", tool("get-user")),
            ("s", tool("get_user")),
            ("t", tool("delete")),
            ("t", odd),
        ],
        expect![[r#"
            s_delete = "s" "delete"
            s_get_user_c97c69b6 = "s" "get-user"
            s_get_user_7e0bb0c2 = "s" "get_user"
            t_delete = "t" "delete"
            t_odd = "t" "odd"
            warning: server "s": the tool "delete" is listed more than once; the first one counts
            warning: more than one tool would be s_get_user; use s_get_user_c97c69b6 for "get-user" of "s", s_get_user_7e0bb0c2 for "get_user" of "s"
            warning: server "t": the types of the tool "odd" are wider than its schema: `type` names "date", which JSON does not have at "/inputSchema/properties/x"
        "#]],
    );
}

#[test]
fn collision_is_found_in_the_tools_own_spelling() {
    let names = ["list-items", "list_items", "listItems"];
    let (catalog, _) = build(&names.map(|name| ("s", tool(name))));
    let reason = catalog.collision("s_list_items");
    assert!(reason.is_some());
    for name in ["s_list-items", "s.list items"] {
        assert_eq!(catalog.collision(name), reason, "{name}");
    }
    for name in ["s_listItems", "s_list-item"] {
        assert_eq!(catalog.collision(name), None, "{name}");
    }
}

#[test]
fn a_name_like_a_function_suggests_it() {
    let entries = [
        ("logging", tool("getLogs")),
        ("ticketing", tool("createIssue")),
        ("ticketing", tool("closeIssue")),
    ];
    let (catalog, _) = build(&entries);
    for (name, expected) in [
        ("logging_getLog", Some("logging_getLogs")),
        ("logging_get_logs", Some("logging_getLogs")),
        ("loging_getlogs", Some("logging_getLogs")),
        ("getLogs", Some("logging_getLogs")),
        ("create_issue", Some("ticketing_createIssue")),
        ("ticketing_cloesIssue", Some("ticketing_closeIssue")),
        ("weather_forecast", None),
        ("", None),
        ("___", None),
        (&"x".repeat(1_000_000), None),
    ] {
        assert_eq!(catalog.suggest(name), expected);
    }
}

#[test]
fn begun_name_suggests_the_current_function() {
    let old = |name: &str| {
        let mut old = tool(name);
        old["description"] = "DEPRECATED: use the other one.".into();
        old
    };
    let entries = [
        ("mail", old("send_mail")),
        ("mail", tool("send_message_now")),
        ("mail", tool("send_message_to_all")),
        ("db", old("query_raw")),
        ("db", tool("explain")),
    ];
    let (catalog, _) = build(&entries);
    for (name, expected) in [
        ("mail_send_m", Some("mail_send_message_now")),
        ("mailSendMessage", Some("mail_send_message_now")),
        ("db_query", Some("db_query_raw")),
        ("mail_se", None),
        ("mail", None),
    ] {
        assert_eq!(catalog.begun(name, |_| true), expected, "{name}");
    }
    assert_eq!(
        catalog.suggest("mail_send_m"),
        Some("mail_send_message_now")
    );
    let only_old = |function: &str| function == "mail_send_mail";
    assert_eq!(
        catalog.begun("mail_send_m", only_old),
        Some("mail_send_mail")
    );
}

#[test]
fn unknown_name_finds_functions_of_its_server() {
    let entries = [
        ("kube", tool("apply")),
        ("kube", tool("get_pods")),
        ("my-notes", tool("add")),
    ];
    let (catalog, _) = build(&entries);
    for (name, expected) in [
        (
            "kube_pods_list",
            Some(("kube", vec!["kube_get_pods", "kube_apply"])),
        ),
        ("my_notes_delete", Some(("my-notes", vec!["my_notes_add"]))),
        ("wiki_delete", None),
        ("kube", None),
    ] {
        assert_eq!(catalog.server_of(name, |_| true), expected, "{name}");
    }
}

#[test]
fn names_in_other_spellings_find_the_function() {
    let entries = [
        ("fs", tool("read_text_file")),
        ("fs", tool("list")),
        ("notes", tool("list")),
        ("my-mail", tool("sendMail")),
        ("tools", tool("list_all")),
    ];
    let (catalog, _) = build(&entries);
    let functions = |names: &[&'static str]| Some(Meant::Functions(names.to_vec()));
    for name in [
        "fs.read_text_file",
        "fs.readTextFile",
        "tools.fs_read_text_file",
        "tools.fs.read_text_file",
        "mcp.fs.readTextFile",
        "servers.fs.read_text_file",
        "functions.fs_read_text_file",
        "mcp__fs__read_text_file",
        "fsReadTextFile",
        "fs_readTextFile",
        "readTextFile",
        "read_text_file",
    ] {
        let found = catalog.meant(name, |_| true);
        assert_eq!(found, functions(&["fs_read_text_file"]), "{name}");
    }
    let server = |first, second| Some(Meant::Server("fs", vec![first, second]));
    let (read, list) = ("fs_read_text_file", "fs_list");
    for (name, expected) in [
        ("list", functions(&["fs_list", "notes_list"])),
        ("tools.list_all", functions(&["tools_list_all"])),
        ("myMail.send_mail", functions(&["my_mail_sendMail"])),
        ("fs", server(read, list)),
        ("fs.listFiles", server(list, read)),
        ("mcp.fs.promises.readText", server(read, list)),
        ("client.nothing", Some(Meant::Namespace)),
        ("codemode.fs_list", functions(&["fs_list"])),
        ("codemode", Some(Meant::Namespace)),
        ("weather.now", None),
        ("", None),
        ("_._", None),
        (&"mcp.".repeat(100), None),
    ] {
        assert_eq!(catalog.meant(name, |_| true), expected, "{name}");
    }
    let known = |function: &str| function != "fs_list";
    assert_eq!(catalog.meant("list", known), functions(&["notes_list"]));
}

#[test]
fn unmatched_pattern_suggests_the_right_spelling() {
    let entries = [
        ("files", tool("delete_file")),
        ("my-notes", tool("getNote")),
        ("git", tool("git_log")),
        ("s", tool("get-user")),
        ("s", tool("get_user")),
        ("github", tool("$issues_drop")),
    ];
    let (catalog, _) = build(&entries);
    for (written, meant) in [
        ("mcp__files__delete_file", "files_delete_file"),
        ("mcp_files_delete_file", "files_delete_file"),
        ("mcp__files__deleteFile", "files_delete_file"),
        ("files__delete_file", "files_delete_file"),
        ("filesDeleteFile", "files_delete_file"),
        ("Files_Delete_File", "files_delete_file"),
        ("files/deleteFile", "files_delete_file"),
        ("delete_file", "files_delete_file"),
        ("files_delete_fle", "files_delete_file"),
        ("mcp__my_notes__get_note", "my_notes_getNote"),
        ("mcp__git__git_log", "git_log"),
        ("git_git_log", "git_log"),
        ("s_get_user", "s_get_user_c97c69b6"),
        ("mcp__files__*", "files_*"),
        ("mcp__files", "files_*"),
        ("files", "files_*"),
        ("mcp__my_notes", "my_notes_*"),
        ("mcp__files__delete*", "files_delete*"),
        ("mcp__files__deleteF*", "files_delete_f*"),
        ("mcp__*__delete_file", "*_delete_file"),
        ("github_issues_*", "github_$issues_*"),
        ("fils_*", "files_delete_file"),
    ] {
        let found = catalog.suggest_pattern(written);
        assert_eq!(found.as_deref(), Some(meant), "{written}");
    }
    for written in ["nothing_like_it", "nothing_*", "*", "", "mcp"] {
        assert_eq!(catalog.suggest_pattern(written), None, "{written}");
    }
}

#[test]
fn object_schema_is_accepted_in_any_type_spelling() {
    for ty in [
        json!("object"),
        json!("Object"),
        json!(["object"]),
        json!(["null", "OBJECT"]),
        json!([]),
        json!(null),
    ] {
        let schema = json!({ "type": ty, "properties": { "x": { "type": ["string"] } } });
        let (catalog, warnings) = build(&[("s", json!({ "name": "t", "inputSchema": schema }))]);
        let tool = catalog
            .get("s_t")
            .unwrap_or_else(|| panic!("{ty}: {warnings:?}"));
        assert_eq!(tool.definition.input_schema["type"], "object", "{ty}");
    }
    for ty in [
        json!(["string", "null"]),
        json!(7),
        json!("array"),
        json!({}),
    ] {
        let tool = json!({ "name": "t", "inputSchema": { "type": ty } });
        assert!(build(&[("s", tool)]).0.get("s_t").is_none(), "{ty}");
    }
}
