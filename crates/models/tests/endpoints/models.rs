//! Small models over both APIs, and answers without text.

use callgate_models::{Api, Model, Prompt};
use serde_json::{Value, json};

use crate::support::{Do, Fake, KEY, plain};

#[tokio::test]
async fn a_model_of_either_api_answers() {
    let schema = json!({ "type": "object" });
    let answer = json!({
        "choices": [{ "message": { "content": "{}" }, "finish_reason": "length" }],
    });
    let fake = Fake::start([Do::Answer(200, answer)]).await;
    let model = Model::new(fake.endpoint(Api::OpenAi), "small");
    let said = model.ask(&prompt(Some(&schema))).await.unwrap();
    assert_eq!((said.text.as_str(), said.cut), ("{}", true));
    {
        let asked = fake.asked.lock().unwrap();
        assert_eq!(asked[0].path, "/v1/chat/completions");
        assert_eq!(asked[0].headers["authorization"], format!("Bearer {KEY}"));
        assert_eq!(
            asked[0].body,
            json!({
                "model": "small",
                "max_tokens": 100,
                "messages": [
                    { "role": "system", "content": "do it" },
                    { "role": "user", "content": "with this" },
                ],
                "response_format": {
                    "type": "json_schema",
                    "json_schema": { "name": "answer", "schema": schema, "strict": false },
                },
            })
        );
    }
    let answer = json!({
        "content": [
            { "type": "thinking", "thinking": "hm" },
            { "type": "text", "text": "[1" },
            { "type": "text", "text": "]" },
        ],
        "stop_reason": "end_turn",
    });
    let fake = Fake::start([Do::Answer(200, answer)]).await;
    let model = Model::new(fake.endpoint(Api::Anthropic), "small");
    let said = model.ask(&prompt(Some(&schema))).await.unwrap();
    assert_eq!((said.text.as_str(), said.cut), ("[1]", false));
    let asked = fake.asked.lock().unwrap();
    assert_eq!(asked[0].path, "/v1/messages");
    assert_eq!(asked[0].headers["x-api-key"], KEY);
    assert_eq!(asked[0].headers["anthropic-version"], "2023-06-01");
    assert!(!asked[0].headers.contains_key("authorization"));
    assert_eq!(
        asked[0].body,
        json!({
            "model": "small",
            "max_tokens": 100,
            "system": "do it",
            "messages": [{ "role": "user", "content": "with this" }],
        })
    );
}

#[tokio::test]
async fn schema_is_dropped_if_endpoint_rejects_it() {
    let refusal = json!({ "error": { "message": "response_format?" } });
    let answer = json!({ "choices": [{ "message": { "content": "1" } }] });
    let fake = Fake::start([Do::Answer(400, refusal), Do::Answer(200, answer)]).await;
    let schema = json!(true);
    let model = Model::new(fake.endpoint(Api::OpenAi), "small");
    let said = model.ask(&prompt(Some(&schema))).await.unwrap();
    assert_eq!(said.text, "1");
    let asked = fake.asked.lock().unwrap();
    let mut keys: Vec<&String> = asked[1].body.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["max_completion_tokens", "messages", "model"]);
}

#[tokio::test]
async fn answers_without_text_are_errors() {
    let null = json!([{ "message": { "content": null } }]);
    for (api, member, value) in [
        (Api::OpenAi, "choices", json!([])),
        (Api::OpenAi, "choices", null),
        (Api::Anthropic, "content", json!("text")),
        (Api::Anthropic, "content", json!([])),
    ] {
        let answer = json!({ member: value });
        let fake = Fake::start([Do::Answer(200, answer)]).await;
        let model = Model::new(fake.endpoint(api), "small");
        let error = model.ask(&prompt(None)).await.unwrap_err();
        let expected = format!("model endpoint ORIGIN: the answer has no text in {member:?}");
        assert_eq!(plain(&fake, &error), expected);
    }
}

fn prompt(schema: Option<&Value>) -> Prompt<'_> {
    Prompt {
        system: "do it",
        text: "with this",
        schema,
        max_tokens: 100,
    }
}
