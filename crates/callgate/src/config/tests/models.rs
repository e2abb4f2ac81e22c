//! Endpoints of models, and what they are used for.

use super::*;

#[track_caller]
fn check_models(text: &str, expected: Expect) {
    let mut out = String::new();
    match read("callgate.json", text) {
        Ok(config) => {
            writeln!(out, "{:#?}", config.models).unwrap();
            writeln!(out, "{:?} {:?}", config.search, config.extract).unwrap();
        }
        Err(error) => writeln!(out, "{error}").unwrap(),
    }
    assert!(!out.contains(SECRET), "a secret is shown: {out}");
    expected.assert_eq(&out);
}

#[test]
fn endpoints_keys_and_limits() {
    check_models(
        r#"{
          "models": {
            "embeddings": {
              "url": "http://127.0.0.1:8080/v1?key=${TOKEN}",
              "model": "minilm",
              "dimensions": 384
            },
            "small": {
              "api": "anthropic",
              "url": "https://${HOST}/v1",
              "model": "small",
              "key": { "keyring": { "service": "models", "account": "me" } },
              "timeout": "5s",
              "maxTokens": 100
            }
          },
          "search": { "by": "hybrid" },
          "extract": { "calls": 3, "sameSchema": 2, "input": "1KiB", "output": "2KiB" }
        }"#,
        expect![[r#"
            ModelsConfig {
                embeddings: Some(
                    EmbeddingsConfig {
                        origin: "http://127.0.0.1:8080",
                        model: "minilm",
                        key: None,
                        dimensions: Some(
                            384,
                        ),
                        timeout: 30s,
                        ..
                    },
                ),
                small: Some(
                    SmallModelConfig {
                        api: Anthropic,
                        origin: "https://example.com",
                        model: "small",
                        key: Some(
                            the keyring's entry for service "models" and account "me",
                        ),
                        timeout: 5s,
                        max_tokens: 100,
                        ..
                    },
                ),
            }
            Hybrid ExtractLimits { calls: 3, same_schema: 2, input_bytes: 1024, output_bytes: 2048 }
        "#]],
    );
    check_models(
        r#"{ "models": { "small": { "url": "https://a.example", "model": "b", "key": "${TOKEN}" } } }"#,
        expect![[r#"
            ModelsConfig {
                embeddings: None,
                small: Some(
                    SmallModelConfig {
                        api: OpenAi,
                        origin: "https://a.example",
                        model: "b",
                        key: Some(
                            the configuration,
                        ),
                        timeout: 60s,
                        max_tokens: 4096,
                        ..
                    },
                ),
            }
            Auto ExtractLimits { calls: 20, same_schema: 5, input_bytes: 1048576, output_bytes: 1048576 }
        "#]],
    );
}

#[test]
fn what_is_wrong_with_them() {
    check_models(
        r#"{
          "models": {
            "embeddings": { "url": "http://example.com/v1", "model": 5 },
            "smal": {},
            "small": { "api": "gemini", "url": "not a url ${TOKEN}", "timeout": 5, "temperature": 1 }
          },
          "search": { "by": "luck" },
          "extract": { "calls": 0, "input": "lots", "outputs": 1 }
        }"#,
        expect![[r#"
            callgate.json:3:36: "url" in "embeddings": model endpoint http://example.com: the URL must be https, or http on loopback
            callgate.json:3:70: "model" in "embeddings" must be a string, and this is a number
            callgate.json:4:13: unknown key "smal" in "models"; did you mean "small"?
            callgate.json:5:22: "small" has no "model"; write it
            callgate.json:5:31: "api" in "small": must be "openai" or "anthropic"
            callgate.json:5:48: "url" in "small": model endpoint: the URL is none; write one such as https://api.example.com/v1
            callgate.json:5:81: "timeout" in "small" must be a string such as "30s", and this is a number
            callgate.json:5:84: unknown key "temperature" in "small"; remove it, or use one of api, url, model, key, timeout, maxTokens
            callgate.json:7:29: "by" in "search": "luck" is no way to search; write auto, words, hybrid or model
            callgate.json:8:33: "calls" in "extract" must be a whole number above zero
            callgate.json:8:45: "input" in "extract": "lots" is not a size; write a number and B, KB, MB, GB, KiB, MiB or GiB, such as "16KiB"
            callgate.json:8:53: unknown key "outputs" in "extract"; did you mean "output"?
        "#]],
    );
    check_models(
        r#"{ "models": [], "search": "words", "extract": true }"#,
        expect![[r#"
            callgate.json:1:13: "models" in the file must be an object, and this is an array
            callgate.json:1:27: "search" in the file must be an object, and this is a string
            callgate.json:1:47: "extract" in the file must be an object, and this is a boolean
        "#]],
    );
}

/// The model that picks may be one that a client offers.
#[test]
fn a_way_to_search_that_lacks_its_model() {
    check(r#"{ "search": { "by": "model" } }"#, expect![""]);
    check(
        r#"{ "search": { "by": "hybrid" }, "models": { "small": { "url": "https://a.example", "model": "b" } } }"#,
        expect![[r#"
            warning: callgate.json:1:13: "search" by "hybrid" compares words only: "models" names no "embeddings"; add them, or leave "search" out
        "#]],
    );
}
