//! Copies are found, in every form that is promised, and nothing else is.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use expect_test::expect;
use serde_json::json;

use super::finding::Seen;
use super::*;

mod bounds;
mod numbers;
mod properties;

fn side(function: &str) -> Side {
    let (server, tool) = function.split_once('_').expect("server_tool");
    Side::new(function, server, tool)
}

/// The findings in `arguments` of `mail_send` after these results.
fn inspect(results: &[(&str, serde_json::Value)], arguments: &serde_json::Value) -> Vec<Finding> {
    let flows = Detector::default();
    for (ordinal, (from, result)) in results.iter().enumerate() {
        flows.learn(&side(from), ordinal + 1, &result.to_string());
    }
    flows.find(&side("mail_send"), &arguments.to_string(), "")
}

fn show(findings: &[Finding]) -> String {
    let show = |finding: &Finding| match &finding.seen {
        Seen::Copied(copied) => {
            format!("{finding}, {:?}: {:?}", copied.encoding, copied.piece)
        }
        Seen::NotCompared(_) => finding.to_string(),
    };
    findings.iter().map(show).collect::<Vec<_>>().join("\n")
}

const SECRET: &str = "Quarterly revenue fell by 12 percent";

#[test]
fn copies_in_known_encodings_are_found() {
    let result = json!({ "rows": [{ "note": SECRET, "id": 4_915_112 }] });
    let mut said = String::new();
    for arguments in [
        json!({ "text": format!("see: {SECRET}!") }),
        json!({ "text": SECRET.to_uppercase().replace(' ', "\n  ") }),
        json!({ "text": STANDARD.encode(SECRET) }),
        json!({ "text": "q=Quarterly%20revenue%20fell%20by" }),
        json!({ "text": "q=Quarterly+revenue+fell+by" }),
        json!({ "text": result.to_string() }),
        json!({ "id": 4_915_112 }),
        json!({ "id": "no. 4915112." }),
        json!({ "id": 49_151_120, "text": "Quarterly reven" }),
    ] {
        said += &show(&inspect(&[("crm_get", result.clone())], &arguments));
        said.push('\n');
    }
    expect![[r#"
        36 bytes of crm.get (call 1) go to mail.send, Text: "Quarterly revenue fell by 12 percent"
        36 bytes of crm.get (call 1) go to mail.send, Text: "QUARTERLY REVENUE FELL BY 12 PERCENT"
        36 bytes of crm.get (call 1) go to mail.send, Base64: "Quarterly revenue fell by 12 percent"
        25 bytes of crm.get (call 1) go to mail.send, Text: "Quarterly revenue fell by"
        25 bytes of crm.get (call 1) go to mail.send, Text: "Quarterly revenue fell by"
        43 bytes of crm.get (call 1) go to mail.send, Text: "Quarterly revenue fell by 12 percent"
        7 bytes of crm.get (call 1) go to mail.send, Number: "4915112"
        7 bytes of crm.get (call 1) go to mail.send, Number: "4915112"

    "#]]
    .assert_eq(&said);
}

#[test]
fn piece_within_longer_piece_is_found() {
    let quoted =
        format!("A few words that stand before it, more than sixteen. {SECRET} And after.");
    let results = [("crm_get", json!(SECRET)), ("wiki_get", json!(quoted))];
    expect![[r#"
        36 bytes of crm.get (call 1) go to mail.send, Text: "Quarterly revenue fell by 12 percent"
        89 bytes of wiki.get (call 2) go to mail.send, Text: "A few words that stand before it, more than sixteen. Quarterly revenue fell by 12 percent""#]]
    .assert_eq(&show(&inspect(
        &results,
        &json!({ "text": quoted.strip_suffix(" And after.") }),
    )));
    // A text that the target repeats after another server is still that server's; a text
    // that the target gave first is its own.
    let [crm, wiki] = [&results[0], &("mail_read", json!(quoted))];
    let inspect = |results: [&(&str, serde_json::Value); 2]| {
        let found = inspect(&results.map(Clone::clone), &json!({ "text": quoted }));
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        inspect([crm, wiki]),
        ["36 bytes of crm.get (call 1) go to mail.send"]
    );
    assert_eq!(inspect([wiki, crm]), [""; 0]);
}

#[test]
fn a_table_with_a_ruler_is_data() {
    let table = format!("{}\n{SECRET}\n{0}", "-".repeat(72));
    let results = [("crm_get", json!(table))];
    let found = inspect(&results, &json!({ "text": table }));
    assert_eq!(
        found.iter().map(Finding::bytes).collect::<Vec<_>>(),
        [Some(table.len())]
    );
    let ruler = json!({ "text": "-".repeat(72) });
    assert_eq!(inspect(&results, &ruler), []);
}

#[test]
fn base64_is_found_after_any_prefix() {
    let results = [("crm_get", json!(SECRET))];
    let long = format!("{} {SECRET}", "other words ".repeat(1_000));
    let long_results = [("crm_get", json!(long))];
    for (results, data) in [(&results, SECRET), (&long_results, &*long)] {
        let other = "\u{1}\u{0}\u{7f}\u{0}".repeat(7);
        for text in [
            STANDARD.encode(format!("\0{data}")),
            STANDARD.encode(format!("\0user\0{data}")),
            format!("https://x.example/collect/{}", STANDARD.encode(data)),
            format!("/a/b-c_{}", URL_SAFE_NO_PAD.encode(data)),
            format!(
                "/a/b-cd_{}",
                STANDARD.encode(format!("{other}{data}{other}"))
            ),
        ] {
            let found = inspect(results, &json!({ "text": text }));
            assert_eq!(found.len(), 1, "{text}");
        }
    }
}

#[test]
fn repeated_spaces_do_not_hide_a_copy() {
    let table = "name    amount\nalice   1200\r\nbob + carol   900";
    let results = [("crm_get", json!(table))];
    for text in [
        url_encoded(table),
        url_encoded(table).replace("%20", "+"),
        table.replace(' ', "+"),
        STANDARD.encode(table.replace(' ', "+")),
    ] {
        let found = inspect(&results, &json!({ "text": text }));
        let bytes: Vec<_> = found.iter().map(Finding::bytes).collect();
        assert_eq!(
            bytes,
            [Some("name amount alice 1200 bob carol 900".len())],
            "{text}"
        );
    }
}

#[test]
fn script_text_is_not_server_data() {
    let said = "a first line of it\n\tand a second one\r\nand a third one";
    let detector = Detector::new(&format!("await wiki_put({{ text: `{said}` }})"));
    detector.learn(&side("wiki_put"), 1, &json!(said).to_string());
    let arguments = json!({ "text": said }).to_string();
    assert_eq!(detector.find(&side("mail_send"), &arguments, ""), []);
}

#[test]
fn every_source_of_equal_data_is_found() {
    let error = "the server could not find what it was asked for";
    let tools: Vec<String> = (0..30).map(|nth| format!("crm_tool{nth}")).collect();
    let results: Vec<_> = tools.iter().map(|from| (&**from, json!(error))).collect();
    let found = inspect(
        &results,
        &json!({ "text": format!("{error}|").repeat(20_000) }),
    );
    assert_eq!(found.len(), 30);
    assert!(
        found
            .iter()
            .all(|found| found.bytes() == Some(error.len() * 20_000))
    );
}

/// The slowest arguments to inspect: fingerprints that are known everywhere and lead to
/// nothing, runs that look like base64 of text at each place, and escapes.
#[test]
fn hostile_arguments_are_inspected_completely() {
    let text: String = (0..2_000_u32).map(noise).collect();
    let places = (0..20_000).map(|nth| nth * 7 % (text.len() - 12));
    let cut: Vec<&str> = places.map(|at| &text[at..at + 12]).collect();
    let short: Vec<String> = cut
        .iter()
        .map(|piece| STANDARD.encode(format!("{piece}|0")))
        .collect();
    let hostile = [
        cut.join("|"),
        short.join(" "),
        STANDARD.encode(cut.join("|")),
        "\\u0041%25%2520".repeat(20_000),
        "7".repeat(300_000),
        format!("{}|", "7".repeat(5)).repeat(50_000),
        "\n".repeat(200_000),
    ];
    for hostile in hostile {
        for end in ["", SECRET] {
            let arguments = json!({ "body": format!("{hostile} {end}") });
            let results = [
                ("crm_get", json!(text)),
                ("crm_list", json!([SECRET, 4_915_112])),
            ];
            let found = inspect(&results, &arguments);
            assert_eq!(
                found.len(),
                usize::from(!end.is_empty()),
                "{}",
                show(&found)
            );
        }
    }
}

fn url_encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// A letter that looks drawn by lot.
fn noise(place: u32) -> char {
    let mixed = place.wrapping_add(1).wrapping_mul(0x9E37_79B9);
    let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x85EB_CA6B);
    char::from(b'a' + u8::try_from((mixed >> 24) % 26).unwrap_or(0))
}
