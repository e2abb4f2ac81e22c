//! Fences, first lines, and texts beside the code.

use super::check;
use expect_test::expect;

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
            (async·()·=>·{"use·strict";·let·main;
            ···
            ;main=·········1
            ···
            ;return·typeof·main·===·"function"·?·await·main()·:·main;
            })
        "#]],
    );
    check(
        "```typescript\r\nf();\r\ng()\r\n```\r\n",
        expect![[r#"
            Statements
            (async·()·=>·{"use·strict";
            ·············␍
            f();␍
            g()␍
            ···␍

            })
            names f at 2:1
            names g at 3:1
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
fn prose_that_happens_to_parse() {
    for prose in ["Sure!", "Here:", "// x", "run", "Sure!\nHere:"] {
        let error = crate::prepare(&format!("{prose}\n```ts\nreturn 5\n```")).expect_err(prose);
        assert_eq!(
            (error.line(), error.column(), error.message()),
            (
                Some(1),
                Some(1),
                "there is text before the code block; send the code alone"
            ),
            "{prose}"
        );
    }
    // A line of a text that looks like a fence.
    let text = "const markdown = String.raw`\n${'`'}``ts\n```;\nreturn markdown";
    assert!(crate::prepare(text).is_ok());
}
