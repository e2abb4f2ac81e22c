//! Tests of redaction: each spelling of a value, cuts, and bounds.

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
fn lines_of_a_value_are_hidden_by_themselves() {
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
fn overlapping_secrets_leave_nothing() {
    let redact = redact(&[("one", "abcdef"), ("other", "defghij"), ("all", "xabcdefx")]);
    assert_eq!(
        redact.redact("-abcdefghij-abcdefabcdef-xabcdefx-defghijabcdef"),
        "-[other]-[one][one]-[all]-[other][one]"
    );
}

#[test]
fn a_secret_at_the_cut_leaves_nothing() {
    let redact = redact(&[("token", "hunter2/hunter2")]);
    let text = "é hunter2%2Fhunter2 and more";
    for (most, expected) in [
        (1, ""),
        (3, "é "),
        (4, "é [token]"),
        (20, "é [token]"),
        (text.len() - 1, "é [token] and mor"),
        (usize::MAX, "é [token] and more"),
    ] {
        assert_eq!(redact.redact_start(text, most), expected, "{most}");
    }
    let before = "x".repeat(MAX_MESSAGE_BYTES - 8);
    let long = format!("{before}hunter2/hunter2{}", before.repeat(100));
    assert_eq!(redact.message(&long), format!("{before}[token]…"));
}

#[test]
fn learned_values_are_shared_and_bounded() {
    let redact = redact(&[("given", "a given value")]);
    let shared = redact.clone();
    shared.learn("first", "the first one");
    assert_eq!(redact.redact("the first one"), "[first]");
    for n in 0..MAX_LEARNED {
        shared.learn("later", &format!("a later one {n}"));
    }
    assert_eq!(redact.redact("the first one"), "the first one");
    assert_eq!(
        redact.redact("a later one 0, a given value"),
        "[later], [given]"
    );
    assert_eq!(format!("{redact:?}"), "Redact(65)");
}

#[test]
fn secret_parts_of_a_url() {
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
