//! Data beyond the detector's bounds still leads to a decision.

use super::{SECRET, show, side};
use crate::Verdict;
use crate::flow::detector::{MAX_BYTES, MAX_NUMBERS};
use crate::flow::{Detector, Finding, FlowEnd, FlowRule, FlowRules};

/// Arguments without room for a copy.
const NONE: &str = "{}";

/// A result of `length` bytes: spaces and the JSON.
fn padded(json: &str, length: usize) -> String {
    " ".repeat(length - json.len()) + json
}

/// The findings in a call of `mail_send` after a result of `crm_get` that is one byte longer
/// than the detector keeps, and so cannot be compared.
fn beyond() -> Vec<Finding> {
    let flows = Detector::default();
    flows.learn(&side("crm_get"), 1, &padded("1", MAX_BYTES + 1));
    flows.find(&side("mail_send"), NONE, "")
}

#[test]
fn results_over_byte_limit_are_not_compared() {
    let secret = format!("{SECRET:?}");
    let sent = format!("{{\"text\":{secret}}}");
    let copied = "36 bytes of crm.get (call 1) go to mail.send, Text: \
                  \"Quarterly revenue fell by 12 percent\"";
    let untold = "results of crm.list may go to mail.send: this run has more results than can be \
                  compared";
    let flows = Detector::default();
    flows.learn(&side("crm_get"), 1, &padded(&secret, MAX_BYTES));
    let to = side("mail_send");
    assert_eq!(show(&flows.find(&to, NONE, "")), "");
    assert_eq!(show(&flows.find(&to, &sent, "")), copied);

    flows.learn(&side("crm_list"), 2, "1");
    // From now on there is a flow in every call to another server.
    assert_eq!(show(&flows.find(&to, NONE, "")), untold);
    let both = format!("{copied}\n{untold}");
    assert_eq!(show(&flows.find(&to, &sent, "")), both);
    assert_eq!(show(&flows.find(&side("crm_put"), &sent, "")), "");
}

#[test]
fn oversized_result_does_not_exclude_later_results() {
    let flows = Detector::default();
    flows.learn(&side("crm_get"), 1, &padded("1", MAX_BYTES + 1));
    flows.learn(&side("wiki_get"), 2, &format!("{SECRET:?}"));
    let sent = format!("{{\"text\":{SECRET:?}}}");
    assert_eq!(
        show(&flows.find(&side("mail_send"), &sent, "")),
        "36 bytes of wiki.get (call 2) go to mail.send, Text: \"Quarterly revenue \
         fell by 12 percent\"\nresults of crm.get may go to mail.send: this run has more results \
         than can be compared"
    );
}

#[test]
fn numbers_over_the_limit_are_not_compared() {
    // None of them ends in zeros.
    let number = |nth: usize| 1_000_001 + 2 * nth;
    let numbers: Vec<usize> = (0..MAX_NUMBERS).map(number).collect();
    let (last, next) = (number(MAX_NUMBERS - 1), number(MAX_NUMBERS));
    let sent = |number: usize| format!("{{\"id\":{number}}}");
    let to = side("mail_send");
    let flows = Detector::default();
    flows.learn(&side("crm_get"), 1, &format!("{numbers:?}"));
    let found = format!("7 bytes of crm.get (call 1) go to mail.send, Number: \"{last}\"");
    assert_eq!(show(&flows.find(&to, &sent(last), "")), found);
    assert_eq!(show(&flows.find(&to, &sent(next), "")), "");

    flows.learn(&side("wiki_get"), 2, &next.to_string());
    let untold = "results of wiki.get may go to mail.send: this run has more results than can be \
                  compared";
    assert_eq!(show(&flows.find(&to, &sent(next), "")), untold);
    let both = format!("{found}\n{untold}");
    assert_eq!(show(&flows.find(&to, &sent(last), "")), both);
}

/// Decisions by a rule about data that could not be compared: a rule that denies or asks
/// applies with any `min_bytes`, a rule that allows only without one.
#[test]
fn restricting_rules_apply_to_uncompared_data() {
    let min = [None, Some(0), Some(1), Some(usize::MAX)];
    for action in [Verdict::Deny, Verdict::Ask, Verdict::Allow] {
        for min_bytes in min {
            let mut rules = FlowRules::default();
            // Without a rule it would be asked about.
            rules.label_server("crm", "private");
            rules.push(FlowRule {
                from: FlowEnd::parse("crm").expect("an end"),
                to: FlowEnd::parse("mail").expect("an end"),
                min_bytes,
                action,
            });
            let findings = beyond();
            let [finding] = findings.as_slice() else {
                panic!("{findings:?}");
            };
            let decision = rules.decide(finding);
            assert_eq!(rules.verdict(finding), decision.verdict);
            let summary = "results of crm.get may go to mail.send: this run has more results than \
                           can be compared";
            let by_rule = format!("the rule from \"crm\" to \"mail\" in flows: {summary}");
            let expected = match (action, min_bytes) {
                (Verdict::Deny, _) => format!("denied by {by_rule}"),
                (Verdict::Ask, _) => format!("needs approval by {by_rule}"),
                (Verdict::Allow, None) => format!("allowed by {by_rule}"),
                (Verdict::Allow, Some(_)) => format!(
                    "needs approval: crm_get is labelled \"private\" and mail_send is not: \
                     {summary}"
                ),
            };
            assert_eq!(decision.to_string(), expected, "{action:?} {min_bytes:?}");
            let reviewed = rules.review(&findings).map(|decision| decision.to_string());
            let stops = decision.verdict != Verdict::Allow;
            assert_eq!(reviewed, stops.then_some(expected));
            let record = finding.record();
            assert_eq!((record.bytes, record.ordinal), (None, None));
        }
    }
}
