//! Rules over data between servers, and what they decide.

use serde_json::json;

use super::*;
use crate::flow::Detector;

fn side(function: &str) -> Side {
    let (server, tool) = function.split_once('_').expect("server_tool");
    Side::new(function, server, tool)
}

fn rule(from: &str, to: &str, min_bytes: Option<usize>, action: Verdict) -> FlowRule {
    FlowRule {
        from: FlowEnd::parse(from).expect("an end"),
        to: FlowEnd::parse(to).expect("an end"),
        min_bytes,
        action,
    }
}

fn rules() -> FlowRules {
    let mut rules = FlowRules::default();
    rules.push(rule("fs*", "*", None, Verdict::Allow));
    rules.push(rule("fs", "mail_*", Some(30), Verdict::Ask));
    rules.push(rule("fs_list", "label:outside", Some(30), Verdict::Deny));
    rules.label_server("crm", "private");
    rules.label_server("mail", "outside");
    rules.label_tools(Pattern::new("archive_*").expect("pattern"), "private");
    rules.label_tools(Pattern::new("log_secret").expect("pattern"), "secret");
    rules
}

/// In each line a source, a target, the length of a text on its way, and what is decided about it.
#[track_caller]
fn check(cases: &str) {
    for case in cases.trim().lines() {
        let (given, expected) = case.trim().split_once(" → ").expect(case);
        let [from, to, length] = *given.split(' ').collect::<Vec<_>>() else {
            panic!("{case}");
        };
        let length = length.parse().expect(case);
        let text: String = ('a'..='z').cycle().step_by(7).take(length).collect();
        let flows = Detector::default();
        flows.learn(&side(from), 1, &format!("{text:?}"));
        let findings = flows.find(&side(to), &format!("{text:?}"), "");
        let [finding] = findings.as_slice() else {
            panic!("{findings:?}");
        };
        let decision = rules().decide(finding);
        let is_reviewed = rules().review(&findings).is_some();
        assert_eq!(is_reviewed, decision.verdict != Verdict::Allow);
        let [from, to] = [from, to].map(|name| name.replacen('_', ".", 1));
        let flow = format!("{length} bytes of {from} (call 1) go to {to}");
        assert_eq!(
            format!("{:?}: {decision}", decision.verdict),
            format!("{expected}: {flow}")
        );
    }
}

#[test]
fn deny_comes_before_ask_and_ask_before_allow() {
    check(
        r#"
        fs_read mail_send 20 → Allow: allowed by the rule from "fs*" to "*" in flows
        fs_read mail_send 30 → Ask: needs approval by the rule from "fs" to "mail_*" in flows
        fs_list mail_send 30 → Deny: denied by the rule from "fs_list" to "label:outside" in flows
        fs_list log_add 30 → Allow: allowed by the rule from "fs*" to "*" in flows"#,
    );
}

#[test]
fn labelled_data_to_unlabelled_tool_is_asked_about() {
    check(
        r#"
        crm_get log_add 20 → Ask: needs approval: crm_get is labelled "private" and log_add is not
        crm_get archive_put 20 → Allow: allowed: no rule over flows is in the way
        log_secret crm_get 20 → Ask: needs approval: log_secret is labelled "secret" and crm_get is not
        log_read crm_get 20 → Allow: allowed: no rule over flows is in the way"#,
    );
}

fn with_alias(server: &str) -> Side {
    Side {
        aliases: vec![format!("{server}_box_put")],
        ..Side::new(&format!("{server}_$box_put"), server, "box-put")
    }
}

/// Neither an allow rule nor a label of the target lets the flow pass by an alias.
#[test]
fn restricting_flow_rules_match_the_aliases() {
    check_ends("_box_put", Verdict::Ask);
}

#[test]
fn every_flow_rule_matches_the_pair_of_names() {
    check_ends("/box-put", Verdict::Allow);
}

/// `lets_pass`: the verdict where allow rules and labels of the target have these ends.
#[track_caller]
fn check_ends(end: &str, lets_pass: Verdict) {
    let (crm, mail) = (with_alias("crm"), with_alias("mail"));
    let text = "what a customer has said";
    let flows = Detector::default();
    flows.learn(&crm, 1, &format!("{text:?}"));
    let findings = flows.find(&mail, &format!("{text:?}"), "");
    let check = |build: &dyn Fn(&mut FlowRules), verdict: Verdict| {
        let mut rules = FlowRules::default();
        build(&mut rules);
        assert_eq!(rules.verdict(&findings[0]), verdict, "{rules:?}");
        let foreseen = rules.foresee(&crm, &mail).is_some();
        assert_eq!(foreseen, verdict != Verdict::Allow, "{rules:?}");
    };
    let pattern = |text: &str| Pattern::new(text).expect("a pattern");
    let (from, to) = (&*format!("crm{end}"), &*format!("mail{end}"));
    check(
        &|rules| rules.push(rule(from, "*", None, Verdict::Ask)),
        Verdict::Ask,
    );
    check(
        &|rules| rules.push(rule("*", to, None, Verdict::Deny)),
        Verdict::Deny,
    );
    check(
        &|rules| rules.label_tools(pattern(from), "private"),
        Verdict::Ask,
    );
    check(
        &|rules| {
            rules.label_tools(pattern(to), "outside");
            rules.push(rule("crm", "label:outside", None, Verdict::Deny));
        },
        Verdict::Deny,
    );
    check(
        &|rules| {
            rules.label_server("crm", "private");
            rules.label_tools(pattern(to), "private");
            rules.push(rule(from, "mail", None, Verdict::Allow));
            rules.push(rule("crm", to, None, Verdict::Allow));
            rules.push(rule("crm", "label:private", None, Verdict::Allow));
        },
        lets_pass,
    );
    check(
        &|rules| {
            rules.label_server("crm", "private");
            rules.label_tools(pattern("mail_$*"), "private");
        },
        Verdict::Allow,
    );
}

#[test]
fn flow_rule_is_written_in_configuration_form() {
    let rule = rule("label:outside", "mail_*", Some(30), Verdict::Ask);
    let written = json!({
        "from": "label:outside", "to": "mail_*", "minBytes": 30, "action": "ask",
    });
    assert_eq!(rule.to_json(), written);
    let rule = FlowRule {
        min_bytes: None,
        ..rule
    };
    let written = json!({ "from": "label:outside", "to": "mail_*", "action": "ask" });
    assert_eq!(rule.to_json(), written);
}

fn foreseen(from: &str, to: &str) -> Option<String> {
    let mut rules = FlowRules::default();
    for (from, to, min_bytes, action) in [
        ("fs*", "mail", None, Verdict::Allow),
        ("fs", "mail_*", Some(30), Verdict::Ask),
        ("fs_list", "label:outside", Some(30), Verdict::Deny),
        ("crm", "wiki", None, Verdict::Allow),
        ("crm", "log", Some(30), Verdict::Allow),
    ] {
        rules.push(rule(from, to, min_bytes, action));
    }
    rules.label_server("crm", "private");
    rules.label_server("archive", "private");
    rules.label_server("mail", "outside");
    rules.foresee(&side(from), &side(to))
}

#[test]
fn strictest_possible_flow_verdict_is_foreseen() {
    for case in r#"
        fs_list mail_send: denied: the rule from "fs_list" to "label:outside" in flows
        fs_read mail_send: asked about: the rule from "fs" to "mail_*" in flows
        crm_get log_add: asked about: crm_get is labelled "private" and log_add is not
        crm_get wiki_add: nothing
        fs_read log_add: nothing
        crm_get archive_put: nothing
        crm_get crm_put: nothing"#
        .trim()
        .lines()
    {
        let (ends, expected) = case.trim().split_once(": ").expect(case);
        let (from, to) = ends.split_once(' ').expect(case);
        let expected = expected
            .split_once(": ")
            .map(|(what, why)| format!("data of {from} may be {what} on its way to {to}: {why}"));
        assert_eq!(foreseen(from, to), expected, "{case}");
    }
}
