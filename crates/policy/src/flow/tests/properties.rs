//! Properties of the detector for texts of any kind.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;

use super::{inspect, noise, side, url_encoded};
use crate::flow::Detector;
use crate::flow::windows::{MIN_PIECE, WINDOW};

/// True if each window of a piece occurs in a text: the detector keeps windows.
fn has_parts(text: &str, piece: &[u8]) -> bool {
    let has = |part: &[u8]| text.as_bytes().windows(WINDOW).any(|window| window == part);
    piece.windows(WINDOW).all(has)
}

/// Text of words, which is unlike any other such text.
fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        9 => "[a-zA-Z0-9\u{e9}\u{4e16}\\\\\"/%&.:;=-]{2,9}",
        1 => "[\\\\%+ ]{1,2}",
    ];
    proptest::collection::vec(word, 8..40).prop_map(|words| words.join(" "))
}

/// A record like the others in its list, with little variety.
fn record() -> impl Strategy<Value = String> {
    "(First name|Customer ID|name): [A-C]{1,2}[0-9]{0,3}[A-Z]{1,9}"
}

proptest! {
    #[test]
    fn every_copy_is_found_in_every_form(
        text in words(),
        start in 0_usize..40,
        length in 30_usize..80,
        before in "[0-9:, ]{0,40}",
        after in "[0-9:, ]{0,40}",
        form in 0..9,
    ) {
        let characters: Vec<char> = text.chars().collect();
        let start = start.min(characters.len() - 20);
        let piece: String = characters[start..].iter().take(length).collect();
        let piece = piece.trim();
        prop_assume!(piece.chars().filter(|c| c.is_alphanumeric()).count() >= 20);
        let url = |text: &str| url_encoded(text);
        let encoded = match form {
            0 => piece.to_owned(),
            1 => piece.to_ascii_uppercase().replace(' ', "\n\t "),
            2 => STANDARD.encode(piece),
            3 => URL_SAFE_NO_PAD.encode(format!("{after}{piece}{before}")),
            4 => serde_json::to_string(&json!({ "a": piece })).expect("JSON"),
            5 => url(piece),
            6 => url(piece).replace("%20", "+"),
            7 => format!("x{}", STANDARD.encode(piece)),
            _ => url(&serde_json::to_string(&json!([piece, piece])).expect("JSON")),
        };
        let arguments = json!({ "body": format!("{before} {encoded} {after}") });
        let found = inspect(&[("crm_get", json!({ "note": text }))], &arguments);
        prop_assert_eq!(found.len(), 1, "{} in {}", piece, arguments);
    }

    #[test]
    fn exactly_the_sources_of_a_piece_are_found(
        records in proptest::collection::vec(record(), 4),
        words in proptest::collection::vec(proptest::collection::vec(0_usize..16, 1..6), 4),
        before in "[0-9]{0,6}",
        of_target in 0_usize..4,
        count in 2_usize..4,
    ) {
        // Words that are no piece alone, records that begin alike, and a whole piece.
        let word = |nth: usize| match nth {
            0 => "one piece by itself".to_owned(),
            1..8 => records[nth % records.len()].clone(),
            _ => (0..5_u32).map(|letter| noise(nth as u32 * 7 + letter)).collect(),
        };
        let joined = |words: &Vec<usize>| words.iter().map(|nth| word(*nth)).collect::<Vec<_>>().join("\n");
        let mut from = ["crm_get", "crm_list", "wiki_get"];
        if let Some(from) = from.get_mut(of_target) {
            *from = "mail_read";
        }
        let texts: Vec<String> = words[..3].iter().map(joined).collect();
        let results = from.into_iter().zip(texts.iter().map(|text| json!(text)));
        let results: Vec<_> = results.take(count).collect();
        let sent = format!("{before}{}", joined(&words[3]));
        let found = inspect(&results, &json!({ "text": sent }));
        let sent = sent.replace('\n', " ").to_lowercase();
        let own = texts.iter().take(count).nth(of_target).map(|text| text.replace('\n', " ").to_lowercase());
        for (nth, (from, text)) in from.iter().zip(&texts).enumerate().take(count) {
            let text = text.replace('\n', " ").to_lowercase();
            let own = own.as_ref().filter(|_| nth > of_target);
            let is_piece = |piece: &[u8]| {
                let piece = str::from_utf8(piece).expect("ASCII");
                let own = own.is_some_and(|own| has_parts(own, piece.as_bytes()));
                text.contains(piece) && !own
            };
            let must_be = nth != of_target && sent.as_bytes().windows(MIN_PIECE).any(is_piece);
            let is_found = found.iter().any(|found| found.from.function == *from);
            let mut pieces = sent.as_bytes().windows(MIN_PIECE);
            let may_be = nth != of_target && pieces.any(|piece| has_parts(&text, piece));
            prop_assert!(!is_found || may_be, "{} in {}", from, sent);
            prop_assert!(is_found || !must_be, "{} not in {}", from, sent);
        }
    }

    #[test]
    fn short_piece_is_found_anywhere_in_long_arguments(
        start in 0_usize..400, place in 0_usize..200,
    ) {
        let text: String = (0..500_u32).map(noise).collect();
        let piece = &text[start..start + MIN_PIECE];
        let padding = ". ".repeat(50_000) + &"-".repeat(place);
        let arguments = json!({ "body": format!("{padding}{piece}{padding}") });
        let found = inspect(&[("crm_get", json!(text))], &arguments);
        prop_assert_eq!(found.len(), 1);
    }

    #[test]
    fn any_text_is_inspected_without_panic(result in "\\PC{0,200}", arguments in "\\PC{0,200}") {
        let flows = Detector::new(&arguments);
        flows.learn(&side("crm_get"), 1, &result);
        flows.learn(&side("crm_list"), 2, &json!([result, arguments]).to_string());
        flows.find(&side("mail_send"), &arguments, &result);
        flows.find(&side("mail_send"), &json!({ "a": result }).to_string(), "");
    }
}
