//! Small models over either API, and answers that say nothing.

use callgate_models::{Api, Model, Prompt};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::support::{Do, Fake, KEY, plain};

#[tokio::test]
async fn a_model_of_either_api_answers() {
    let schema = json!({ "type": "object" });
    let prompt = Prompt {
        system: "do it",
        text: "with this",
        schema: Some(&schema),
        max_tokens: 100,
    };
    let fake = Fake::start([Do::Answer(
        200,
        json!({
            "choices": [{ "message": { "content": "{}" }, "finish_reason": "length" }],
            "usage": { "prompt_tokens": 12, "completion_tokens": 3 },
        }),
    )])
    .await;
    let said = Model::new(fake.endpoint(), Api::OpenAi, "small")
        .ask(&prompt)
        .await
        .unwrap();
    assert_eq!((said.text.as_str(), said.cut), ("{}", true));
    assert_eq!((said.usage.input, said.usage.output), (12, 3));
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
    let fake = Fake::start([Do::Answer(
        200,
        json!({
            "content": [
                { "type": "thinking", "thinking": "hm" },
                { "type": "text", "text": "[1" },
                { "type": "text", "text": "]" },
            ],
            "stop_reason": "end_turn",
            "usage": { "input_tokens": 7, "output_tokens": 2 },
        }),
    )])
    .await;
    let said = Model::new(fake.endpoint(), Api::Anthropic, "small")
        .ask(&prompt)
        .await
        .unwrap();
    assert_eq!((said.text.as_str(), said.cut), ("[1]", false));
    assert_eq!((said.usage.input, said.usage.output), (7, 2));
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
async fn an_endpoint_that_knows_no_schemas_is_asked_without() {
    let fake = Fake::start([
        Do::Answer(400, json!({ "error": { "message": "response_format?" } })),
        Do::Answer(
            200,
            json!({ "choices": [{ "message": { "content": "1" } }] }),
        ),
    ])
    .await;
    let schema = json!(true);
    let prompt = Prompt {
        system: "",
        text: "",
        schema: Some(&schema),
        max_tokens: 5,
    };
    let said = Model::new(fake.endpoint(), Api::OpenAi, "small")
        .ask(&prompt)
        .await
        .unwrap();
    assert_eq!(said.text, "1");
    let asked = fake.asked.lock().unwrap();
    let mut keys: Vec<&String> = asked[1].body.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["max_completion_tokens", "messages", "model"]);
}

#[tokio::test]
async fn answers_that_say_nothing() {
    async fn check(api: Api, answer: Value, expected: Expect) {
        let fake = Fake::start([Do::Answer(200, answer)]).await;
        let prompt = Prompt {
            system: "",
            text: "",
            schema: None,
            max_tokens: 5,
        };
        let asked = Model::new(fake.endpoint(), api, "small").ask(&prompt).await;
        expected.assert_eq(&plain(&fake, &asked.unwrap_err()));
    }
    check(
        Api::OpenAi,
        json!({ "choices": [] }),
        expect![[r#"model endpoint ORIGIN: the answer has no text in "choices" (Malformed)"#]],
    )
    .await;
    let refusal = json!({ "choices": [{ "message": { "content": null } }] });
    check(
        Api::OpenAi,
        refusal,
        expect![[r#"model endpoint ORIGIN: the answer has no text in "choices" (Malformed)"#]],
    )
    .await;
    check(
        Api::Anthropic,
        json!({ "content": "text" }),
        expect![[r#"model endpoint ORIGIN: the answer has no "content" (Malformed)"#]],
    )
    .await;
    check(
        Api::Anthropic,
        json!({ "content": [] }),
        expect![[r#"model endpoint ORIGIN: the answer has no text in "content" (Malformed)"#]],
    )
    .await;
}
