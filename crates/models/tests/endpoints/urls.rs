//! Where nothing is sent to, and keys, which nobody sees.

use std::time::Duration;

use callgate_models::{Api, Endpoint, Key, Model};
use expect_test::{Expect, expect};

use crate::support::KEY;

#[test]
fn urls_that_nothing_is_sent_to() {
    let check = |url: &str, expected: Expect| {
        let made = Endpoint::new(url, None, Duration::from_secs(1));
        let shown = match made {
            Ok(endpoint) => endpoint.origin().to_owned(),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    };
    check(
        "https://api.example.com/v1",
        expect!["https://api.example.com"],
    );
    check("http://localhost:1234", expect!["http://localhost:1234"]);
    check("http://127.8.8.8/", expect!["http://127.8.8.8"]);
    check("http://[::1]:5/", expect!["http://[::1]:5"]);
    check(
        "http://api.example.com/v1",
        expect![
            "model endpoint http://api.example.com: the URL must be https, or http on loopback"
        ],
    );
    check(
        "http://127.0.0.1.example.com",
        expect![
            "model endpoint http://127.0.0.1.example.com: the URL must be https, or http on loopback"
        ],
    );
    check(
        "http://localhost.example.com",
        expect![
            "model endpoint http://localhost.example.com: the URL must be https, or http on loopback"
        ],
    );
    check(
        "https://me:hunter2@example.com",
        expect![
            "model endpoint https://example.com: the URL holds a user name or password; use a key"
        ],
    );
    check(
        "https://example.com/#x",
        expect!["model endpoint https://example.com: the URL has a fragment; remove it"],
    );
    check(
        "file:///etc/passwd",
        expect!["model endpoint: the URL must be https, or http on loopback"],
    );
    check(
        "api.example.com",
        expect!["model endpoint: the URL is none; write one such as https://api.example.com/v1"],
    );
}

#[test]
fn keys_are_not_shown() {
    let endpoint = Endpoint::new(
        "https://example.com",
        Some(Key::new(KEY)),
        Duration::from_secs(1),
    );
    let model = Model::new(endpoint.unwrap(), Api::OpenAi, "small");
    assert!(!format!("{model:?} {:?}", Key::new(KEY)).contains(KEY));
    let unfit = Endpoint::new(
        "https://example.com",
        Some(Key::new("a\nb")),
        Duration::ZERO,
    );
    expect!["model endpoint https://example.com: the key holds characters that no header can hold"]
        .assert_eq(&unfit.unwrap_err().to_string());
}
