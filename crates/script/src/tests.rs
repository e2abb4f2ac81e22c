//! Scripts, and what is made of them or said about them.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

/// Prepares a script and renders what comes out.
#[track_caller]
fn check(source: &str, expected: Expect) {
    let mut out = String::new();
    match prepare(source) {
        Ok(prepared) => {
            let moved = if prepared.exact_positions {
                ""
            } else {
                ", positions moved"
            };
            writeln!(out, "{:?}{moved}", prepared.form).unwrap();
            // Dots, so that blanks at the end of a line can be seen.
            let code = prepared.code.replace(' ', "·").replace('\r', "␍");
            writeln!(out, "{code}").unwrap();
            for Mention { name, line, column } in &prepared.named.tools {
                writeln!(out, "names {name} at {line}:{column}").unwrap();
            }
            if prepared.named.dynamic {
                writeln!(out, "names others at run time").unwrap();
            }
        }
        Err(error) => writeln!(out, "{:?}: {error}", error.kind()).unwrap(),
    }
    expected.assert_eq(&out);
}

#[test]
fn statements() {
    check(
        "const logs: LogEntry[] = await logging_getLogs({ level: 'error' as const });\nreturn logs!.length;",
        expect![[r#"
            Statements
            (async·()·=>·{"use·strict";
            const·logs·············=·await·logging_getLogs({·level:·'error'··········});
            return·logs·.length;
            })
            names logging_getLogs at 1:32
        "#]],
    );
    check(
        "type A = number\ninterface B {}\nlet x = 1\ntype C = 2\n;[x].map(f)",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        ···············
        ··············
        let·x·=·1
        ;·········
        ·[x].map(f)
        })
        names f at 5:10
    "#]],
    );
    check(
        "if (x) return;\nfor await (const y of z()) {}\n// end",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        if·(x)·return;
        for·await·(const·y·of·z())·{}
        //·end
        })
        names x at 1:5
        names z at 2:23
    "#]],
    );
    check(
        "'use strict'\nconst x = <T,>(a: T): a is T => a\nx(1)",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        ············
        const·x·=·····(a···)·········=>·a
        x(1)
        })
    "#]],
    );
    check(
        "export {}\nexport type A = 1;\nf(1);\ng(2)",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        ·········
        ··················
        f(1);
        g(2)
        })
        names f at 3:1
        names g at 4:1
    "#]],
    );
    check(
        "declare global { var y: number }\nf(y as any);\ng`a`",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        ································
        f(y·······);
        g`a`
        })
        names f at 2:1
        names y at 2:3
        names g at 3:1
    "#]],
    );
    check(
        "await using x = f();\nlabel: for (;;) break label",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        await·using·x·=·f();
        label:·for·(;;)·break·label
        })
        names f at 1:17
    "#]],
    );
}

#[test]
fn default_exports() {
    check(
        "export default async () => {\n  return 1\n}",
        expect![[r#"
        DefaultExport
        (async·()·=>·{"use·strict";·let·$0;
        ;$0=···········async·()·=>·{
        ··return·1
        }
        ;return·typeof·$0·===·"function"·?·await·$0()·:·$0;
        })
    "#]],
    );
    check(
        "const a = 1\nexport default a + 1;",
        expect![[r#"
        DefaultExport
        (async·()·=>·{"use·strict";·let·$0;
        const·a·=·1
        ;$0=···········a·+·1;
        ;return·typeof·$0·===·"function"·?·await·$0()·:·$0;
        })
    "#]],
    );
    check(
        "export default async function main(): Promise<void> { await f() }\n(1, 2)",
        expect![[r#"
        DefaultExport
        (async·()·=>·{"use·strict";
        ···············async·function·main()················{·await·f()·}
        (1,·2)
        ;return·await·main();
        })
        names f at 1:61
    "#]],
    );
    check(
        "export default function () { return 1 }\n(1, 2)",
        expect![[r#"
        DefaultExport
        (async·()·=>·{"use·strict";·let·$0;
        ;$0=···········function·()·{·return·1·};
        (1,·2)
        ;return·typeof·$0·===·"function"·?·await·$0()·:·$0;
        })
    "#]],
    );
    check(
        "export /* default */ default // really\n  { a: 1 }",
        expect![[r#"
        DefaultExport
        (async·()·=>·{"use·strict";·let·$0;
        ;$0=···/*·default·*/·········//·really
        ··{·a:·1·}
        ;return·typeof·$0·===·"function"·?·await·$0()·:·$0;
        })
    "#]],
    );
    check(
        "export default class {}",
        expect![[r#"
        Unsupported: script.ts:1:16: a class cannot be the default export; export a function or a value
        1 | export default class {}
          |                ^
    "#]],
    );
    check(
        "export default interface A {}",
        expect![[r#"
        Unsupported: script.ts:1:16: an interface cannot be the default export; export a function or a value
        1 | export default interface A {}
          |                ^
    "#]],
    );
    check(
        "export default 1; export default 2",
        expect![[r#"
        Syntax: script.ts:1:19: there is a second "export default"; keep one
        1 | export default 1; export default 2
          |                   ^
    "#]],
    );
}

#[test]
fn one_function_or_expression() {
    check(
        "async () => {\n  await a_b({})\n};",
        expect![[r#"
        Function
        (async·()·=>·{"use·strict";·let·$0;·$0·=
        async·()·=>·{
        ··await·a_b({})
        };
        ;return·typeof·$0·===·"function"·?·await·$0()·:·$0;
        })
        names a_b at 2:9
    "#]],
    );
    check(
        "interface A { x: 1 }\n// why\n(async (a?: A) => 1)",
        expect![[r#"
        Function
        (async·()·=>·{"use·strict";·let·$0;·$0·=
        ····················
        //·why
        (async·(a····)·=>·1)
        ;return·typeof·$0·===·"function"·?·await·$0()·:·$0;
        })
    "#]],
    );
    check(
        "async function () {\n  return 1;\n};\n",
        expect![[r#"
        Function
        (async·()·=>·{"use·strict";·let·$0;·$0·=
        async·function·()·{
        ··return·1;
        };

        ;return·await·$0();
        })
    "#]],
    );
    check(
        "async function main() { return 1 }",
        expect![[r#"
        Function
        (async·()·=>·{"use·strict";
        async·function·main()·{·return·1·}
        ;return·await·main();
        })
    "#]],
    );
    check(
        "(async () => { await f() })()",
        expect![[r#"
        Expression
        (async·()·=>·{"use·strict";·let·$0;·$0·=
        (async·()·=>·{·await·f()·})()
        ;return·typeof·$0·===·"function"·?·await·$0()·:·$0;
        })
        names f at 1:22
    "#]],
    );
    check(
        "a_b({})",
        expect![[r#"
        Expression
        (async·()·=>·{"use·strict";·let·$0;·$0·=
        a_b({})
        ;return·typeof·$0·===·"function"·?·await·$0()·:·$0;
        })
        names a_b at 1:1
    "#]],
    );
    check(
        "a_b({}), 1",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        a_b({}),·1
        })
        names a_b at 1:1
    "#]],
    );
    check(
        "'text'",
        expect![[r#"
        Expression
        (async·()·=>·{"use·strict";·let·$0;·$0·=
        'text'
        ;return·typeof·$0·===·"function"·?·await·$0()·:·$0;
        })
    "#]],
    );
    check(
        "function* f() {}",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        function*·f()·{}
        })
    "#]],
    );
}

#[test]
fn fences_and_first_lines() {
    check(
        "\n```ts\nconst x: 1 = 1;\n```\n\n",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";

        ·····
        const·x····=·1;
        ···


        })
    "#]],
    );
    check(
        "```\nexport default 1\n```",
        expect![[r#"
        DefaultExport
        (async·()·=>·{"use·strict";·let·$0;
        ···
        ;$0=···········1
        ···
        ;return·typeof·$0·===·"function"·?·await·$0()·:·$0;
        })
    "#]],
    );
    check(
        "```typescript\r\nf(`\r\n```\r\n`);\r\ng()\r\n```",
        expect![[r#"
        Unsupported: script.ts:3:1: there is more than one code block; send one
        3 | ```
          | ^
    "#]],
    );
    check(
        "Here it is:\n```ts\nf()\n```",
        expect![[r#"
        Unsupported: script.ts:1:1: there is text before the code block; send the code alone
        1 | Here it is:
          | ^
    "#]],
    );
    check(
        "```ts\nf()\n```\nIt calls f.",
        expect![[r#"
        Unsupported: script.ts:4:1: there is text after the code block; send the code alone
        4 | It calls f.
          | ^
    "#]],
    );
    check(
        "```ts\nf()\n",
        expect![[r#"
        Syntax: script.ts:1:1: the code block is not closed; end it with a line "```"
        1 | ```ts
          | ^
    "#]],
    );
    check(
        "```python\nf()\n```",
        expect![[r#"
        Unsupported: script.ts:1:1: the code block is marked "python"; send TypeScript or JavaScript
        1 | ```python
          | ^
    "#]],
    );
    check(
        "```ts\nf()\n```\n\n```ts\ng()\n```",
        expect![[r#"
        Unsupported: script.ts:5:1: there is more than one code block; send one
        5 | ```ts
          | ^
    "#]],
    );
    check(
        "const doc = `\n```ts\n`;f(doc)\n`\n`",
        expect![[r#"
        Unsupported: script.ts:1:1: there is text before the code block; send the code alone
        1 | const doc = `
          | ^
    "#]],
    );
    check(
        "\u{feff}#!/usr/bin/env callgate\nf(); g()",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        ·······················
        f();·g()
        })
        names f at 2:1
        names g at 2:6
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

#[test]
fn what_cannot_be_blanked_is_transformed() {
    check(
        "enum Color { Red, Green = 'g' }\nreturn Color.Red",
        expect![[r#"
        Statements, positions moved
        async·()=>{
        ····"use·strict";
        ····let·Color·=·/*#__PURE__*/·function(Color)·{
        ········Color[Color["Red"]·=·0]·=·"Red";
        ········Color["Green"]·=·"g";
        ········return·Color;
        ····}({});
        ····return·0;
        }
    "#]],
    );
    check(
        "namespace N { export const a = 1 }\nreturn N.a",
        expect![[r#"
        Statements, positions moved
        async·()=>{
        ····"use·strict";
        ····(function(N)·{
        ········N.a·=·1;
        ····})(N·||·(N·=·{}));
        ····return·N.a;
        ····var·N;
        }
    "#]],
    );
    check(
        "class A { constructor(private x: number) {} }\nreturn new A(1)",
        expect![[r#"
        Statements, positions moved
        async·()=>{
        ····"use·strict";
        ····class·A·{
        ········x;
        ········constructor(x){
        ············this.x·=·x;
        ········}
        ····}
        ····return·new·A(1);
        }
    "#]],
    );
    check(
        "return <any>x_y",
        expect![[r#"
        Statements, positions moved
        async·()=>{
        ····"use·strict";
        ····return·x_y;
        }
        names x_y at 1:13
    "#]],
    );
    check(
        "export default async () => { const enum E { A }; return E.A }",
        expect![[r#"
        DefaultExport, positions moved
        async·()=>{
        ····"use·strict";
        ····let·$0;
        ····;
        ····$0·=·async·()=>{
        ········;
        ········return·0;
        ····};
        ····return·typeof·$0·===·"function"·?·await·$0()·:·$0;
        }
    "#]],
    );
}

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
        Unsupported: script.ts:1:1: only "export default" is available; return the value
        1 | export * from 'x'
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
        Statements
        (async·()·=>·{"use·strict";
        const·fs·=·require('fs')
        })
        names require at 1:12
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
        (async·()·=>·{"use·strict";·let·$0;·$0·=
        f(function·()·{·return·arguments·},·{·get·x()·{·return·arguments·}·})
        ;return·typeof·$0·===·"function"·?·await·$0()·:·$0;
        })
        names f at 1:1
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
        Syntax: script.ts:1:1: an expression is expected here
        1 | @d class A {}
          | ^
    "#]],
    );
    check(
        "class A { accessor x = 1 }",
        expect![[r#"
        Syntax: script.ts:1:20: unexpected token `ident`. Expected * for generator, private key, identifier or async
        1 | class A { accessor x = 1 }
          |                    ^
    "#]],
    );
    check(
        "f(<div/>)",
        expect![[r#"
        Syntax: script.ts:1:7: an expression is expected here (and 2 more errors)
        1 | f(<div/>)
          |       ^
    "#]],
    );
}

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
        Syntax: script.ts:2:4: the script ends here, and ',' is missing
        2 |   2
          |    ^
    "#]],
    );
    check(
        "if (x) {\n  f()\n",
        expect![[r#"
        Syntax: script.ts:3:1: the script ends here, and '}' is missing
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
        Syntax: script.ts:1:8: legacy octal literals are not available when targeting ECMAScript 5 and higher
        1 | return 010
          |        ^
    "#]],
    );
    check(
        "function f(a, a) {}\nf()",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        function·f(a,·a)·{}
        f()
        })
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
        Syntax: script.ts:1:27: unexpected token `=`. Expected yield, an identifier, [ or {
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
        Syntax: script.ts:1:1: A 'break' statement can only be used within an enclosing iteration or switch statement
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
        (async·()·=>·{"use·strict";·let·$0;·$0·=
        f()·//·}
        ;return·typeof·$0·===·"function"·?·await·$0()·:·$0;
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
        Syntax: script.ts:2:4: an expression is expected here
        2 | )()
          |    ^
    "#]],
    );
}

#[test]
fn texts_without_code() {
    check(
        "",
        expect![[r#"
        Empty: script.ts: there is no code in the script; write statements that call tools
    "#]],
    );
    check(
        "// later\n",
        expect![[r#"
        Empty: script.ts: there is no code in the script; write statements that call tools
    "#]],
    );
    check(
        "type A = 1",
        expect![[r#"
        Empty: script.ts: there is no code in the script; write statements that call tools
    "#]],
    );
    check(
        "```ts\n```",
        expect![[r#"
        Empty: script.ts: there is no code in the script; write statements that call tools
    "#]],
    );
}

#[test]
fn names() {
    check(
        "const { a_b } = x_y;\nfunction c_d() { return e_f(a_b, c_d) }\n{ let g_h = 1; g_h }\ng_h({ i_j, k: l_m }); console.log(undefined, typeof n_o)",
        expect![[r#"
            Statements
            (async·()·=>·{"use·strict";
            const·{·a_b·}·=·x_y;
            function·c_d()·{·return·e_f(a_b,·c_d)·}
            {·let·g_h·=·1;·g_h·}
            g_h({·i_j,·k:·l_m·});·console.log(undefined,·typeof·n_o)
            })
            names x_y at 1:17
            names e_f at 2:25
            names g_h at 4:1
            names i_j at 4:7
            names l_m at 4:15
            names n_o at 4:53
        "#]],
    );
    check(
        "let x: p_q = r_s as typeof t_u; const y = (v_w) => v_w; x_y<z_z>(1)",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        let·x······=·r_s··············;·const·y·=·(v_w)·=>·v_w;·x_y·····(1)
        })
        names r_s at 1:14
        names x_y at 1:57
    "#]],
    );
    check(
        "await mcp.callTool('a_b', {}); mcp['callTool'](`c_d`); mcp.emit(1)",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        await·mcp.callTool('a_b',·{});·mcp['callTool'](`c_d`);·mcp.emit(1)
        })
        names a_b at 1:20
        names c_d at 1:48
    "#]],
    );
    check(
        "await mcp.callTool(x, {})",
        expect![[r#"
        Expression
        (async·()·=>·{"use·strict";·let·$0;·$0·=
        await·mcp.callTool(x,·{})
        ;return·typeof·$0·===·"function"·?·await·$0()·:·$0;
        })
        names x at 1:20
        names others at run time
    "#]],
    );
    check(
        "const { callTool } = mcp",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        const·{·callTool·}·=·mcp
        })
        names others at run time
    "#]],
    );
    check(
        "const call = mcp.callTool; call('a_b')",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        const·call·=·mcp.callTool;·call('a_b')
        })
        names others at run time
    "#]],
    );
    check(
        "globalThis.a_b({}); globalThis['c_d']({})",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        globalThis.a_b({});·globalThis['c_d']({})
        })
        names a_b at 1:1
        names c_d at 1:21
    "#]],
    );
    check(
        "globalThis[x](1)",
        expect![[r#"
        Expression
        (async·()·=>·{"use·strict";·let·$0;·$0·=
        globalThis[x](1)
        ;return·typeof·$0·===·"function"·?·await·$0()·:·$0;
        })
        names x at 1:12
        names others at run time
    "#]],
    );
    check(
        "f(mcp); { let mcp = 1; f(mcp) }",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        f(mcp);·{·let·mcp·=·1;·f(mcp)·}
        })
        names f at 1:1
        names others at run time
    "#]],
    );
    check(
        "logging_getLogs({}); logging_getLogs({}); try { x } catch (e_e) { e_e }",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        logging_getLogs({});·logging_getLogs({});·try·{·x·}·catch·(e_e)·{·e_e·}
        })
        names logging_getLogs at 1:1
        names x at 1:49
    "#]],
    );
}

#[test]
fn limits() {
    let check = |source: String, expected: Expect| {
        let error = prepare(&source).expect_err("too much");
        let place = error.line().zip(error.column());
        expected.assert_eq(&format!("{:?} {place:?} {}", error.kind(), error.message()));
    };
    check(
        "f();".repeat(70_000),
        expect![
            "TooLong None the script has 280000 bytes, and 262144 is the limit; let it fetch its data with tools"
        ],
    );
    check(
        format!("f({}1{})", "(".repeat(1_100), ")".repeat(1_100)),
        expect![
            "TooComplex Some((1, 1001)) the code is nested more than 1000 deep; write it in simpler pieces"
        ],
    );
    check(
        format!("f({}1)", "a+".repeat(1_100)),
        expect![
            "TooComplex Some((1, 3)) the code is nested more than 1000 deep; write it in simpler pieces"
        ],
    );
    assert!(prepare(&format!("f({}1)", "a+".repeat(900))).is_ok());
    assert!(prepare(&format!("f({}1{})", "(".repeat(450), ")".repeat(450))).is_ok());
    assert!(prepare(&"f();\n".repeat(50_000)).is_ok());
}

/// Each of these nests something in itself as often as a script is long. The
/// point is that the process is still there afterwards.
#[test]
fn no_text_uses_up_the_stack() {
    for unit in [
        "(",
        "[",
        "{",
        "!",
        "-",
        "a+",
        "a=>",
        "a=",
        "a?",
        "a?b:",
        "a**",
        "a,",
        "a.b",
        "a()",
        "a[",
        "new ",
        "if(1)",
        "if(1){}else ",
        "for(;;)",
        "while(1)",
        "do ",
        "a:",
        "`${",
        "f(",
        "()=>{",
        "(a)=>",
        "async a=>",
        "async()=>{",
        "function f(){",
        "class A{[",
        "class A extends ",
        "class A{static{",
        "a<",
        "a<b>",
        "A<",
        "let x:A<",
        "x as ",
        "x!",
        "x`",
        "...",
        "[...",
        "({a:",
        "({[",
        "typeof ",
        "await ",
        "yield ",
        "void ",
        "delete ",
        "throw ",
        "return ",
        "switch(1){case 1:",
        "try{",
        "with(a)",
        "type A=",
        "type A=[",
        "type A={a:",
        "type A=(",
        "type A=()=>",
        "type A=keyof ",
        "type A=A extends B?",
        "namespace A{",
        "namespace A.",
        "enum A{a=",
        "interface A{a:",
        "import(",
        "export default ",
        "@a ",
        "/",
        "/*",
        "\\",
        "'",
        "#",
        "a?.b",
        "a?.(",
        "\u{2028}",
        "<a>",
        "<!--",
        "a satisfies ",
        "let[",
        "let{a:",
        "(a:",
        "abstract class A{",
        "declare namespace A{",
        "a=>(",
        "let x:(",
        "let x:[",
        "let x:{a:",
        "let x:()=>",
        "let x:new()=>",
        "let x:A|(",
        "let x:`${",
        "let x:keyof ",
        "let x:A[",
    ] {
        let bomb = unit.repeat(MAX_BYTES / unit.len());
        assert!(prepare(&bomb).is_err(), "{unit}");
    }
}

fn tokens() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "a",
        "b_c",
        "await",
        "async",
        "function",
        "return",
        "export",
        "default",
        "import",
        "type",
        "interface",
        "enum",
        "namespace",
        "class",
        "extends",
        "constructor",
        "private",
        "let",
        "const",
        "if",
        "else",
        "for",
        "of",
        "as",
        "satisfies",
        "new",
        "super",
        "arguments",
        "this",
        "yield",
        "declare",
        "abstract",
        "static",
        "get",
        "mcp",
        "callTool",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "=>",
        "=",
        "+",
        "-",
        "*",
        "/",
        "?",
        ":",
        ";",
        ",",
        ".",
        "?.",
        "!",
        "...",
        "`",
        "${",
        "'",
        "\"",
        "\n",
        "\r\n",
        "\u{2028}",
        "//",
        "/*",
        "*/",
        "<!--",
        "-->",
        "```",
        "```ts",
        "\n```\n",
        "#!",
        "@",
        "#",
        "\\",
        "\u{feff}",
        "日",
        "😀",
        "0",
        "1n",
        "010",
        " ",
        " ",
        " ",
        "'x'",
        "{}",
        "()",
        "x: T",
        "<T>",
        "<T,>(x: T): T => x",
        "import.meta",
    ]);
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_is_too_strange(text in prop_oneof![tokens(), any::<String>()]) {
        match prepare(&text) {
            Ok(prepared) => {
                // The author's lines are where they are said to be.
                if prepared.exact_positions {
                    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                    let author: Vec<&str> = text.split('\n').collect();
                    let code: Vec<&str> = prepared.code.split('\n').skip(1).collect();
                    prop_assert!(code.len() > author.len());
                    for (author, code) in author.iter().zip(&code) {
                        // A ";" may be put at the end of a line.
                        let width = |line: &str| line.trim_end().encode_utf16().count();
                        prop_assert!(width(code) <= width(author) + 1, "{author:?} {code:?}");
                    }
                }
            }
            Err(error) => {
                prop_assert_ne!(error.kind(), ScriptErrorKind::Internal, "{}", error);
                let steers = error.to_string().contains('\u{1b}');
                prop_assert!(!steers);
            }
        }
    }
}
