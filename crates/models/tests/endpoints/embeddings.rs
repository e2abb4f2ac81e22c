//! Vectors of texts, and answers that are none.

use callgate_models::{Embedder, ErrorKind};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::support::{Do, Fake, KEY, plain, texts, vectors};

#[tokio::test]
async fn vectors_come_in_the_order_of_the_texts_and_have_length_one() {
    let fake = Fake::start([Do::Answer(
        200,
        vectors(&[(1, [0.0, -5.0]), (0, [3.0, 4.0])]),
    )])
    .await;
    let embedder = Embedder::new(fake.endpoint(), "minilm", Some(2));
    let vectors = embedder.embed(&texts(2)).await.unwrap();
    assert_eq!(vectors, [[0.6, 0.8], [0.0, -1.0]]);
    let asked = fake.asked.lock().unwrap();
    assert_eq!(asked[0].path, "/v1/embeddings");
    assert_eq!(asked[0].headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(
        asked[0].body,
        json!({
            "model": "minilm",
            "input": ["text 0", "text 1"],
            "encoding_format": "float",
            "dimensions": 2,
        })
    );
}

#[tokio::test]
async fn many_texts_are_sent_in_batches() {
    let batch = |count: u64| {
        let list: Vec<_> = (0..count)
            .map(|index| (index, [1.0, index as f64]))
            .collect();
        Do::Answer(200, vectors(&list))
    };
    let fake = Fake::start([batch(64), batch(64), batch(2)]).await;
    let embedder = Embedder::new(fake.endpoint(), "minilm", None);
    let vectors = embedder.embed(&texts(130)).await.unwrap();
    assert_eq!(vectors.len(), 130);
    let asked = fake.asked.lock().unwrap();
    let sizes: Vec<usize> = asked
        .iter()
        .map(|asked| asked.body["input"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [64, 64, 2]);
    assert_eq!(asked[2].body["input"][1], "text 129");
}

#[tokio::test]
async fn no_text_is_no_request() {
    let fake = Fake::start([]).await;
    let embedder = Embedder::new(fake.endpoint(), "minilm", None);
    assert_eq!(embedder.embed(&[]).await, Ok(Vec::new()));
    assert_eq!(fake.asked.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn answers_that_are_no_vectors() {
    async fn check(answer: Value, expected: Expect) {
        let fake = Fake::start([Do::Answer(200, answer)]).await;
        let embedder = Embedder::new(fake.endpoint(), "minilm", None);
        let error = embedder.embed(&texts(2)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        expected.assert_eq(&plain(&fake, &error));
    }
    check(
        json!([]),
        expect![[
            r#"model endpoint ORIGIN: the answer has no list of vectors in "data" (Malformed)"#
        ]],
    )
    .await;
    check(
        vectors(&[(0, [1.0, 0.0])]),
        expect!["model endpoint ORIGIN: the answer has 1 vectors for 2 texts (Malformed)"],
    )
    .await;
    check(
        vectors(&[(0, [1.0, 0.0]), (0, [1.0, 0.0])]),
        expect!["model endpoint ORIGIN: the answer has two vectors with index 0 (Malformed)"],
    )
    .await;
    check(
        vectors(&[(0, [1.0, 0.0]), (2, [1.0, 0.0])]),
        expect!["model endpoint ORIGIN: the answer has a vector with index 2 of 2 (Malformed)"],
    )
    .await;
    check(
        vectors(&[(0, [1.0, 0.0]), (1, [0.0, 0.0])]),
        expect!["model endpoint ORIGIN: the answer has a vector without a direction (Malformed)"],
    )
    .await;
    check(
        vectors(&[(0, [1.0, 0.0]), (1, [1e300, 0.0])]),
        expect!["model endpoint ORIGIN: the answer has a vector with something that is no number (Malformed)"],
    )
    .await;
    let odd = |second: Value| json!({ "data": [{ "embedding": [1, 2] }, second] });
    check(odd(json!({ "embedding": [1, 2, 3] })), expect!["model endpoint ORIGIN: the answer has a vector of 3 numbers in place of 2 (at most 16384) (Malformed)"]).await;
    check(odd(json!({ "embedding": [1, "2"] })), expect!["model endpoint ORIGIN: the answer has a vector with something that is no number (Malformed)"]).await;
    check(odd(json!({ "embedding": "AAAA" })), expect![[r#"model endpoint ORIGIN: the answer has an "embedding" that is no list of numbers (Malformed)"#]]).await;
    check(
        odd(json!({ "embedding": [1, 2], "index": -1 })),
        expect![[r#"model endpoint ORIGIN: the answer has a vector whose "index" is no number (Malformed)"#]],
    )
    .await;
    check(odd(json!(5)), expect![[r#"model endpoint ORIGIN: the answer has an "embedding" that is no list of numbers (Malformed)"#]]).await;
    check(
        json!({ "data": [{ "embedding": [] }, { "embedding": [] }] }),
        expect!["model endpoint ORIGIN: the answer has a vector of 0 numbers in place of 0 (at most 16384) (Malformed)"],
    )
    .await;
}
