//! Texts with backslashes, which look as if they had escapes, are found all the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{Finding, inspect, url_encoded};

/// How many bytes are found of `result` in a call that `sent` goes with.
#[track_caller]
fn check(result: &str, sent: &str, expected: usize) {
    let found = inspect(&[("crm_get", json!(result))], &json!({ "text": sent }));
    let found: Vec<_> = found.iter().map(Finding::bytes).collect();
    assert_eq!(found, [Some(expected)], "{sent}");
}

#[test]
fn a_path_is_found_in_either_case() {
    for (path, normal) in [
        (
            r"C:\Reports\New\Budget\Total\Final.xlsx",
            "C: eports ew udget otal inal.xlsx",
        ),
        (
            r"C:\Users\table\notes\readme\files",
            "C:Users able otes eadme iles",
        ),
        (
            r"\u0041\u006e \U00e9\ud83d\ude00 and what follows",
            "An \u{e9}\u{1f600} and what follows",
        ),
    ] {
        check(path, path, normal.len());
        check(path, &path.to_lowercase(), normal.len());
        check(path, &path.to_uppercase(), normal.len());
    }
}

#[test]
fn a_text_is_found_where_a_backslash_stands_alone() {
    let text = r"first alpha \ second gamma";
    let normal = "first alpha second gamma".len();
    check(text, text, normal);
    check(text, &text.to_uppercase(), normal);
    check(text, &text.repeat(3), 3 * normal);
    check(text, &json!({ "v": text }).to_string(), normal);
    check(text, &format!("one+{text}"), normal);
    check(text, &STANDARD.encode(text), normal);
    check(text, &url_encoded(text), normal);
}
