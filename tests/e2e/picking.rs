//! A model picks tools: a configured model or the client's. Tests its prompt and the
//! handling of its answer.

use callgate::config::{ModelsConfig, SmallModelConfig};
use callgate::faces::{Api, FlowRules};
use callgate::settings::SearchBy;
use callgate::{Rules, SearchRequest};
use expect_test::expect;
use serde_json::json;

use crate::endpoint::{Do, Endpoint};
use crate::meaning::{builder, functions, search};

fn small(url: &str) -> ModelsConfig {
    let mut models = ModelsConfig::default();
    models.small = Some(SmallModelConfig::new(Api::OpenAi, url, "small"));
    models
}

#[tokio::test]
async fn tools_picked_by_model_are_validated() {
    let endpoint = Endpoint::doing([
        Do::Say(
            r#"{ "names": ["logging_search", "ticketing_createIssue", "rm_rf", "ticketing_createIssue"] }"#,
        ),
        Do::Say("[]"),
        Do::Say("I would take them all"),
        Do::Fail(401),
    ]);
    let gate = builder()
        .models(small(&endpoint.url))
        .build()
        .await
        .expect("a gate");
    let found = search(&gate, "create an issue", SearchBy::Model).await;
    expect![[r#"["ticketing_createIssue"] ["2 of the names that the model gave are not tools"]"#]]
        .assert_eq(&format!("{:?} {:?}", functions(&found), found.notes));
    // Tool texts are untrusted, so the prompt has them between two delimiter lines.
    let asked = endpoint.asked();
    let prompt = asked[0]["messages"][1]["content"]
        .as_str()
        .expect("a prompt");
    let lines: Vec<&str> = prompt.lines().collect();
    assert_eq!(lines[0], "Query: create an issue");
    assert_eq!(lines[3], lines[lines.len() - 1]);
    assert!(lines[4].starts_with("ticketing_createIssue: "), "{prompt}");
    assert_eq!(lines.len() - 5, found.searched, "{prompt}");
    // The schema of the answer allows only the names that the prompt has.
    let schema = &asked[0]["response_format"]["json_schema"]["schema"];
    assert_eq!(schema["type"], "object");
    let names = &schema["properties"]["names"];
    let shown: Vec<&str> = lines[4..lines.len() - 1]
        .iter()
        .filter_map(|line| Some(line.split_once(':')?.0))
        .collect();
    assert_eq!(names["items"]["enum"], json!(shown));
    assert_eq!(names["maxItems"], 10);
    assert!(
        asked[0]["messages"][0]["content"]
            .as_str()
            .expect("a text")
            .contains("untrusted")
    );
    for expected in [
        expect!["0 the model picked none of the 3 tools that it was shown"],
        expect!["3 no model picked these: the model did not answer with a list of names"],
        expect![
            "3 no model picked these: model endpoint ORIGIN: it answered 401 Unauthorized; is the key right?"
        ],
    ] {
        let found = search(&gate, "create an issue", SearchBy::Model).await;
        let notes = found.notes.join("\n");
        let notes = notes.replace(endpoint.url.trim_end_matches("/v1"), "ORIGIN");
        expected.assert_eq(&format!("{} {notes}", found.hits.len()));
    }
    // Only tools of the searched server can be picked.
    let endpoint = Endpoint::doing([Do::Say(r#"["ticketing_createIssue"]"#)]);
    let gate = builder()
        .models(small(&endpoint.url))
        .build()
        .await
        .expect("a gate");
    let mut request = SearchRequest::new("create an issue");
    (request.by, request.server) = (SearchBy::Model, Some("logging".to_owned()));
    let found = gate.search(&request).await.expect("a search");
    assert_eq!(found.hits, [], "{found:?}");
}

/// A script's search query goes to the model like an extraction's value: by the rules, with a
/// line in the ledger, and checked for other servers' data.
#[tokio::test]
async fn a_scripts_search_goes_through_the_rules() {
    let endpoint = Endpoint::doing([Do::Say(r#"{ "names": ["ticketing_listIssues"] }"#)]);
    let found = async |rules: Rules, flows: FlowRules, query: &str| {
        let gate = builder().rules(rules).flow_rules(flows);
        let gate = gate.models(small(&endpoint.url)).build().await;
        let script = format!(
            "const {{ tools, notes }} = await mcp.searchTools({query}, {{ by: 'model', limit: 1 }});
             return [tools.map((tool) => tool.name), notes];"
        );
        let report = gate.expect("a gate").run(script.as_str()).await;
        let text = serde_json::to_value(&report).expect("JSON");
        let line = report.calls.last().expect("a line");
        let line = format!(
            "{} (line {:?}): {}",
            line.function, line.line, line.decision
        );
        (text["value"]["json"].to_string(), line)
    };
    let none = FlowRules::default;
    let rules = Rules::builder().allow("*").build().expect("rules");
    let (value, line) = found(rules, none(), "'create an issue'").await;
    expect![[r#"
        [["ticketing_listIssues"],[]]
        model_search (line Some(1)): allowed by rule "*" in permissions.allow"#]]
    .assert_eq(&format!("{value}\n{line}"));
    assert_eq!(endpoint.prompts().len(), 1);

    let rules = Rules::builder()
        .allow("*")
        .deny("model_search")
        .build()
        .expect("rules");
    let (value, line) = found(rules, none(), "'create an issue'").await;
    expect![[r#"
        [["ticketing_createIssue"],["only words were compared: model_search was not called: denied by rule \"model_search\" in permissions.deny; to allow it, change that rule","1 more; raise limit, name a server, or narrow the query"]]
        model_search (line Some(1)): denied by rule "model_search" in permissions.deny"#]]
    .assert_eq(&format!("{value}\n{line}"));
    let issue = "JSON.stringify(await ticketing_createIssue({ title: 'a' }))";
    let far_behind = format!("' '.repeat(2_000) + {issue}");
    for query in [issue, &far_behind] {
        let mut flows = none();
        flows.label_server("ticketing", "private");
        let rules = Rules::builder().allow("*").build().expect("rules");
        let (value, line) = found(rules, flows, query).await;
        let said = "ticketing_createIssue is labelled \"private\" and model_search is not";
        assert!(line.contains(said), "{query}: {line}");
        assert!(
            value.contains("only words were compared: model_search was not called"),
            "{query}: {value}"
        );
    }
    assert_eq!(endpoint.prompts().len(), 1);
}
