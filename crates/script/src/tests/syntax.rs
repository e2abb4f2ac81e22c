//! Syntax errors, and where they are shown.

use super::check;
use expect_test::expect;

#[test]
fn syntax_errors() {
    check(
        "const x = ;",
        expect![[r#"
        Syntax: script.ts:1:11: an expression is expected here
        1 | const x = ;
          |           ^
    "#]],
    );
    check(
        "f(1,\n  2",
        expect![[r#"
            Syntax: script.ts:2:4: the script ends here, but something in it is still open
            2 |   2
              |    ^
        "#]],
    );
    check(
        "if (x) {\n  f()\n",
        expect![[r#"
            Syntax: script.ts:3:1: the script ends here, but something in it is still open
            3 | 
              | ^
        "#]],
    );
    check(
        "f(`a",
        expect![[r#"
        Syntax: script.ts:1:3: unterminated template
        1 | f(`a
          |   ^
    "#]],
    );
    check(
        "f('a",
        expect![[r#"
        Syntax: script.ts:1:3: unterminated string constant (and 1 more error)
        1 | f('a
          |   ^
    "#]],
    );
    check(
        "/* a",
        expect![[r#"
        Syntax: script.ts:1:5: unterminated block comment
        1 | /* a
          |     ^
    "#]],
    );
    check(
        "let a b c",
        expect![[r#"
        Syntax: script.ts:1:7: a semicolon or a new line is expected here
        1 | let a b c
          |       ^
    "#]],
    );
    check(
        "a b\nc d\ne f",
        expect![[r#"
        Syntax: script.ts:1:3: a semicolon or a new line is expected here
        1 | a b
          |   ^
    "#]],
    );
    check(
        "with (x) {}",
        expect![[r#"
        Syntax: script.ts:1:1: "with" is not available: scripts are strict
        1 | with (x) {}
          | ^
    "#]],
    );
    check(
        "return 010",
        expect![[r#"
            Syntax: script.ts:1:8: octal numbers are written "0o10"
            1 | return 010
              |        ^
        "#]],
    );
    check(
        "function f(a, a) {}\nf()",
        expect![[r#"
            Syntax: script.ts:1:15: "a" is declared twice; rename one of them
            1 | function f(a, a) {}
              |               ^
        "#]],
    );
    check(
        "let yield = 1",
        expect![[r#"
        Syntax: script.ts:1:5: `yield` cannot be used as an identifier in strict mode
        1 | let yield = 1
          |     ^
    "#]],
    );
    check(
        "let await = 1",
        expect![[r#"
        Syntax: script.ts:1:5: `await` cannot be used as an identifier in an async context
        1 | let await = 1
          |     ^
    "#]],
    );
    check(
        "function f() { await g() }\nf()",
        expect![[r#"
        Syntax: script.ts:1:16: "await" needs an async function; write "async" before the function around it
        1 | function f() { await g() }
          |                ^
    "#]],
    );
    check(
        "f() <!-- comment\ng()",
        expect![[r#"
        Syntax: script.ts:1:5: "<!--" and "-->" start comments in old scripts; write "//", or put spaces between the characters
        1 | f() <!-- comment
          |     ^
    "#]],
    );
    check(
        "f()\n--> comment",
        expect![[r#"
        Syntax: script.ts:2:1: "<!--" and "-->" start comments in old scripts; write "//", or put spaces between the characters
        2 | --> comment
          | ^
    "#]],
    );
    check(
        "async function () { const = 1 }",
        expect![[r#"
            Syntax: script.ts:1:27: unexpected =; yield, an identifier, [ or { is expected
            1 | async function () { const = 1 }
              |                           ^
        "#]],
    );
    check(
        "x?.y = 1",
        expect![[r#"
        Syntax: script.ts:1:1: the left-hand side of an assignment expression must be a variable or a property access
        1 | x?.y = 1
          | ^
    "#]],
    );
    check(
        "break",
        expect![[r#"
            Syntax: script.ts:1:1: a 'break' statement can only be used within an enclosing iteration or switch statement
            1 | break
              | ^
        "#]],
    );
    check(
        "Please list the files.",
        expect![[r#"
        Syntax: script.ts:1:8: a semicolon or a new line is expected here
        1 | Please list the files.
          |        ^
    "#]],
    );
    check(
        "{\"tool\": \"a_b\"}",
        expect![[r#"
        Syntax: script.ts:1:8: a semicolon or a new line is expected here
        1 | {"tool": "a_b"}
          |        ^
    "#]],
    );
}

#[test]
fn positions_in_texts_of_all_kinds() {
    check(
        "f()\r\ng(日本 as 日本);\r\n\tlet x: 😀 = 1",
        expect![[r#"
        Syntax: script.ts:3:9: unexpected character '😀'
        3 | 	let x: 😀 = 1
          | 	       ^
    "#]],
    );
    check(
        "f(); \u{2028}g(); \u{2029}\tlet '日本😀' = ]",
        expect![[r#"
        Syntax: script.ts:3:2: `let` cannot be used as an identifier in strict mode (and 1 more error)
        3 | 	let '日本😀' = ]
          | 	^
    "#]],
    );
    check(
        "\u{feff}let = 1",
        expect![[r#"
        Syntax: script.ts:1:1: `let` cannot be used as an identifier in strict mode
        1 | let = 1
          | ^
    "#]],
    );
    check(
        &format!(
            "let a = \"{}\"; let = 2; {}",
            "x".repeat(200),
            "y();".repeat(40)
        ),
        expect![[r#"
        Syntax: script.ts:1:213: `let` cannot be used as an identifier in strict mode
        1 | …xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; let = 2; y();y();y();y();y();y();y();y();y();y();y();y();y()…
          |                                                              ^
    "#]],
    );
    check(
        "let \u{1b}[31m = '\u{202e}'",
        expect![[r#"
        Syntax: script.ts:1:1: `let` cannot be used as an identifier in strict mode (and 1 more error)
        1 | let �[31m = '�'
          | ^
    "#]],
    );
}
