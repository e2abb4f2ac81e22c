//! Numbers are found, whoever wrote them last, and are not taken for others.

use super::{show, side};
use crate::flow::Flows;

/// What is found in `arguments` for `mail_send`, when `crm_get` answered `result`.
fn found(result: &str, arguments: &str) -> String {
    let mut flows = Flows::default();
    flows.learn(side("crm_get"), 1, result);
    show(&flows.inspect(&side("mail_send"), arguments, ""))
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
