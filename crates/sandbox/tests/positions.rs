//! Stacks and positions are told in the author's lines, whatever the table says.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use callgate_sandbox::Stretch;
use expect_test::{Expect, expect};

/// Line and column in the code, and the author's.
type Row = (u32, u32, Option<(u32, u32)>);

/// Runs code with a table of where it stands.
async fn check(code: &str, stretches: &[Row], expected: Expect) {
    let mut job = support::job("");
    job.code = code.to_owned();
    job.stretches = stretches
        .iter()
        .map(|&(line, column, author)| Stretch {
            line,
            column,
            author,
        })
        .collect();
    expected.assert_eq(&support::shown(&support::run_job(job).await));
}

/// Line 1 and the last are nobody's; `f` is of line 10, its body moved by four
/// columns, and the rest is of the line 20 and those below.
const CODE: &str = "(async () => {
function f() { throw new Error('f'); }
const g = async () => { await null; f(); };
try { f(); } catch (e) { console.log(e.stack); console.error(e); }
const o = {}; Error.captureStackTrace(o); console.log(o.stack);
console.trace('here');
await fail({}).catch((e) => console.log(e.stack));
await g();
return 1; })";

const TABLE: &[Row] = &[
    (1, 1, None),
    (2, 1, Some((10, 1))),
    (2, 16, Some((10, 20))),
    (3, 1, Some((20, 1))),
    (9, 10, None),
];

#[tokio::test]
async fn every_stack_is_in_the_authors_places() {
    check(
        CODE,
        TABLE,
        expect![[r#"
        Error: f
            at f (script.ts:10:26)
            at script.ts:21:7
        Error: f
            at f (script.ts:10:26)
            at script.ts:21:7
        Error
            at script.ts:22:21
        Trace: here
            at script.ts:23:9
        McpToolError: fail failed
            at script.ts:24:7
        threw "Error" "f" at 10:26
        Error: f
            at f (script.ts:10:26)
            at g (script.ts:20:37)
            at async script.ts:25:1
    "#]],
    )
    .await;
}

#[tokio::test]
async fn code_that_does_not_compile() {
    check(
        "(async () => {\n\n  let x = ; })",
        &[(1, 1, None), (3, 3, Some((7, 1)))],
        expect![[r#"
            threw "SyntaxError" "Unexpected token ';'" at 7:9
            SyntaxError: Unexpected token ';'
        "#]],
    )
    .await;
    check(
        "(async () => {\n\n  let x = ; })",
        &[(1, 1, None)],
        expect![[r#"
            threw "SyntaxError" "Unexpected token ';'" at 0:0
            SyntaxError: Unexpected token ';'
        "#]],
    )
    .await;
}

#[tokio::test]
async fn tables_that_make_no_sense() {
    let code = "(async () => {\n  throw new Error('x'); })";
    check(
        code,
        &[],
        expect![[r#"
        threw "Error" "x" at 0:0
        Error: x
    "#]],
    )
    .await;
    check(
        code,
        &[(9, 1, Some((1, 1)))],
        expect![[r#"
        threw "Error" "x" at 0:0
        Error: x
    "#]],
    )
    .await;
    let last = u32::MAX;
    check(
        code,
        &[(1, 1, Some((last, last)))],
        expect![[r#"
        threw "Error" "x" at 4294967295:9
        Error: x
            at script.ts:4294967295:9
    "#]],
    )
    .await;
    check(
        code,
        &[(2, 1, Some((last, last)))],
        expect![[r#"
        threw "Error" "x" at 4294967295:1048575
        Error: x
            at script.ts:4294967295:1048575
    "#]],
    )
    .await;
}

#[tokio::test]
async fn names_that_look_like_places() {
    let table = &[(1, 1, Some((1, 1))), (2, 1, Some((5, 1)))];
    check(
        "(async () => {\nconst o = { 'a:2:57)'() { throw new Error('x'); } }; o['a:2:57)'](); })",
        table,
        expect![[r#"
            threw "Error" "x" at 5:33
            Error: x
                at a:2:57) (script.ts:5:33)
                at script.ts:5:66
        "#]],
    )
    .await;
    check(
        "(async () => {\nthrow new Error('x'); })\n//# sourceURL=other.js",
        table,
        expect![[r#"
            threw "Error" "x" at 5:7
            Error: x
                at other.js:5:7
        "#]],
    )
    .await;
}

#[tokio::test]
async fn errors_that_are_made_of_others() {
    let table = &[(1, 1, None), (2, 1, Some((1, 1)))];
    check(
        "(async () => {\nawait Promise.any([Promise.reject(new Error('a')), Promise.reject('b')]); })",
        table,
        expect![[r#"
            threw "AggregateError" "All promises were rejected" at 1:35
            AggregateError: All promises were rejected
            Caused by: Error: a
                at script.ts:1:35
            Caused by: 'b'
        "#]],
    )
    .await;
    check(
        "(async () => {\nconst e = new AggregateError([1, 2, 3, 4, 5, 6, 7, 8, 9], 'm', { cause: new Error('c') }); e.errors.push(e); throw e; })",
        table,
        expect![[r#"
            threw "AggregateError" "m" at 1:11
            AggregateError: m
                at script.ts:1:11
            Caused by: Error: c
                at script.ts:1:73
            Caused by: 1
            Caused by: 2
            Caused by: 3
            Caused by: 4
            Caused by: 5
            Caused by: 6
            Caused by: 7
        "#]],
    )
    .await;
    check(
        "(async () => {\nconst e = new Error('m'); e.errors = new Proxy([], { getOwnPropertyDescriptor() { throw 1; } }); throw e; })",
        table,
        expect![[r#"
            threw "Error" "m" at 1:11
            Error: m
                at script.ts:1:11
        "#]],
    )
    .await;
}
