//! Ledgers of two writers, and what a check finds in changed ones.

use super::super::chain::{Chain, digest};
use super::super::line::{Line, LineKind};
use super::*;

/// Numbers that only look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }
}

/// The lines of two writers with four runs each, two of them at once.
#[derive(Default)]
struct Book {
    lines: Vec<String>,
    writers: [Chain; 2],
    runs: HashMap<String, Chain>,
}

impl Book {
    fn whole() -> Self {
        let mut book = Self::default();
        for round in 0..2 {
            for kind in [
                LineKind::RunStarted,
                LineKind::Before,
                LineKind::NotSent,
                LineKind::After,
                LineKind::RunEnded,
            ] {
                for writer in 0..2 {
                    for run in 0..2 {
                        book.write(writer, &format!("r-{writer}{round}{run}"), kind);
                    }
                }
            }
        }
        book
    }

    fn write(&mut self, writer: usize, run: &str, kind: LineKind) {
        let minute = self.lines.len();
        let line = Line {
            kind,
            run: run.to_owned(),
            time: format!("2026-05-06T07:{minute:02}:00.000Z"),
            rest: r#""more":{"text":"7 things"}}"#.to_owned(),
        };
        let chain = self.runs.entry(run.to_owned()).or_default();
        let text = line.text(chain, &format!("w{writer}"), &self.writers[writer]);
        chain.add(digest(&text), line.time.clone());
        if kind.is_of_run() {
            self.writers[writer].add(digest(&text), line.time);
        }
        self.lines.push(text);
    }
}

fn check_with(lines: &[String], heads: Vec<Head>) -> (Vec<String>, Summary, Option<Head>) {
    let mut verifier = Verifier::new(heads);
    verifier.begin_file("l");
    for line in lines {
        verifier.line(format!("{line}\n").as_bytes());
    }
    let head = verifier.end_file();
    let mut found = verifier.findings();
    let (last, summary) = verifier.finish();
    found.extend(last);
    (
        found.iter().map(Finding::to_string).collect(),
        summary,
        head,
    )
}

fn check(lines: &[String]) -> Vec<String> {
    check_with(lines, Vec::new()).0
}

/// The run that a line says it is of.
fn run_of(line: &str) -> &str {
    line.split('"').nth(9).expect("a run")
}

/// Changes the lines in one place. Returns what was done.
fn damage(lines: &mut Vec<String>, numbers: &mut Numbers, last: usize) -> String {
    let at = numbers.below(last);
    match numbers.below(5) {
        0 => {
            let mut bytes = lines[at].clone().into_bytes();
            let byte = numbers.below(bytes.len());
            bytes[byte] = if bytes[byte] == b'x' { b'y' } else { b'x' };
            lines[at] = String::from_utf8(bytes).expect("ASCII");
            format!("byte {byte} of line {}", at + 1)
        }
        1 => {
            // Without the first line, the second is the beginning.
            let at = at.max(1);
            lines.remove(at);
            format!("line {} is gone", at + 1)
        }
        2 => {
            let copy = lines[at].clone();
            let to = at + 1 + numbers.below(lines.len() - at);
            lines.insert(to, copy);
            format!("line {} again as {}", at + 1, to + 1)
        }
        3 => {
            let run = run_of(&lines[at]).to_owned();
            let mut others = (0..lines.len()).filter(|other| *other != at);
            let other = others.find(|other| run_of(&lines[*other]) == run);
            let other = other.expect("a run has several lines");
            lines.swap(at, other);
            format!("lines {} and {} swapped", at + 1, other + 1)
        }
        _ => {
            let forged = lines[at].replace("7 things", "8 things");
            lines.insert(at, forged);
            format!("a forged line before {}", at + 1)
        }
    }
}

#[test]
fn whole_ledger_has_no_finding() {
    let book = Book::whole();
    let (found, summary, head) = check_with(&book.lines, Vec::new());
    assert_eq!(found, [] as [&str; 0]);
    let counts = (summary.files, summary.lines, summary.runs);
    assert_eq!(counts, (1, 40, 8));
    let (found, summary, _) = check_with(&book.lines, Vec::from_iter(head));
    assert_eq!((found.len(), summary.deleted), (0, 0));
}

#[test]
fn each_change_before_the_ends_is_found() {
    let book = Book::whole();
    let mut numbers = Numbers(11);
    // The last lines of the writers are their ends.
    let last = book.lines.len() - 3;
    for _ in 0..200 {
        let mut lines = book.lines.clone();
        let done = damage(&mut lines, &mut numbers, last);
        assert!(!check(&lines).is_empty(), "{done}");
    }
}

#[test]
fn with_heads_each_change_is_found() {
    let book = Book::whole();
    let heads = Vec::from_iter(check_with(&book.lines, Vec::new()).2);
    let mut numbers = Numbers(12);
    for _ in 0..200 {
        let mut lines = book.lines.clone();
        let done = damage(&mut lines, &mut numbers, book.lines.len());
        let (found, ..) = check_with(&lines, heads.clone());
        assert!(!found.is_empty(), "{done}");
    }
}

#[test]
fn findings_say_where_and_what() {
    let book = Book::whole();
    let changed = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = book.lines.clone();
        change(&mut lines);
        check(&lines).join("\n")
    };
    let cases: [(&str, String); 6] = [
        (
            r#"l:9: run "r-000": line 3 does not follow l:5: one of the two was changed"#,
            changed(&|lines| lines[4] = lines[4].replace("things", "thongs")),
        ),
        (
            r#"l:8: run "r-000": lines 2 to 2 are missing before this one"#,
            changed(&|lines| drop(lines.remove(4))),
        ),
        (
            r#"l:6: run "r-000": line 2 comes after l:5: it was duplicated, moved or inserted"#,
            changed(&|lines| lines.insert(5, lines[4].clone())),
        ),
        (
            "l:5: the line is torn: its writing was cut off by a crash or a full disk, or it was \
             changed",
            changed(&|lines| lines.insert(4, lines[4][..70].to_owned())),
        ),
        (
            "l:5: this is no line of a ledger: it was changed or inserted",
            changed(&|lines| lines.insert(4, "{ } 5".to_owned())),
        ),
        (
            "l:36: warning: run \"r-111\" has no end: it is under way, its process was killed, or \
             its end was removed",
            changed(&|lines| drop(lines.pop())),
        ),
    ];
    for (expected, found) in cases {
        assert!(
            found.lines().any(|line| line == expected),
            "{expected}\n{found}"
        );
    }
}

#[test]
fn removed_run_of_a_living_writer_is_found() {
    let book = Book::whole();
    for (gone, expected) in [
        ("r-000", r#"writer "w0": lines 1 to 1 are missing"#),
        ("r-110", r#"writer "w1": lines 5 to 5 are missing"#),
    ] {
        let mut lines = book.lines.clone();
        // The first line says since when lines must be there.
        let first = r#"{"event":"before","run":"0","time":"2026-05-06T06:00:00.000Z"}"#;
        lines.insert(0, first.to_owned());
        lines.retain(|line| run_of(line) != gone);
        let found = check(&lines).join("\n");
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn clock_set_back_makes_no_line_missing() {
    for (hour, is_found) in [(8, true), (6, false)] {
        let lines = [
            r#"{"event":"before","run":"r-0","time":"2026-05-06T05:00:00Z"}"#.to_owned(),
            format!(
                r#"{{"event":"before","run":"r-9","time":"2026-05-06T0{hour}:00:00Z","n":3,{}}}"#,
                r#""prev":"0f","prevTime":"2026-05-06T07:00:00Z""#
            ),
        ];
        let found = check(&lines).join("\n");
        let missing = r#"run "r-9": lines 1 to 2 are missing"#;
        assert_eq!(found.contains(missing), is_found, "{found}");
    }
}

#[test]
fn file_deleted_by_rotation_is_a_warning() {
    let book = Book::whole();
    let heads = [2, 3].map(|lines| check_with(&book.lines[..lines], Vec::new()).2);
    let heads: Vec<Head> = heads.into_iter().flatten().collect();
    let gone = "no file begins as \"l\" did with its last line of 2026-05-06T07:02:00.000Z: ";
    for kept in 3..book.lines.len() {
        let mut verifier = Verifier::new(heads.clone());
        let (rotated, newest) = book.lines[kept..].split_at(1);
        for (name, lines) in [("l.1", rotated), ("l", newest)] {
            verifier.begin_file(name);
            for line in lines {
                verifier.line(format!("{line}\n").as_bytes());
            }
            verifier.end_file();
        }
        let (found, summary) = verifier.finish();
        let found: Vec<_> = found.iter().map(Finding::to_string).collect();
        assert_eq!((found.len(), summary.deleted), (1, 2), "{kept}: {found:?}");
        let warning = format!("warning: {gone}rotation");
        assert!(found[0].starts_with(&warning), "{found:?}");

        // Without a rotated file, rotation has deleted nothing.
        let (found, summary, _) = check_with(&book.lines[kept..], heads.clone());
        assert_eq!((found.len(), summary.deleted), (1, 0), "{kept}: {found:?}");
        assert!(found[0].starts_with(gone), "{found:?}");
    }
}

#[test]
fn cut_rewritten_and_removed_files_differ_from_heads() {
    let book = Book::whole();
    let heads = Vec::from_iter(check_with(&book.lines, Vec::new()).2);
    let check = |lines: &[String]| check_with(lines, heads.clone()).0.join("\n");
    let (last, all) = (book.lines.len() - 1, &book.lines);
    let found = check(&all[..last]);
    assert!(
        found.contains("l:39: lines up to 40 are missing"),
        "{found}"
    );
    let mut rewritten = all.clone();
    rewritten[last] = rewritten[last].replace("things", "thongs");
    let found = check(&rewritten);
    assert!(
        found.contains("l:40: line 40 or one before it was"),
        "{found}"
    );
    let found = check(&[]);
    assert!(found.starts_with("no file begins as \"l\" did"), "{found}");
    // The file goes on.
    let mut book = book;
    book.write(1, "r-2", LineKind::RunStarted);
    book.write(1, "r-2", LineKind::RunEnded);
    assert_eq!(check_with(&book.lines, heads).0, [] as [&str; 0]);
}

#[test]
fn older_lines_are_counted_before_chains_only() {
    let older = |call: u8| {
        format!(
            r#"{{"v":1,"event":"before","run":"0a","call":{call},"time":"2026-05-06T07:00:0{call}.000Z"}}"#
        )
    };
    let mut lines = vec![older(1), older(2)];
    lines.extend(Book::whole().lines);
    let (found, summary, _) = check_with(&lines, Vec::new());
    assert_eq!((found.len(), summary.unchained), (0, 2), "{found:?}");
    lines.insert(20, older(3));
    let found = check(&lines);
    assert!(
        found.len() == 1 && found[0].starts_with("l:21: the line has no number"),
        "{found:?}"
    );
}

#[test]
fn line_after_a_torn_one_is_read() {
    let book = Book::whole();
    let mut lines = book.lines.clone();
    for cut in [1, 40, 200] {
        lines[7] = format!("{}{}", &book.lines[7][..cut], book.lines[7]);
        let found = check(&lines);
        assert!(
            found.len() == 1 && found[0].starts_with("l:8: the line is torn"),
            "{found:?}"
        );
    }
}
