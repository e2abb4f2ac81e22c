//! The search held against a plain one, which compares every place with every other.

use proptest::prelude::*;
use serde_json::json;

use super::super::finding::{Side, is_data};
use super::super::index::{Index, MIN_PIECE};
use super::{MIN_PIECE_IN_LONG, MIN_PIECE_IN_VERY_LONG, SAMPLE, Scan, Terms};
use super::{WIDE_STRIDE, WIDEST_STRIDE};

/// Who may have answered; the first is of the target's server.
const TOOLS: [(&str, &str); 4] = [
    ("mail", "read"),
    ("crm", "get"),
    ("crm", "list"),
    ("wiki", "get"),
];

/// What tools answered, in order: whose text it is, by its place in [`TOOLS`], and the text, each line of
/// which is a string of its own.
type Said = Vec<(usize, String)>;

/// What is searched, and as part of a text of which length: by the shortest piece that is surely found.
#[derive(Debug)]
struct Case {
    said: Said,
    /// How many answers there were when the text was written.
    results: usize,
    text: String,
    least: usize,
}

const LEAST: [usize; 3] = [MIN_PIECE, MIN_PIECE_IN_LONG, MIN_PIECE_IN_VERY_LONG];

/// A part of what is searched: so many characters of an answer from one on, or something else.
#[derive(Debug, Clone)]
enum Part {
    Copied(usize, usize, usize),
    Word(usize),
    Noise(String),
}

fn part() -> impl Strategy<Value = Part> {
    let copied = (0_usize..8, 0_usize..200, 10_usize..60);
    prop_oneof![
        4 => copied.prop_map(|(answer, from, length)| Part::Copied(answer, from, length)),
        2 => (0..WORDS).prop_map(Part::Word),
        1 => "[.-]{0,14}".prop_map(Part::Noise),
    ]
}

/// So few that answers have much in common, in pieces that overlap.
const WORDS: usize = 6;

fn case() -> impl Strategy<Value = Case> {
    // Of different letters, so that each piece is data.
    let letters = Just(('a'..='z').collect::<Vec<char>>()).prop_shuffle();
    let word = (letters, prop_oneof![4_usize..8, 4_usize..25])
        .prop_map(|(letters, length)| letters[..length].iter().collect::<String>());
    let words = proptest::collection::vec(word, WORDS);
    let answer = (0..TOOLS.len(), proptest::collection::vec(0..WORDS, 3..16));
    let answers = proptest::collection::vec(answer, 1..6);
    let parts = proptest::collection::vec(part(), 1..8);
    let all = (words, answers, parts, 0..LEAST.len(), 0_usize..12);
    all.prop_map(|(words, answers, parts, length, late)| {
        let answer = |nths: &[usize]| {
            let mut text = String::new();
            for nth in nths {
                text.push_str(&words[*nth]);
                text.push(if *nth == 0 { '\n' } else { ' ' });
            }
            text
        };
        let said = answers.iter().map(|(tool, nths)| (*tool, answer(nths)));
        let said: Said = said.collect();
        let text = |part: &Part| match part {
            Part::Copied(nth, from, length) => {
                let (_, text) = &said[nth % said.len()];
                let from = from % text.len();
                let copied: String = text[from..].chars().take(*length).collect();
                copied.replace('\n', ".")
            }
            Part::Word(nth) => words[*nth].clone(),
            Part::Noise(noise) => noise.clone(),
        };
        Case {
            text: parts.iter().map(text).collect(),
            results: said.len().saturating_sub(late / 9),
            said,
            least: LEAST[length],
        }
    })
}

impl Case {
    /// Whether one of the first so many answers is of this tool and has a piece.
    fn says(&self, results: usize, tool: usize, piece: &[u8]) -> bool {
        let said = self.said.iter().take(results);
        let mut said = said.filter(|(by, _)| *by == tool);
        said.any(|(_, said)| {
            said.as_bytes()
                .windows(piece.len())
                .any(|said| said == piece)
        })
    }

    /// Whether there is data in the text that this tool said, and the target did not, in a piece that is
    /// surely found.
    fn is_carried(&self, tool: usize) -> bool {
        let mut pieces = self.text.as_bytes().windows(self.least);
        pieces.any(|piece| {
            is_data(piece)
                && self.says(self.results, tool, piece)
                && !self.says(usize::MAX, 0, piece)
        })
    }

    /// What the search finds: whose it is, and the piece.
    fn found(&self) -> Vec<(usize, &str)> {
        let mut index = Index::new();
        for (ordinal, (tool, text)) in self.said.iter().enumerate() {
            let (server, tool) = TOOLS[*tool];
            let side = Side::new(&format!("{server}_{tool}"), server, tool);
            let strings: Vec<&str> = text.split('\n').collect();
            index.take(side, ordinal, &json!(strings).to_string());
        }
        index.catch_up();
        let others = index.others("mail").unwrap_or_else(|| index.join());
        let terms = Terms {
            index: &index,
            results: self.results,
            to: &Side::new("mail_send", "mail", "send"),
            others,
        };
        let mut scan = Scan::new(terms, 0, usize::MAX);
        let (text, places) = (self.text.as_bytes(), 0..self.text.len());
        match self.least {
            MIN_PIECE => scan.pieces_by::<SAMPLE>(text, places),
            MIN_PIECE_IN_LONG => scan.pieces_by::<WIDE_STRIDE>(text, places),
            _ => scan.pieces_by::<WIDEST_STRIDE>(text, places),
        }
        let found = scan.found.into_iter().map(|found| {
            let source = &index.sources[usize::from(found.source)];
            let is_it =
                |tool: &(&str, &str)| *tool == (source.server.as_str(), source.tool.as_str());
            let tool = TOOLS.iter().position(is_it).expect("one that answered");
            (tool, &self.text[found.range])
        });
        found.collect()
    }

    /// Whose data is not found, and what is found of somebody who did not say it.
    fn wrong(&self) -> (Vec<&str>, Vec<(usize, &str)>) {
        let found = self.found();
        let missed =
            TOOLS.iter().enumerate().skip(1).filter(|(tool, _)| {
                self.is_carried(*tool) && !found.iter().any(|(by, _)| by == tool)
            });
        let missed = missed.map(|(_, (server, _))| *server).collect();
        let is_untrue = |(tool, piece): &(usize, &str)| {
            let mut pieces = piece.as_bytes().windows(MIN_PIECE);
            *tool == 0 || !pieces.any(|piece| self.says(self.results, *tool, piece))
        };
        (missed, found.into_iter().filter(is_untrue).collect())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_a_plain_search_finds_is_found_and_nothing_else(case in case()) {
        prop_assert_eq!(case.wrong(), (vec![], vec![]));
    }
}

/// Those that lots drawn for the property meet seldom.
#[test]
fn what_lies_in_the_way_of_a_piece_hides_it_nowhere() {
    let check = |why: &str, text: &str, said: &[(usize, &str)]| {
        let said = said.iter().map(|(tool, said)| (*tool, (*said).to_owned()));
        let said: Said = said.collect();
        // At all places that a suspect may be at.
        for before in 0..WIDEST_STRIDE {
            for least in LEAST {
                let case = Case {
                    said: said.clone(),
                    results: said.len(),
                    text: format!("{}{text}", ".".repeat(before)),
                    least,
                };
                assert_eq!(case.wrong(), (vec![], vec![]), "{why}: {case:?}");
            }
        }
    };
    let own = "the customer lives and works on main street in springfield";
    check(
        "a piece that begins in one of the target's own, which the source has, too",
        &format!("{own} 12"),
        &[(0, own), (1, own), (1, "back street in springfield 12")],
    );
    check(
        "a piece that begins before such a one",
        &format!("a {own}"),
        &[
            (0, own),
            (1, own),
            (1, "as for a the customer lives and works"),
        ],
    );
    check(
        "a piece that such a one is met before, near a place that is in none",
        "vbowsuu l dphfmfcyumxopzdbhvbowsuu ewcp lll",
        &[
            (0, "dphfmfcyumxopzdbhvbowsuu l lll"),
            (
                0,
                "dpijf dphfmfcyumxopzdbhvbowsuu lll ewcp dpijf ewcp qrjjysgoz lll l qrjjysgoz",
            ),
            (
                1,
                "dphfmfcyumxopzdbhvbowsuu dphfmfcyumxopzdbhvbowsuu l dphfmfcyumxopzdbhvbowsuu ewcp lll",
            ),
            (
                3,
                "ewcp lll dphfmfcyumxopzdbhvbowsuu qrjjysgoz dpijf qrjjysgoz qrjjysgoz ewcp ewcp dphfmfcyumxopzdbhvbowsuu l",
            ),
        ],
    );
    check(
        "a piece across a gap in one that is around all places that are looked up",
        "jcbgi zrzcqylzqdlpnhygx jcblzqdlpnhygx zrzcqyl",
        &[
            (2, "yjs s bgi bgi s fosf jcb bgi zrzcqylzqdlpnhygx jcb"),
            (0, "bgi jcb bgi zrzcqylzqdlpnhygx zrzcqylzqdlpnhygx"),
            (
                1,
                "jcb zrzcqylzqdlpnhygx fosf yjs jcb jcb zrzcqylzqdlpnhygx zrzcqylzqdlpnhygx s bgi s yjs s",
            ),
        ],
    );
    let text = "a table of accounts, 1234 and a list of names";
    let pieces = "a table of accounts, or lists, and a list of names";
    let across = "use of accounts, 1234 and a lift";
    check(
        "a piece across a gap in another source's",
        text,
        &[(2, pieces), (3, across)],
    );
    check(
        "a piece across a gap in the target's",
        text,
        &[(0, pieces), (3, across)],
    );
    check(
        "a piece across a gap behind which one of another source was met, and that goes back over it",
        "abcdefghijklmnopqrstuvwxyzzyxwvutsrqponmlkjihgfedcba",
        &[
            (3, &format!("87mnopqrstuvwxyzzyxwvutsrq{}", "#".repeat(100))),
            (
                1,
                "jklmnopqrstu0000\nopqrstuvwxyzzyxwvutsrqponmlkjihgfedcba",
            ),
        ],
    );
    let row = [
        (1, "abcdefghijklmno 1"),
        (2, "efghijklmnopqrs 2"),
        (1, "ijklmnopqrstuvw 3"),
        (2, "mnopqrstuvwxyza 4"),
        (1, "qrstuvwxyzabcde 5"),
    ];
    for (piece, said) in [
        ("bcdef in a row", "xyzabcdef in a row"),
        ("bcdef", "tuvwxyzabcdef"),
    ] {
        check(
            "a piece behind a row of fingerprints that are known and no piece",
            &format!("abcdefghijklmnopqrstuvwxyza{piece}"),
            &[row.as_slice(), &[(3, said)]].concat(),
        );
    }
}
