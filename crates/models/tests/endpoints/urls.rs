//! URLs that nothing is sent to, and keys that are not shown.

use std::time::Duration;

use callgate_models::{Api, Endpoint, Model};

use crate::support::KEY;

#[test]
fn urls_that_nothing_is_sent_to() {
    let insecure = "the URL must be https, or http on loopback";
    for (url, shown, error) in [
        ("https://api.example.com/v1", "https://api.example.com", ""),
        ("http://localhost:1234", "http://localhost:1234", ""),
        ("http://127.8.8.8/", "http://127.8.8.8", ""),
        ("http://[::1]:5/", "http://[::1]:5", ""),
        (
            "http://api.example.com/v1",
            " http://api.example.com",
            insecure,
        ),
        (
            "http://127.0.0.1.example.com",
            " http://127.0.0.1.example.com",
            insecure,
        ),
        (
            "http://localhost.example.com",
            " http://localhost.example.com",
            insecure,
        ),
        (
            "https://me:hunter2@example.com",
            " https://example.com",
            "the URL holds a user name or password; use a key",
        ),
        (
            "https://example.com/#x",
            " https://example.com",
            "the URL has a fragment; remove it",
        ),
        ("file:///etc/passwd", "", insecure),
        (
            "api.example.com",
            "",
            "this is not a URL; write one such as https://api.example.com/v1",
        ),
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
        "model endpoint https://example.com: the key holds characters that no header can hold";
    assert_eq!(endpoint("a\nb").unwrap_err().to_string(), unfit);
}
