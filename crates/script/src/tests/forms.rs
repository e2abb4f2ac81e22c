//! The forms a script may have, and the code that comes of each.

use super::check;
use expect_test::expect;

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
        // ·end
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
            (async·()·=>·{"use·strict";·let·main;
            ;main=·········async·()·=>·{
            ··return·1
            }
            ;return·typeof·main·===·"function"·?·await·main()·:·main;
            })
        "#]],
    );
    check(
        "const a = 1\nexport default a + 1;",
        expect![[r#"
            DefaultExport
            (async·()·=>·{"use·strict";·let·main;
            const·a·=·1
            ;main=·········a·+·1;
            ;return·typeof·main·===·"function"·?·await·main()·:·main;
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
            (async·()·=>·{"use·strict";·let·main;
            ;main=·········function·()·{·return·1·};
            (1,·2)
            ;return·typeof·main·===·"function"·?·await·main()·:·main;
            })
        "#]],
    );
    check(
        "export /* default */ default // really\n  { a: 1 }",
        expect![[r#"
            DefaultExport
            (async·()·=>·{"use·strict";·let·main;
            ;main=·/*·default·*/·········//·really
            ··{·a:·1·}
            ;return·typeof·main·===·"function"·?·await·main()·:·main;
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
            (async·()·=>·{"use·strict";·let·main;·main·=
            async·()·=>·{
            ··await·a_b({})
            };
            ;return·typeof·main·===·"function"·?·await·main()·:·main;
            })
            names a_b at 2:9
        "#]],
    );
    check(
        "interface A { x: 1 }\n// why\n(async (a?: A) => 1)",
        expect![[r#"
            Function
            (async·()·=>·{"use·strict";·let·main;·main·=
            ····················
            // ·why
            (async·(a····)·=>·1)
            ;return·typeof·main·===·"function"·?·await·main()·:·main;
            })
        "#]],
    );
    check(
        "async function () {\n  return 1;\n};\n",
        expect![[r#"
            Function
            (async·()·=>·{"use·strict";·let·main;·main·=
            async·function·()·{
            ··return·1;
            };

            ;return·await·main();
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
            (async·()·=>·{"use·strict";·let·main;·main·=
            (async·()·=>·{·await·f()·})()
            ;return·typeof·main·===·"function"·?·await·main()·:·main;
            })
            names f at 1:22
        "#]],
    );
    check(
        "a_b({})",
        expect![[r#"
            Expression
            (async·()·=>·{"use·strict";·let·main;·main·=
            a_b({})
            ;return·typeof·main·===·"function"·?·await·main()·:·main;
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
            (async·()·=>·{"use·strict";·let·main;·main·=
            'text'
            ;return·typeof·main·===·"function"·?·await·main()·:·main;
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
fn what_cannot_be_blanked_is_transformed() {
    check(
        "enum Color { Red, Green = 'g' }\nreturn Color.Red",
        expect![[r#"
            Statements, printed anew
            (async·()=>{
            ····"use·strict";
            ····let·Color·=·/*#__PURE__*/·function(Color)·{
            ········Color[Color["Red"]·=·0]·=·"Red";
            ········Color["Green"]·=·"g";
            ········return·Color;
            ····}({});
            ····return·Color.Red;
            })
        "#]],
    );
    check(
        "namespace N { export const a = 1 }\nreturn N.a",
        expect![[r#"
            Statements, printed anew
            (async·()=>{
            ····"use·strict";
            ····(function(N)·{
            ········N.a·=·1;
            ····})(N·||·(N·=·{}));
            ····return·N.a;
            ····var·N;
            })
        "#]],
    );
    check(
        "class A { constructor(private x: number) {} }\nreturn new A(1)",
        expect![[r#"
            Statements, printed anew
            (async·()=>{
            ····"use·strict";
            ····class·A·{
            ········x;
            ········constructor(x){
            ············this.x·=·x;
            ········}
            ····}
            ····return·new·A(1);
            })
        "#]],
    );
    check(
        "return <any>x_y",
        expect![[r#"
            Statements, printed anew
            (async·()=>{
            ····"use·strict";
            ····return·x_y;
            })
            names x_y at 1:13
        "#]],
    );
    check(
        "export default async () => { const enum E { A }; return E.A }",
        expect![[r#"
            DefaultExport, printed anew
            (async·()=>{
            ····"use·strict";
            ····let·main;
            ····;
            ····main·=·async·()=>{
            ········;
            ········return·0;
            ····};
            ····return·typeof·main·===·"function"·?·await·main()·:·main;
            })
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
