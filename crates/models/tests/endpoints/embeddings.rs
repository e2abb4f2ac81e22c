//! Vectors of texts, and invalid answers.

use serde_json::{Value, json};

use crate::support::{Asked, Do, Fake, KEY, plain, texts, vectors};

#[tokio::test]
async fn vectors_are_normalized_in_order_of_texts() {
    let answer = vectors(&[(1, [0.0, -5.0]), (0, [3.0, 4.0])]);
    let fake = Fake::start([Do::Answer(200, answer)]).await;
    let embedder = fake.embedder(Some(2));
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
        let list = (0..count).map(|index| (index, [1.0, index as f64]));
        Do::Answer(200, vectors(&list.collect::<Vec<_>>()))
    };
    let fake = Fake::start([batch(64), batch(64), batch(2)]).await;
    let embedder = fake.embedder(None);
    let vectors = embedder.embed(&texts(130)).await.unwrap();
    assert_eq!(vectors.len(), 130);
    let asked = fake.asked.lock().unwrap();
    let size = |asked: &Asked| asked.body["input"].as_array().unwrap().len();
    assert_eq!(asked.iter().map(size).collect::<Vec<_>>(), [64, 64, 2]);
    assert_eq!(asked[2].body["input"][1], "text 129");
}

#[tokio::test]
async fn empty_text_list_sends_no_request() {
    let fake = Fake::start([]).await;
    let embedder = fake.embedder(None);
    assert_eq!(embedder.embed(&[]).await, Ok(Vec::new()));
    assert_eq!(fake.asked.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn malformed_vector_answers_are_refused() {
    let odd = |second: Value| json!({ "data": [{ "embedding": [1, 2] }, second] });
    let pair = |second| vectors(&[(0, [1.0, 0.0]), second]);
    let no_number = "a vector with an element that is not a number";
    let no_list = "an \"embedding\" that is not a list of numbers";
    for (answer, expected) in [
        (json!([]), "no list of vectors in \"data\""),
        (vectors(&[(0, [1.0, 0.0])]), "1 vectors for 2 texts"),
        (pair((0, [1.0, 0.0])), "two vectors with index 0"),
        (pair((2, [1.0, 0.0])), "a vector with index 2 of 2"),
        (pair((1, [0.0, 0.0])), "a vector without a direction"),
        (pair((1, [1e300, 0.0])), no_number),
        (
            odd(json!({ "embedding": [1, 2, 3] })),
            "a vector of 3 numbers in place of 2 (at most 16384)",
        ),
        (odd(json!({ "embedding": [1, "2"] })), no_number),
        (odd(json!({ "embedding": "AAAA" })), no_list),
        (
            odd(json!({ "embedding": [1, 2], "index": -1 })),
            "a vector whose \"index\" is not a number",
        ),
        (odd(json!(5)), no_list),
        (
            json!({ "data": [{ "embedding": [] }, { "embedding": [] }] }),
            "a vector of 0 numbers in place of 0 (at most 16384)",
        ),
    ] {
        let fake = Fake::start([Do::Answer(200, answer)]).await;
        let embedder = fake.embedder(None);
        let error = embedder.embed(&texts(2)).await.unwrap_err();
        let expected = format!("model endpoint ORIGIN: the answer has {expected}");
        assert_eq!(plain(&fake, &error), expected);
    }
}
