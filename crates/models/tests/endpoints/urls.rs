//! URLs that are refused, and keys that are not shown.

use std::time::Duration;

use callgate_models::{Api, Endpoint, Model};

use crate::support::KEY;

#[test]
fn unsafe_endpoint_urls_are_refused() {
    let insecure = "the URL must be https, or http on loopback";
    let user = "the URL has a user name or password; use a key";
    let fragment = "the URL has a fragment; remove it";
    let none = "this is not a URL; write one such as https://api.example.com/v1";
    for (url, shown, error) in [
        ("https://api.example.com/v1", "", ""),
        ("http://localhost:1234", "", ""),
        ("http://127.8.8.8/", "", ""),
        ("http://[::1]:5/", "", ""),
        ("http://example.com/v1", " http://example.com", insecure),
        (
            "http://127.0.0.1.a.com",
            " http://127.0.0.1.a.com",
            insecure,
        ),
        (
            "http://localhost.a.com",
            " http://localhost.a.com",
            insecure,
        ),
        (
            "https://me:hunter2@example.com",
            " https://example.com",
            user,
        ),
        ("https://example.com/#x", " https://example.com", fragment),
        ("file:///etc/passwd", "", insecure),
        ("api.example.com", "", none),
    ] {
        match Endpoint::new(Api::OpenAi, url, None, Duration::from_secs(1)) {
            Ok(_) => assert_eq!("", error, "{url}"),
            Err(found) => assert_eq!(found.to_string(), format!("model endpoint{shown}: {error}")),
        }
    }
}

#[test]
fn keys_are_not_shown() {
    let endpoint = |key: &str| {
        let key = Some(key.to_owned());
        Endpoint::new(Api::Anthropic, "https://example.com", key, Duration::ZERO)
    };
    let model = Model::new(endpoint(KEY).unwrap(), "small");
    assert!(!format!("{model:?}").contains(KEY));
    let unfit =
        "model endpoint https://example.com: the key has characters that a header cannot have";
    assert_eq!(endpoint("a\nb").unwrap_err().to_string(), unfit);
}
