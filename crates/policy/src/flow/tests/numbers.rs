//! Numbers of the script and of the called tool are not a server's data.

use super::{show, side};
use crate::flow::Detector;

/// The findings in `arguments` of `mail_send`, a tool with this definition, after `result` of
/// `crm_get` in a run of this script.
fn found_beside(script: &str, definition: &str, result: &str, arguments: &str) -> String {
    let flows = Detector::new(script);
    flows.learn(&side("crm_get"), 1, result);
    show(&flows.find(&side("mail_send"), arguments, definition))
}

#[test]
fn longer_number_does_not_hide_a_shorter_number() {
    let number = "6 bytes of crm.get (call 1) go to mail.send, Number: \"123456\"";
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
fn number_in_script_is_not_server_data() {
    let number = "41505095027152785790";
    let [script, sent] = [
        format!("f({number})"),
        r#"{"id":4.150509502715279e19}"#.to_owned(),
    ];
    assert_eq!(found_beside(&script, "", number, &sent), "");
    assert_eq!(found_beside("", &format!("[{number}]"), number, &sent), "");
}
