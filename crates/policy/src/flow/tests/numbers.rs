//! Numbers are found, whoever wrote them last, and are not taken for others.

use super::{show, side};
use crate::flow::Detector;

/// What is found in `arguments` for `mail_send`, when `crm_get` answered `result`.
fn found(result: &str, arguments: &str) -> String {
    found_beside("", "", result, arguments)
}

/// The same for a run of this script and a tool with this definition.
fn found_beside(script: &str, definition: &str, result: &str, arguments: &str) -> String {
    let flows = Detector::new(script);
    flows.learn(&side("crm_get"), 1, result);
    show(&flows.find(&side("mail_send"), arguments, definition))
}

#[test]
fn a_number_is_found_as_a_script_and_as_serde_json_writes_it() {
    let check = |result: &str, script: &str, expected: &[&str]| {
        let number: serde_json::Value = serde_json::from_str(script).expect("JSON");
        let sent = [
            format!(r#"{{"id":"no. {script}"}}"#),
            format!(r#"{{"id":{number}}}"#),
        ];
        for (sent, digits) in sent.iter().zip(expected) {
            let expected = format!(
                "{} bytes of crm.get (call 1) go to mail.send, Number in 1 pieces: {digits:?}",
                digits.len()
            );
            assert_eq!(found(result, sent), expected, "{sent}");
        }
    };
    check(
        r#"{"id":41505095027152785790}"#,
        "41505095027152790000",
        &["41505095027152790000", "150509502715279"],
    );
    check(
        r#"{"id":-41505095027152785790}"#,
        "-41505095027152790000",
        &["41505095027152790000", "150509502715279"],
    );
    check(
        r#"{"id":0.0000012345678}"#,
        "0.0000012345678",
        &["0000012345678", "2345678"],
    );
    check(
        r#"{"id":"9.87654321e-06"}"#,
        "0.00000987654321",
        &["00000987654321", "87654321"],
    );
    // In a string that is long enough for a piece, too.
    check(
        r#"{"note":"about 12345678915.5e+12 of them"}"#,
        "1.23456789155e22",
        &["23456789155", "23456789155"],
    );
}

#[test]
fn a_number_is_not_hidden_by_a_longer_one() {
    let number = "6 bytes of crm.get (call 1) go to mail.send, Number in 1 pieces: \"123456\"";
    let check = |text: &str, expected: &str| {
        for (script, definition) in [(text, ""), ("", text)] {
            let found = found_beside(script, definition, "[123456]", r#"{"id":123456}"#);
            assert_eq!(found, expected, "{text}");
        }
    };
    check("const unused = 9912345699;", number);
    check("1234567", number);
    check("12345699123456789123456", number);
    check("123456", "");
    check("f('0123456')", "");
    check(r#"{"default":123456}"#, "");
    check("9912345699 id_123456n", "");
    check("1234567.123456e7", "");
}

#[test]
fn what_becomes_of_a_number_of_the_script_is_nobodys() {
    let number = "41505095027152785790";
    let [script, sent] = [
        format!("f({number})"),
        r#"{"id":4.150509502715279e19}"#.to_owned(),
    ];
    assert_eq!(found_beside(&script, "", number, &sent), "");
    assert_eq!(found_beside("", &format!("[{number}]"), number, &sent), "");
}

#[test]
fn a_number_of_the_script_is_nobodys_however_many_have_it() {
    let flows = Detector::new("f(123456)");
    for nth in 0..50 {
        flows.learn(&side(&format!("crm_get{nth}")), 1, "[123456]");
    }
    let found = flows.find(&side("mail_send"), r#"{"id":123456}"#, "");
    assert_eq!(show(&found), "");
}
