//! Tests of redaction: each spelling of a value, cuts, and limits.

use super::*;

fn redact(values: &[(&str, &str)]) -> Redact {
    let values = values.iter();
    Redact::new(values.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

#[test]
fn every_spelling_of_a_value_is_hidden() {
    let redact = redact(&[("token", "a\"b+c d/é~")]);
    for text in [
        "a\"b+c d/é~",
        r#"a\"b+c d/é~"#,
        r#"a\"b+c d\/é~"#,
        r#"a\"b+c d/\u00e9~"#,
        r#"a\\\"b+c d/é~"#,
        "a%22b%2Bc+d%2F%C3%A9%7E",
        "a%22b%2bc%20d%2f%c3%a9~",
        "a%2522b%252Bc%2520d%252F%25C3%25A9~",
        "YSJiK2MgZC/DqX4",
        "YSJiK2MgZC_DqX4=",
    ] {
        let shown = redact.redact(text);
        assert!(shown.starts_with("[token]"), "{text} became {shown}");
    }
    for before in ["", "x", "xy", "xyz"] {
        let text = BASE64_STANDARD_NO_PAD.encode(format!("{before}a\"b+c d/é~ and more"));
        let shown = redact.redact(&text);
        assert!(shown.contains("[token]"), "{text} became {shown}");
    }
    for other in ["a\"b+c d/é", "a\"b%2Cc d/é~", "a\\b+c d/é~", ""] {
        assert_eq!(redact.redact(other), other);
    }
}

#[test]
fn json_values_are_redacted() {
    let redact = redact(&[("PIN", "12345678"), ("key", "s3cr3t-token")]);
    let mut value = serde_json::json!({
        "s3cr3t-token": [12_345_678, -12_345_678, 1_234_567, "a s3cr3t-token", null, 0.12345678],
    });
    redact.redact_value(&mut value);
    let expected = r#"{"[key]":["[PIN]","-[PIN]",1234567,"a [key]",null,"0.[PIN]"]}"#;
    assert_eq!(value.to_string(), expected);
}

#[test]
fn each_line_of_a_secret_is_redacted() {
    let key = "-----BEGIN KEY-----\r\nMIIEvQIBADANBgkqhkiG9w0B\nshort\n  AQEFAASCBKcwggSjAgEA\n";
    let redact = redact(&[("KEY", key)]);
    for (text, shown) in [
        ("MIIEvQIBADANBgkqhkiG9w0B", "[KEY]"),
        ("AQEFAASCBKcwggSjAgEA, short", "[KEY], short"),
        (key, "[KEY]"),
    ] {
        assert_eq!(redact.redact(text), shown);
    }
}

#[test]
fn overlapping_secrets_are_fully_redacted() {
    let redact = redact(&[("one", "abcdef"), ("other", "defghij"), ("all", "xabcdefx")]);
    assert_eq!(
        redact.redact("-abcdefghij-abcdefabcdef-xabcdefx-defghijabcdef"),
        "-[other]-[one][one]-[all]-[other][one]"
    );
}

#[test]
fn secret_at_the_cut_is_fully_redacted() {
    let redact = redact(&[("token", "hunter2/hunter2")]);
    let text = "é hunter2%2Fhunter2 and more";
    for (max, expected) in [
        (1, ""),
        (3, "é "),
        (4, "é [token]"),
        (20, "é [token]"),
        (text.len() - 1, "é [token] and mor"),
        (usize::MAX, "é [token] and more"),
    ] {
        assert_eq!(redact.redact_start(text, max), expected, "{max}");
    }
    let before = "x".repeat(MAX_MESSAGE_BYTES - 8);
    let long = format!("{before}hunter2/hunter2{}", before.repeat(100));
    assert_eq!(redact.message(&long), format!("{before}[token]…"));
}

#[tokio::test]
async fn learned_values_are_shared_and_bounded() {
    let redact = redact(&[("given", "a given value")]);
    let shared = redact.clone();
    shared.learn("first", "the first one").await;
    assert_eq!(redact.redact("the first one"), "[first]");
    for n in 0..MAX_LEARNED {
        shared.learn("later", &format!("a later one {n}")).await;
    }
    assert_eq!(redact.redact("the first one"), "the first one");
    assert_eq!(
        redact.redact("a later one 0, a given value"),
        "[later], [given]"
    );
    assert_eq!(format!("{redact:?}"), "Redact(65)");
}

#[test]
fn secret_parts_of_a_url_are_found() {
    let check = |url: &str, expected: &[(&str, &str)]| {
        let mut found = url_secrets(url);
        found.retain(|(_, value)| !value.is_empty());
        found.dedup();
        let found = found.iter();
        let found: Vec<_> = found
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(found, expected, "{url}");
    };
    check("https://h.example/k1234567/mcp#f", &[]);
    check(
        "https://h/mcp?a=1&key=a%2Fb&=x&alone#a=b",
        &[
            ("a", "1"),
            ("key", "a%2Fb"),
            ("key", "a/b"),
            ("URL query", "x"),
            ("URL query", "alone"),
        ],
    );
    check(
        "https://bob:p%40ss@h",
        &[
            ("URL user", "bob:p%40ss"),
            ("URL user", "bob:p@ss"),
            ("URL password", "p%40ss"),
            ("URL password", "p@ss"),
            ("URL user", "bob"),
        ],
    );
}

/// Repetitive texts: a few letters over and over, and words of Fibonacci and of Thue and Morse.
fn repetitive(length: usize) -> Vec<String> {
    let (mut fibonacci, mut before) = ("ab".to_owned(), "a".to_owned());
    let mut morse = "a".to_owned();
    while fibonacci.len() < length || morse.len() < length {
        let next = format!("{fibonacci}{before}");
        before = std::mem::replace(&mut fibonacci, next);
        let other = |c: char| if c == 'a' { 'b' } else { 'a' };
        morse = format!("{morse}{}", morse.chars().map(other).collect::<String>());
    }
    let nested = format!("{}b", "a".repeat(length - 1));
    let all = [
        "ab".repeat(length),
        "\"\\".repeat(length),
        fibonacci,
        morse,
        nested,
    ];
    all.map(|text| text.get(..length).expect("ASCII").to_owned())
        .to_vec()
}

/// The automaton is linear in its patterns; a DFA of these would have gigabytes.
#[tokio::test]
async fn repetitive_secrets_are_hidden() {
    for word in repetitive(4 << 10) {
        let redact = Redact::new([("given".to_owned(), word.clone())]);
        redact.learn("learned", &word).await;
        assert_eq!(redact.redact(&format!("- {word} -")), "- [given] -");
    }
}

/// One place of a text can end several secrets, and one secret can begin at every place.
#[tokio::test]
async fn nested_secrets_in_repetitive_text_are_merged() {
    let secrets = (0..MAX_LEARNED).map(|more| "ab".repeat(MIN_SECRET + more));
    let redact = Redact::new(secrets.map(|secret| (secret.len().to_string(), secret)));
    let log = "ab".repeat(64 << 10);
    assert_eq!(redact.redact(&format!("{log}c")), "[138]c");
    for log in repetitive(64 << 10) {
        assert!(redact.redact(&log).len() <= 2 * log.len());
    }
}

#[tokio::test]
async fn spellings_of_learned_values_are_bounded() {
    let redact = Redact::default();
    // A value with many spellings, each several times as long.
    let value = |n: usize| format!("{n}{}", "\"/%&".repeat(3_000));
    for n in 1..=4 {
        redact.learn("later", &value(n)).await;
    }
    assert_eq!(redact.redact(&value(4)), "[later]");
    assert_eq!(redact.redact(&value(1)), value(1));
    let secrets = redact.secrets.lock();
    let sizes = secrets.learned.iter().flat_map(|it| &it.spellings);
    let size: usize = sizes.map(String::len).sum();
    assert!(size <= MAX_SPELLED, "{size}");
}
