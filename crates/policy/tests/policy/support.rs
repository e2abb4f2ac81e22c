//! Rules as a file has them, and calls to ask them about.

use callgate_policy::{
    CallFacts, Decision, Effect, Hints, KnownTool, KnownTools, Pattern, Rule, Rules, ToolName,
    UnlistedServer, Unmatched,
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The time of every call here.
pub const NOW: &str = "2026-06-01T12:00:00Z";

pub fn time(text: &str) -> Timestamp {
    text.parse().expect(text)
}

/// `{ "allow": […], "ask": […], "deny": […] }`.
pub fn rules(lists: Value) -> Rules {
    let list = |key: &str, effect: Effect| {
        let entries = lists.get(key).and_then(Value::as_array).cloned();
        entries.unwrap_or_default().into_iter().map(move |entry| {
            Rule::parse(effect, &entry).unwrap_or_else(|problems| panic!("{entry}: {problems:?}"))
        })
    };
    list("allow", Effect::Allow)
        .chain(list("ask", Effect::Ask))
        .chain(list("deny", Effect::Deny))
        .collect()
}

/// The rules, and a grant by a flag.
pub fn granted(mut rules: Rules, pattern: &str) -> Rules {
    let pattern = Pattern::new(pattern).expect("a pattern");
    rules.push(Rule::new(Effect::Grant, pattern).written_in("--allow"));
    rules
}

/// The names of a tool without aliases.
pub fn name<'a>(function: &'a str, server: &'a str) -> ToolName<'a> {
    let own = function.split_once('_');
    ToolName {
        function,
        aliases: &[],
        server,
        tool: own.map_or(function, |(_, own)| own),
    }
}

/// A call to `fs_write` of an untrusted server without hints.
pub fn facts(arguments: Option<&Value>) -> CallFacts<'_> {
    CallFacts {
        name: name("fs_write", "fs"),
        hints: Hints::default(),
        trusted: false,
        definition: None,
        arguments,
        now: time(NOW),
    }
}

/// A tool of an untrusted server without hints.
pub fn known<'a>(function: &'a str, server: &'a str) -> KnownTool<'a> {
    KnownTool {
        facts: CallFacts {
            name: name(function, server),
            ..facts(None)
        },
        input_schema: None,
    }
}

/// The rules without effect on these tools, with `?` for the advice about a name.
pub fn unmatched(
    rules: &Rules,
    tools: &[KnownTool<'_>],
    unlisted: &[UnlistedServer<'_>],
) -> Vec<Unmatched> {
    rules.unmatched(&KnownTools {
        tools: tools.to_vec(),
        uncallable: vec![name("map_draw", "map")],
        unlisted: unlisted.to_vec(),
        advice: &|_| "?".to_owned(),
        now: time(NOW),
    })
}

pub fn decide(rules: &Rules, arguments: Value) -> Decision {
    rules.decide(&facts(Some(&arguments)))
}

/// The match of one rule with these conditions, as an allow rule and as a
/// deny rule: `both`, `neither`, or `deny` where the value cannot be judged.
pub fn matched(conditions: &Value, arguments: &Value) -> &'static str {
    let entry = json!({ "tool": "fs_write", "arguments": conditions });
    let allow = decide(&rules(json!({ "allow": [entry] })), arguments.clone());
    let deny = decide(&rules(json!({ "deny": [entry] })), arguments.clone());
    let ask = decide(
        &rules(json!({ "allow": ["*"], "ask": [entry] })),
        arguments.clone(),
    );
    use callgate_policy::Verdict::{Allow, Ask, Deny};
    match (allow.verdict, deny.verdict, ask.verdict) {
        (Allow, Deny, Ask) => "both",
        (Ask, Ask, Allow) => "neither",
        (Ask, Deny, Ask) => "deny",
        other => panic!("{conditions} over {arguments}: {other:?}"),
    }
}

/// Expects `say` to turn the JSON of each line into the text behind its arrow.
#[track_caller]
pub fn table(cases: &str, say: impl Fn(Value) -> String) {
    for case in cases.trim().lines() {
        let (given, expected) = case.trim().split_once(" → ").expect(case);
        let given = serde_json::from_str(given).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(say(given), expected, "{case}");
    }
}

/// A decision as one line.
pub fn line(decision: &Decision) -> String {
    format!("{:?}: {decision}", decision.verdict)
}
