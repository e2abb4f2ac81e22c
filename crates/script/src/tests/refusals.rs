//! Tests of syntax that scripts cannot have.

use super::check;
use crate::{instead_of, prepare};
use expect_test::expect;

#[test]
fn what_scripts_cannot_have() {
    check(
        "import fs from 'fs'\nf()",
        expect![[r#"
        Unsupported: script.ts:1:1: imports are not available; call tools as global functions, such as server_tool(input)
        1 | import fs from 'fs'
          | ^
    "#]],
    );
    check(
        "import type { A } from './a'\nf()",
        expect![[r#"
        Unsupported: script.ts:1:1: imports are not available; the types of tools are global, use them by name
        1 | import type { A } from './a'
          | ^
    "#]],
    );
    check(
        "f();\nconst x = await import('fs')",
        expect![[r#"
        Unsupported: script.ts:2:17: imports are not available; call tools as global functions, such as server_tool(input)
        2 | const x = await import('fs')
          |                 ^
    "#]],
    );
    check(
        "import fs = require('fs')",
        expect![[r#"
        Unsupported: script.ts:1:1: imports are not available; call tools as global functions, such as server_tool(input)
        1 | import fs = require('fs')
          | ^
    "#]],
    );
    check(
        "export const x = 1",
        expect![[r#"
        Unsupported: script.ts:1:1: only "export default" is available; return the value, or drop "export"
        1 | export const x = 1
          | ^
    "#]],
    );
    check(
        "export { x }",
        expect![[r#"
        Unsupported: script.ts:1:1: only "export default" is available; return the value, or drop "export"
        1 | export { x }
          | ^
    "#]],
    );
    check(
        "export * from 'x'",
        expect![[r#"
            Unsupported: script.ts:1:1: imports are not available; call tools as global functions, such as server_tool(input)
            1 | export * from 'x'
              | ^
        "#]],
    );
    check(
        "let x: import('/etc/hosts').A;\nf(x)",
        expect![[r#"
            Unsupported: script.ts:1:8: imports are not available; the types of tools are global, use them by name
            1 | let x: import('/etc/hosts').A;
              |        ^
        "#]],
    );
    check(
        "type A = typeof import('fs');\nf()",
        expect![[r#"
            Unsupported: script.ts:1:17: imports are not available; the types of tools are global, use them by name
            1 | type A = typeof import('fs');
              |                 ^
        "#]],
    );
    check(
        "declare module 'fs' { export const x: 1 }\nf()",
        expect![[r#"
            Unsupported: script.ts:1:16: modules are not available; declare types without a module around them
            1 | declare module 'fs' { export const x: 1 }
              |                ^
        "#]],
    );
    check(
        "namespace N { import x = require('fs'); export * from 'y' }\nf()",
        expect![[r#"
            Unsupported: script.ts:1:26: imports are not available; call tools as global functions, such as server_tool(input)
            1 | namespace N { import x = require('fs'); export * from 'y' }
              |                          ^
        "#]],
    );
    check(
        "export type { A } from 'x'\nf()",
        expect![[r#"
            Unsupported: script.ts:1:1: imports are not available; call tools as global functions, such as server_tool(input)
            1 | export type { A } from 'x'
              | ^
        "#]],
    );
    check(
        "export = 1",
        expect![[r#"
        Unsupported: script.ts:1:1: only "export default" is available; return the value
        1 | export = 1
          | ^
    "#]],
    );
    check(
        "const fs = require('fs')",
        expect![[r#"
            Unsupported: script.ts:1:12: imports are not available; call tools as global functions, such as server_tool(input)
            1 | const fs = require('fs')
              |            ^
        "#]],
    );
    check(
        "function require(x) {}\nreturn require('fs')",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        function·require(x)·{}
        return·require('fs')
        })
    "#]],
    );
    check(
        "return import.meta.url",
        expect![[r#"
        Unsupported: script.ts:1:8: "import.meta" is not available: a script is not a module file
        1 | return import.meta.url
          |        ^
    "#]],
    );
    check(
        "f(() => arguments)",
        expect![[r#"
        Unsupported: script.ts:1:9: "arguments" is only available in a function
        1 | f(() => arguments)
          |         ^
    "#]],
    );
    check(
        "f(function () { return arguments }, { get x() { return arguments } })",
        expect![[r#"
            Expression
            (async·()·=>·{"use·strict";·let·main;·main·=
            f(function·()·{·return·arguments·},·{·get·x()·{·return·arguments·}·})
            ;return·typeof·main·===·"function"·?·await·main()·:·main;
            })
            names f at 1:1
            names arguments at 1:24
        "#]],
    );
    check(
        "function () { import('x') }",
        expect![[r#"
        Unsupported: script.ts:1:15: imports are not available; call tools as global functions, such as server_tool(input)
        1 | function () { import('x') }
          |               ^
    "#]],
    );
    check(
        "class A { static { return } }",
        expect![[r#"
        Unsupported: script.ts:1:20: "return" is not allowed here
        1 | class A { static { return } }
          |                    ^
    "#]],
    );
    check(
        "f(super.x)",
        expect![[r#"
        Syntax: script.ts:1:3: invalid access to super
        1 | f(super.x)
          |   ^
    "#]],
    );
    check(
        "f(new.target)",
        expect![[r#"
        Syntax: script.ts:1:3: 'new.target' is only allowed in the body of a function declaration, function expression, or class
        1 | f(new.target)
          |   ^
    "#]],
    );
    check(
        "@d class A {}",
        expect![[r#"
            Unsupported: script.ts:1:1: decorators are not available; call the function yourself
            1 | @d class A {}
              | ^
        "#]],
    );
    check(
        "class A { accessor x = 1 }",
        expect![[r#"
            Unsupported: script.ts:1:11: "accessor" is not available; write a field, or a getter and a setter
            1 | class A { accessor x = 1 }
              |           ^
        "#]],
    );
    check(
        "f(<div/>)",
        expect![[r#"
            Unsupported: script.ts:1:3: JSX is not available; build text with template literals
            1 | f(<div/>)
              |   ^
        "#]],
    );
}

#[test]
fn names_declared_twice() {
    check(
        "const a = 1;\nf(a);\nconst a = 2",
        expect![[r#"
        Syntax: script.ts:3:7: "a" is declared twice; rename one of them
        3 | const a = 2
          |       ^
    "#]],
    );
    check(
        "let { a, b: [c] } = x;\nclass c {}",
        expect![[r#"
        Syntax: script.ts:2:7: "c" is declared twice; rename one of them
        2 | class c {}
          |       ^
    "#]],
    );
    check(
        "function f(a, { a }) {}\ng()",
        expect![[r#"
        Syntax: script.ts:1:17: "a" is declared twice; rename one of them
        1 | function f(a, { a }) {}
          |                 ^
    "#]],
    );
    check(
        "g((a) => { let a })",
        expect![[r#"
        Syntax: script.ts:1:16: "a" is declared twice; rename one of them
        1 | g((a) => { let a })
          |                ^
    "#]],
    );
    check(
        "if (x) { function f() {} let f }",
        expect![[r#"
        Syntax: script.ts:1:30: "f" is declared twice; rename one of them
        1 | if (x) { function f() {} let f }
          |                              ^
    "#]],
    );
    let fine = "var a; var a; function g() {} function g() {} { let a } (b) => { var b }; class C {} interface C {}";
    assert!(prepare(fine).is_ok());
}

#[test]
fn nothing_ends_the_function_around_a_script() {
    check(
        "}); evil(); (async()=>{",
        expect![[r#"
        Syntax: script.ts:1:1: an expression is expected here
        1 | }); evil(); (async()=>{
          | ^
    "#]],
    );
    check(
        "}; evil(); {",
        expect![[r#"
        Syntax: script.ts:1:1: an expression is expected here
        1 | }; evil(); {
          | ^
    "#]],
    );
    check(
        "}",
        expect![[r#"
        Syntax: script.ts:1:1: an expression is expected here
        1 | }
          | ^
    "#]],
    );
    check(
        "f() // }",
        expect![[r#"
            Expression
            (async·()·=>·{"use·strict";·let·main;·main·=
            f()·//·}
            ;return·typeof·main·===·"function"·?·await·main()·:·main;
            })
            names f at 1:1
        "#]],
    );
    check(
        "f() /*",
        expect![[r#"
        Syntax: script.ts:1:7: unterminated block comment
        1 | f() /*
          |       ^
    "#]],
    );
    check(
        "function () {}); evil(); (function () {}",
        expect![[r#"
        Syntax: script.ts:1:10: a name is expected here
        1 | function () {}); evil(); (function () {}
          |          ^
    "#]],
    );
    check(
        "async function () {}\n)()",
        expect![[r#"
            Syntax: script.ts:1:16: a name is expected here
            1 | async function () {}
              |                ^
        "#]],
    );
}

#[test]
fn a_panic_of_the_parser_is_an_error() {
    check(
        "日<!--\n```\n",
        expect![[r#"
        Syntax: script.ts:1:2: "<!--" and "-->" start comments in old scripts; write "//", or put spaces between the characters
        1 | 日<!--
          |   ^
    "#]],
    );
}

#[test]
fn what_v8_does_not_run() {
    check(
        "@sealed class A {}\nf(A)",
        expect![[r#"
        Unsupported: script.ts:1:1: decorators are not available; call the function yourself
        1 | @sealed class A {}
          | ^
    "#]],
    );
    check(
        "class A {\n  @logged m() {}\n}\nreturn new A()",
        expect![[r#"
            Unsupported: script.ts:2:3: decorators are not available; call the function yourself
            2 |   @logged m() {}
              |   ^
        "#]],
    );
    check(
        "const a = <div>{ f() }</div>;\nreturn a",
        expect![[r#"
        Unsupported: script.ts:1:11: JSX is not available; build text with template literals
        1 | const a = <div>{ f() }</div>;
          |           ^
    "#]],
    );
    check(
        "return <></>",
        expect![[r#"
        Unsupported: script.ts:1:8: JSX is not available; build text with template literals
        1 | return <></>
          |        ^
    "#]],
    );
    // What is wrong besides is said as it is.
    check(
        "class A { @logged m() {} \nf(",
        expect![[r#"
        Syntax: script.ts:1:11: unexpected @; identifier, string literal, numeric literal or [ for the computed key is expected
        1 | class A { @logged m() {}
          |           ^
    "#]],
    );
}

#[test]
fn what_other_runtimes_have() {
    for name in ["fetch", "process", "Buffer", "__dirname", "eval", "window"] {
        let hint = instead_of(name).unwrap_or_default();
        assert!(!hint.is_empty(), "{name}");
    }
    for name in ["console", "URL", "a_b", "globalThis", ""] {
        assert_eq!(instead_of(name), None, "{name}");
    }
}
