//! Scripts in a real worker, compared with their expected ends.
//!
//! `UPDATE_EXPECT=1` rewrites the expected ends.
//!
//! - `runtime-js/tests/NAME.js` with `NAME.out` beside it;
//! - `scripts/NAME.txt`: cases of a title, a script, and its end. A title with ` | ` has a table of
//!   positions, and the code is not wrapped: `2:1=10:1` is line 10 of the author from there on.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use callgate_sandbox::{End, MappedRange};
use expect_test::expect_file;
use support::{run, run_job, shown};

async fn check(name: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime-js/tests");
    let script = std::fs::read_to_string(format!("{folder}/{name}.js")).expect("a test script");
    expect_file![format!("{folder}/{name}.out")].assert_eq(&shown(&run(&script).await));
}

async fn check_cases(name: &str) {
    let path = format!("{}/tests/scripts/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let cases = std::fs::read_to_string(&path).expect("cases");
    let mut found = String::new();
    for case in format!("\n{}", cases.strip_suffix('\n').unwrap())
        .split("\n=== ")
        .skip(1)
    {
        let (title, case) = case.split_once('\n').unwrap();
        let case = format!("{case}\n");
        let (script, _) = case.split_once("\n---\n").unwrap();
        let mut job = support::job(script);
        if let Some((_, table)) = title.split_once(" | ") {
            job.source_map = table.split(' ').filter_map(range).collect();
            script.clone_into(&mut job.code);
        }
        let end = shown(&run_job(job).await);
        found.push_str(&format!("=== {title}\n{script}\n---\n{end}"));
    }
    expect_file![path].assert_eq(&found);
}

/// `2:1=10:1`, `2:1` for generated code, or `none`.
fn range(row: &str) -> Option<MappedRange> {
    let place = |text: &str| {
        let (line, column) = text.split_once(':')?;
        Some((line.parse().unwrap(), column.parse().unwrap()))
    };
    let mut places = row.split('=').map(place);
    let (line, column) = places.next()??;
    let author = places.next().flatten();
    Some(MappedRange {
        line,
        column,
        author,
    })
}

macro_rules! tests {
    ($check:ident: $($name:ident)*) => {
        $(#[tokio::test]
        async fn $name() {
            $check(stringify!($name)).await;
        })*
    };
}

tests! { check: globals closed console emit errors input json lookups results web }
tests! { check_cases: call_options ends positions tampering }

#[tokio::test]
async fn thrown_values_are_bounded() {
    // A long name that the output repeats many times.
    let name = "N".repeat(300);
    let many = format!(
        "class {name} {{ x = 1; get [Symbol.toStringTag]() {{ return 't'.repeat(300); }} }}
         const many = Array.from({{ length: 100 }}, () => new {name}());
         console.log(many);
         throw Array.from({{ length: 100 }}, () => many);"
    );
    let long = "const e = new Error('m'.repeat(1e6)); e.name = 'n'.repeat(1e6); throw e;";
    for script in [&many, long] {
        let ended = run(script).await;
        let End::Threw(e) = ended.end else {
            panic!("{:?}", ended.end)
        };
        assert!(e.name.len() < 300 && e.message.len() < 17_000, "{script}");
    }
}
