//! `search_tools` of `callgate serve` has a model pick: the client's own, by a
//! request or by an answer that the client comes again to, else a configured one.

use callgate_tests::{Workbench, demo_logging, demo_ticketing};
use expect_test::expect;
use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

use crate::endpoint::Endpoint;
use crate::serve_client::{Model, NEWEST, OLDER, Session, User, can, connect};

fn bench(more: Value) -> Workbench {
    let mut config = more;
    config["mcpServers"] = json!({ "logging": demo_logging(), "ticketing": demo_ticketing() });
    config["asking"] = json!({ "ways": ["client"] });
    Workbench::with_config(config)
}

fn user(version: &ProtocolVersion, capabilities: Value, model: Model) -> User {
    let mut user = User::new(version, &[]);
    user.can = can(capabilities);
    user.model = model;
    user
}

/// The text of a search by model, and the sampling requests that the client's model got.
async fn said(session: &Session, query: &str) -> (String, Vec<Value>) {
    let search = json!({ "query": query, "detail": "names", "by": "model" });
    let (is_error, text) = session.result("search_tools", search).await;
    assert!(!is_error, "{text}");
    let mut sampled = session.user.sampled.lock().expect("no panic");
    let sampled = sampled.drain(..);
    let sampled = sampled.map(|asked| serde_json::to_value(asked).expect("JSON"));
    (text, sampled.collect())
}

const PICKS: Model = Model::Says(r#"["ticketing_listIssues", "rm_rf"]"#);
const PICKED: &str = "ticketing_listIssues\n\
    NEED APPROVAL, and here nobody can be asked, so these fail: ticketing_listIssues.\n\
    note: 1 of the names that the model gave are not tools\n";

#[tokio::test]
async fn client_model_picks_the_tools() {
    // A configured model is not asked if the client has a model.
    let endpoint = Endpoint::doing([]);
    let small = json!({ "url": endpoint.url, "model": "small" });
    let bench = bench(json!({ "models": { "small": small } }));
    for version in OLDER.iter().chain([&NEWEST]) {
        for mode in ["code", "discovery"] {
            let user = user(version, json!({ "sampling": {} }), PICKS);
            let session = connect(&bench, user, &["--mode", mode]).await;
            let (text, sampled) = said(&session, "whatever there is").await;
            assert_eq!(text, PICKED, "{version} {mode}");
            assert_eq!(sampled.len(), 1, "{version} {mode}: {sampled:#?}");
            let prompt = sampled[0]["messages"][0]["content"]["text"].as_str();
            let prompt = prompt.expect("a text");
            assert!(prompt.starts_with("Query: whatever there is\n"), "{prompt}");
            assert!(prompt.contains("\nlogging_getLogs: "), "{prompt}");
            let system = sampled[0]["systemPrompt"].as_str().expect("a text");
            assert!(system.contains("untrusted"), "{system}");
        }
    }
    assert_eq!(endpoint.asked(), [] as [Value; 0]);
}

#[tokio::test]
async fn denied_tools_are_hidden_from_client_model() {
    let bench = bench(json!({ "permissions": { "deny": ["ticketing_listIssues"] } }));
    let user = user(&NEWEST, json!({ "sampling": {} }), PICKS);
    let session = connect(&bench, user, &["--mode", "discovery"]).await;
    let (text, sampled) = said(&session, "list issues").await;
    expect![[r#"
        nothing found among 3 tools; try other words
        note: 2 of the names that the model gave are not tools
        note: the model picked none of the 2 tools that it was shown
    "#]]
    .assert_eq(&text);
    assert_eq!(sampled.len(), 1, "{sampled:#?}");
    let prompt = sampled[0]["messages"][0]["content"]["text"].as_str();
    let prompt = prompt.expect("a text");
    assert!(prompt.contains("\nticketing_createIssue: "), "{prompt}");
    assert!(!sampled[0].to_string().contains("ticketing_listIssues"));
}

#[tokio::test]
async fn search_without_model_answer_compares_words() {
    let bench = bench(json!({}));
    let none = "there is no model to ask: the client offers none (sampling)";
    let rejected = "the client's model was not asked: rejected";
    let no_list = "the model did not answer with a list of names";
    for (version, capability, model, note) in [
        (&OLDER[1], "elicitation", PICKS, none),
        (&NEWEST, "elicitation", PICKS, none),
        (&OLDER[1], "sampling", Model::Declines, rejected),
        (&NEWEST, "sampling", Model::Counts, no_list),
    ] {
        let user = user(version, json!({ capability: {} }), model);
        let session = connect(&bench, user, &["--mode", "discovery"]).await;
        let (text, _) = said(&session, "create issue").await;
        assert!(
            text.starts_with("ticketing_createIssue\n"),
            "{version}: {text}"
        );
        let noted = format!("\nnote: no model picked these: {note}");
        assert!(text.contains(&noted), "{version}: {text}");
    }
}
