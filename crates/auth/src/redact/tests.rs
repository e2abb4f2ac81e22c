//! Which values are hidden, in whatever spelling a server repeats them.

use super::*;

#[test]
fn numbers_that_are_secrets_go() {
    let secrets = Redact::default();
    secrets.learn("PIN", "12345678");
    let mut value = serde_json::json!({ "a": [12345678, -12345678, 1234567], "b": 0.12345678 });
    secrets.redact_value(&mut value);
    assert_eq!(
        value.to_string(),
        r#"{"a":["[PIN]","-[PIN]",1234567],"b":"0.[PIN]"}"#
    );
}

#[test]
fn numbers_of_more_digits_than_are_kept_go() {
    let secrets = Redact::default();
    secrets.learn("ID", "123456789012345678901234567890");
    let data =
        r#"[123456789012345678901234567890, -1.2345678901234568e29, 123456789012345678901, 0.5]"#;
    let mut value: Value = serde_json::from_str(data).expect("JSON");
    secrets.redact_value(&mut value);
    let expected = serde_json::json!(["[ID]", "-[ID]", 123456789012345678901_f64, 0.5]);
    assert_eq!(value, expected);
}

#[test]
fn lines_of_a_value_go_by_themselves() {
    let secrets = Redact::default();
    let key =
        "-----BEGIN PRIVATE KEY-----\r\nMIIEvQIBADANBgkqhkiG9w0B\nshort\n  AQEFAASCBKcwggSjAgEA\n";
    secrets.learn("KEY", key);
    for (said, shown) in [
        ("MIIEvQIBADANBgkqhkiG9w0B", "[KEY]"),
        ("AQEFAASCBKcwggSjAgEA, short", "[KEY], short"),
        ("AQEFAASCBKcwggSjAgE", "AQEFAASCBKcwggSjAgE"),
        (r"MIIEvQIBADANBgkqhkiG9w0B\nshort", r"[KEY]\nshort"),
    ] {
        assert_eq!(secrets.redact(said), shown);
    }
    assert_eq!(secrets.redact(key), "[KEY]");
}

#[test]
fn of_secrets_that_overlap_nothing_stays() {
    let secrets = Redact::default();
    for (name, value) in [("one", "abcdef"), ("other", "defghij"), ("all", "xabcdefx")] {
        secrets.learn(name, value);
    }
    assert_eq!(
        secrets.redact("-abcdefghij-abcdefabcdef-xabcdefx-abc%64ef%20-defghijabcdef"),
        "-[other]-[one][one]-[all]-[one]%20-[other][one]"
    );
}

#[test]
fn of_a_secret_at_the_cut_nothing_stays() {
    let secrets = Redact::default();
    secrets.learn("token", "hunter2-hunter2");
    let text = r"é hunter2%2Dhunter\u0032 and more";
    for (most, expected) in [
        (0, ""),
        (1, ""),
        (3, "é "),
        (4, "é [token]"),
        (23, "é [token]"),
        (text.len() - 9, "é [token]"),
        (text.len() - 1, "é [token] and mor"),
        (text.len(), "é [token] and more"),
        (usize::MAX, "é [token] and more"),
    ] {
        assert_eq!(secrets.redact_start(text, most), expected, "{most}");
    }
}

#[test]
fn of_a_message_no_more_is_looked_at_than_is_shown() {
    let secrets = Redact::default();
    secrets.learn("token", "hunter2-hunter2");
    let check = |text: &str, expected: &str| {
        let message = secrets.message(text);
        assert_eq!(message, expected);
        assert!(message.capacity() < 4 * MAX_MESSAGE_BYTES);
    };
    check("no hunter2-hunter2", "no [token]");
    let most = "x".repeat(MAX_MESSAGE_BYTES);
    check(&most, &most);
    check(&most.repeat(100), &format!("{most}…"));
    let before = &most[..MAX_MESSAGE_BYTES - 8];
    let long = format!("{before}hunter2-hunter2{}", most.repeat(100));
    check(&long, &format!("{before}[token]…"));
    // As many names as fit.
    let names = "[token]".repeat(MAX_MESSAGE_BYTES / "[token]".len());
    let long = "hunter2-hunter2".repeat(100_000);
    let many = MAX_MESSAGE_BYTES.div_ceil("hunter2-hunter2".len());
    check(&long, &format!("{}…", &names[..many * "[token]".len()]));
}

#[test]
fn of_a_secret_at_the_cut_nothing_stays_in_the_longest_spelling() {
    let secrets = Redact::default();
    secrets.learn("token", "hunter2-hunter2");
    let in_json = |text: &str| {
        let units = text.chars().map(u32::from);
        units
            .map(|unit| format!("\\u{unit:04x}"))
            .collect::<String>()
    };
    let written = in_json(&in_json("hunter2-hunter2"));
    assert_eq!(written.len(), 15 * 36);
    let text = format!("no {written} and more");
    for most in 4..3 + written.len() {
        assert_eq!(secrets.redact_start(&text, most), "no [token]", "{most}");
    }
    assert_eq!(secrets.redact(&text), "no [token] and more");
}

#[test]
fn what_is_learned_goes_in_every_spelling_and_is_bounded() {
    let secrets = Redact::default();
    let shared = secrets.clone();
    shared.learn("token", "a\"b+c d/é~");
    for said in [
        "a\"b+c d/é~",
        r#"a\"b+c d/é~"#,
        "a%22b%2Bc+d%2F%C3%A9%7E",
        "YSJiK2MgZC/DqX4",
        "YSJiK2MgZC_DqX4=",
        "a%22b%2bc%20d%2f%c3%a9~",
        "a%2522b%252Bc%2520d/%25C3%25A9~",
        r#"a\\\"b+c d\/\u00e9\u007E"#,
    ] {
        let shown = secrets.redact(said);
        assert!(shown.starts_with("[token]"), "{said} became {shown}");
    }
    for other in ["a\"b+c d/é", "a\"b%2Cc d/é~", "a\\b+c d/é~", ""] {
        assert_eq!(secrets.redact(other), other);
    }
    for before in ["", "x", "xy", "xyz"] {
        let said = BASE64_STANDARD_NO_PAD.encode(format!("{before}a\"b+c d/é~ and more"));
        let shown = secrets.redact(&said);
        assert!(shown.contains("[token]"), "{said} became {shown}");
    }
    for n in 0..MAX_LEARNED {
        shared.learn("later", &format!("a later one {n}"));
    }
    assert_eq!(secrets.redact("a\"b+c d/é~"), "a\"b+c d/é~");
    assert_eq!(secrets.redact("a later one 0"), "[later]");
    assert_eq!(format!("{secrets:?}"), "Redact(64)");
}
