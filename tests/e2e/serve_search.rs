//! `search_tools` of `callgate serve` has a model pick: the client's own, by a
//! request or by an answer that the client comes again to, else a configured one.

use callgate_tests::{Workbench, fixture};
use expect_test::expect;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, InputRequest, InputRequiredResult, ProtocolVersion,
};
use serde_json::{Value, json};

use crate::endpoint::{Do, Endpoint};
use crate::serve_client::{
    Model, NEWEST, OLDER, Session, USED, User, can, connect, request as script, shown,
};

fn bench(more: Value) -> Workbench {
    let mut config = json!({
        "mcpServers": {
            "logging": fixture("callgate-demo-logging", &[]),
            "ticketing": fixture("callgate-demo-ticketing", &[]),
        },
    });
    if let (Value::Object(config), Value::Object(more)) = (&mut config, more) {
        config.extend(more);
    }
    Workbench::with_config(config)
}

fn user(version: &ProtocolVersion, capabilities: Value, model: Model) -> User {
    let mut user = User::new(version, &[]);
    user.can = can(capabilities);
    user.model = model;
    user
}

fn search(arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else {
        unreachable!("an object")
    };
    CallToolRequestParams::new("search_tools").with_arguments(arguments)
}

fn by_model(query: &str) -> CallToolRequestParams {
    search(json!({ "query": query, "detail": "names", "by": "model" }))
}

/// What a search says, and what the client's model was asked for it.
async fn said(session: &Session, request: CallToolRequestParams) -> (String, Vec<Value>) {
    let result = session.client.call_tool(request).await;
    let (is_error, text) = shown(&result.expect("an answer"));
    assert!(!is_error, "{text}");
    let mut sampled = session.user.sampled.lock().expect("no panic");
    let sampled = sampled.drain(..);
    let sampled = sampled.map(|asked| serde_json::to_value(asked).expect("JSON"));
    (text, sampled.collect())
}

const PICKS: Model = Model::Says(r#"["ticketing_listIssues", "rm_rf"]"#);
const PICKED: &str =
    "ticketing_listIssues\nnote: 1 of the names that the model gave are no tools\n";

#[tokio::test]
async fn the_model_of_the_client_picks() {
    // One that is configured is not asked where the client has one.
    let endpoint = Endpoint::doing([]);
    let small = json!({ "url": endpoint.url, "model": "small" });
    let bench = bench(json!({ "models": { "small": small } }));
    for version in OLDER.iter().chain([&NEWEST]) {
        for mode in ["code", "discovery"] {
            let user = user(version, json!({ "sampling": {} }), PICKS);
            let session = connect(&bench, user, &["--mode", mode]).await;
            let (text, sampled) = said(&session, by_model("whatever there is")).await;
            assert_eq!(text, PICKED, "{version} {mode}");
            assert_eq!(sampled.len(), 1, "{version} {mode}: {sampled:#?}");
            let prompt = sampled[0]["messages"][0]["content"]["text"].as_str();
            let prompt = prompt.expect("a text");
            assert!(
                prompt.starts_with("Looked for: whatever there is\n"),
                "{prompt}"
            );
            assert!(prompt.contains("\nlogging_getLogs: "), "{prompt}");
            let system = sampled[0]["systemPrompt"].as_str().expect("a text");
            assert!(system.contains("not trusted"), "{system}");
            session.client.cancel().await.expect("a clean end");
        }
    }
    assert_eq!(endpoint.asked(), [] as [Value; 0]);
}

#[tokio::test]
async fn what_the_rules_deny_is_not_shown_to_the_model_of_the_client() {
    let bench = bench(json!({ "permissions": { "deny": ["ticketing_listIssues"] } }));
    let user = user(&NEWEST, json!({ "sampling": {} }), PICKS);
    let session = connect(&bench, user, &["--mode", "discovery"]).await;
    let (text, sampled) = said(&session, by_model("list issues")).await;
    expect![[r#"
        nothing found among 3 tools; try other words, or see list_servers
        note: 2 of the names that the model gave are no tools
        note: the model picked none of the 2 tools that it was shown
    "#]]
    .assert_eq(&text);
    assert_eq!(sampled.len(), 1, "{sampled:#?}");
    let prompt = sampled[0]["messages"][0]["content"]["text"].as_str();
    let prompt = prompt.expect("a text");
    assert!(prompt.contains("\nticketing_createIssue: "), "{prompt}");
    assert!(!sampled[0].to_string().contains("ticketing_listIssues"));
    session.client.cancel().await.expect("a clean end");
}

#[tokio::test]
async fn a_configuration_may_have_a_model_pick_always() {
    let bench = bench(json!({ "search": { "by": "model" } }));
    for version in [&OLDER[1], &NEWEST] {
        let user = user(version, json!({ "sampling": {} }), PICKS);
        let session = connect(&bench, user, &["--mode", "discovery"]).await;
        let query = json!({ "query": "create issue", "detail": "names" });
        let (text, sampled) = said(&session, search(query.clone())).await;
        assert_eq!((text.as_str(), sampled.len()), (PICKED, 1), "{version}");
        // And who searches may do without.
        let mut by_words = query;
        by_words["by"] = "words".into();
        by_words["limit"] = 1.into();
        let (text, sampled) = said(&session, search(by_words)).await;
        assert_eq!(
            (text.as_str(), sampled.len()),
            ("ticketing_createIssue\n", 0)
        );
        session.client.cancel().await.expect("a clean end");
    }
}

#[tokio::test]
async fn where_no_model_answers_words_are_compared() {
    let bench = bench(json!({}));
    for (version, capabilities, model, note) in [
        (
            &OLDER[1],
            json!({ "elicitation": {} }),
            PICKS,
            "there is no model to ask: the client offers none (sampling), and the configuration \
             names none (models.small)",
        ),
        (
            &NEWEST,
            json!({ "elicitation": {} }),
            PICKS,
            "there is no model to ask: the client offers none (sampling), and the configuration \
             names none (models.small)",
        ),
        (
            &OLDER[1],
            json!({ "sampling": {} }),
            Model::Declines,
            "the client's model was not asked: rejected",
        ),
        (
            &NEWEST,
            json!({ "sampling": {} }),
            Model::Counts,
            "the model did not answer with a list of names",
        ),
    ] {
        let user = user(version, capabilities, model);
        let session = connect(&bench, user, &["--mode", "discovery"]).await;
        let (text, _) = said(&session, by_model("create issue")).await;
        assert_eq!(
            text.lines().next(),
            Some("ticketing_createIssue"),
            "{version}: {text}"
        );
        let noted = format!("\nnote: no model picked these: {note}\n");
        assert!(text.ends_with(&noted), "{version}: {text}");
        session.client.cancel().await.expect("a clean end");
    }
}

#[tokio::test]
async fn a_configured_model_picks_where_the_client_has_none() {
    let endpoint = Endpoint::doing([Do::Say(r#"["logging_getLogs"]"#), Do::Say("[]")]);
    let small = json!({ "url": endpoint.url, "model": "small" });
    let bench = bench(json!({ "models": { "small": small } }));
    for (version, expected) in [
        (&OLDER[1], "logging_getLogs\n"),
        (
            &NEWEST,
            "nothing found among 3 tools; try other words, or see list_servers\n\
             note: the model picked none of the 3 tools that it was shown\n",
        ),
    ] {
        let user = user(version, json!({}), PICKS);
        let session = connect(&bench, user, &["--mode", "discovery"]).await;
        let (text, sampled) = said(&session, by_model("whatever")).await;
        assert_eq!((text.as_str(), sampled.len()), (expected, 0), "{version}");
        session.client.cancel().await.expect("a clean end");
    }
}

/// Asks, and gets what the client's model is to be asked.
async fn asked(session: &Session, request: CallToolRequestParams) -> InputRequiredResult {
    match session.client.call_tool_once(request).await {
        Ok(CallToolResponse::InputRequired(required)) => required,
        other => panic!("{other:?}"),
    }
}

/// Comes again with what the client's model said.
async fn come(
    session: &Session,
    mut request: CallToolRequestParams,
    state: &str,
    text: &str,
) -> Result<String, String> {
    let content = json!({ "type": "text", "text": text });
    let message = json!({ "role": "assistant", "model": "m", "content": content });
    request.request_state = Some(state.to_owned());
    request.input_responses =
        serde_json::from_value(json!({ "question-1": message })).expect("responses");
    match session.client.call_tool_once(request).await {
        Ok(CallToolResponse::Complete(result)) => Ok(shown(&result).1),
        Ok(other) => panic!("{other:?}"),
        Err(rmcp::ServiceError::McpError(error)) => {
            assert_eq!(error.code.0, -32602, "{error:?}");
            Err(error.message.into_owned())
        }
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_state_is_good_once_and_for_its_search_alone() {
    let bench = bench(json!({}));
    let user = user(&NEWEST, json!({ "sampling": {} }), PICKS);
    let session = connect(&bench, user, &[]).await;
    let required = asked(&session, by_model("whatever")).await;
    let state = required.request_state.expect("a state");
    let requests = required.input_requests.expect("requests");
    assert!(
        matches!(requests["question-1"], InputRequest::CreateMessage(_)),
        "{requests:?}"
    );
    let picks = r#"["logging_getLogs"]"#;
    for (request, of) in [
        (by_model("something else"), "this search"),
        (script("return 1"), "this script"),
    ] {
        let refused = come(&session, request, &state, picks).await;
        let forged = format!("the requestState is not one that this server gave for {of}");
        assert_eq!(refused, Err(forged));
    }
    // None of that has changed anything.
    let text = come(&session, by_model("whatever"), &state, picks).await;
    assert_eq!(text, Ok("logging_getLogs\n".to_owned()));
    let again = come(&session, by_model("whatever"), &state, picks).await;
    assert_eq!(again, Err(USED.to_owned()));
    session.client.cancel().await.expect("a clean end");
}
