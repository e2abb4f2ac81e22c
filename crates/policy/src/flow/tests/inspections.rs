//! A look that several threads take part in finds what one by itself does.

use std::sync::Arc;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::json;

use super::{SECRET, noise, show, side};
use crate::flow::scan::LONG;
use crate::flow::{Finding, Flows, Inspection};

/// What is found by an inspection that so many others help with.
fn finish(inspection: &Inspection, helpers: usize) -> Vec<Finding> {
    thread::scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(|| inspection.help());
        }
        inspection.finish()
    })
}

/// Words that look drawn by lot, of so many letters together.
fn words(first: u32, letters: u32) -> String {
    let word = |nth: u32| match nth % 8 {
        0 => ' ',
        _ => noise(nth),
    };
    (first..first + letters).map(word).collect()
}

/// Words that nobody else has.
fn filling(nth: u32, letters: u32) -> String {
    words(1_000_000 + nth * 200_000, letters)
}

/// A piece of what was answered, and what stands behind it.
#[derive(Debug, Clone)]
struct Copy {
    from: usize,
    start: usize,
    length: usize,
    letters: u32,
    form: u8,
}

fn copies() -> impl Strategy<Value = Vec<Copy>> {
    let copy = (
        0_usize..4,
        0_usize..3_000,
        1_usize..900,
        0_u32..900,
        0_u8..5,
    );
    let copy = copy.prop_map(|(from, start, length, letters, form)| Copy {
        from,
        start,
        length,
        letters,
        form,
    });
    proptest::collection::vec(copy, 30..90)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whoever_helps_the_same_is_found(
        copies in copies(), helpers in 0_usize..3, is_base64 in any::<bool>(),
    ) {
        // What some have in common, and what the target said itself.
        let answered = [
            ("crm_get", words(1_000, 3_000)),
            ("mail_read", words(0, 1_500)),
            ("wiki_get", words(3_000, 3_000)),
            ("crm_list", words(500, 3_000)),
        ];
        let mut flows = Flows::new(&words(3_200, 300));
        for (ordinal, (from, text)) in answered.iter().enumerate() {
            flows.learn(side(from), ordinal + 1, &json!(text).to_string());
        }
        let mut text = filling(99, 150_000);
        for (nth, copy) in copies.iter().enumerate() {
            let (_, whole) = &answered[copy.from];
            let piece = whole.get(copy.start..).unwrap_or_default();
            let piece = &piece[..copy.length.min(piece.len())];
            match copy.form {
                0 => text.push_str(&piece.to_ascii_uppercase()),
                1 => text.push_str(&piece.replace('e', "\n")),
                // A byte is another now and then.
                2 => text.push_str(&piece.replace("q", "?")),
                _ => text.push_str(piece),
            }
            text.push_str(&filling(nth as u32, copy.letters));
        }
        if is_base64 {
            text = format!("{SECRET} {}", STANDARD.encode(&text));
        }
        let arguments = Arc::new(json!({ "text": text }).to_string());
        prop_assert!(arguments.len() > LONG);
        let to = side("mail_send");
        for results in [4, 3] {
            let alone = flows.inspect_among(results, &to, &arguments, "");
            let inspection = flows.begin(results, &to, &arguments, "");
            let helped = finish(&inspection, helpers);
            prop_assert_eq!(show(&helped), show(&alone));
            prop_assert_eq!(helped, alone);
        }
    }
}

/// A long text with a piece of what `crm_get` answered.
fn long() -> Arc<String> {
    let (before, after) = (filling(0, 100_000), filling(1, 100_000));
    Arc::new(json!({ "text": format!("{before} {SECRET}{after}") }).to_string())
}

#[test]
fn what_is_learnt_meanwhile_is_not_looked_for() {
    let mut flows = Flows::default();
    flows.learn(side("crm_get"), 1, &json!("something else").to_string());
    let (to, arguments) = (side("mail_send"), long());
    let inspection = flows.begin(1, &to, &arguments, "");
    flows.learn(side("crm_get"), 2, &json!(SECRET).to_string());
    let found = "36 bytes of crm.get (call 2) go to mail.send, Text in 1 pieces: \"Quarterly \
                 revenue fell by 12 percent\"";
    assert_eq!(show(&flows.inspect(&to, &arguments, "")), found);
    assert_eq!(inspection.finish(), []);
}

#[test]
fn an_inspection_may_be_finished_twice_and_outlive_what_it_is_of() {
    let mut flows = Flows::default();
    flows.learn(side("crm_get"), 1, &json!(SECRET).to_string());
    let inspection = flows.begin(1, &side("mail_send"), &long(), "");
    drop(flows);
    let found = inspection.finish();
    assert_eq!(found.len(), 1);
    assert_eq!(inspection.finish(), found);
}

#[test]
fn base64_of_a_long_text_is_looked_through_like_another() {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    let mut flows = Flows::default();
    flows.learn(side("crm_get"), 1, &json!(SECRET).to_string());
    let text = format!(
        "{} {SECRET} {}",
        "word ".repeat(40_000),
        "more ".repeat(40_000)
    );
    let arguments = Arc::new(json!({ "data": STANDARD.encode(text) }).to_string());
    let inspection = flows.begin(1, &side("mail_send"), &arguments, "");
    let expected = "36 bytes of crm.get (call 1) go to mail.send, Base64 in 1 pieces: \
                    \"Quarterly revenue fell by 12 percent\"";
    assert_eq!(show(&finish(&inspection, 2)), expected);
}
