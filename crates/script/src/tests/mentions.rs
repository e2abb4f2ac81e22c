//! The tools a script names.

use super::check;
use expect_test::expect;

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
            names console at 4:23
            names undefined at 4:35
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
            calls a_b at 1:20
            calls c_d at 1:48
        "#]],
    );
    check(
        "await mcp.extract(mcp['extract'](1, 'x'), 'y'); mcp.json(1)",
        expect![[r#"
            Statements
            (async·()·=>·{"use·strict";
            await·mcp.extract(mcp['extract'](1,·'x'),·'y');·mcp.json(1)
            })
            names mcp.extract at 1:7
        "#]],
    );
    check(
        "await mcp.callTool(x, {})",
        expect![[r#"
            Expression
            (async·()·=>·{"use·strict";·let·main;·main·=
            await·mcp.callTool(x,·{})
            ;return·typeof·main·===·"function"·?·await·main()·:·main;
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
            (async·()·=>·{"use·strict";·let·main;·main·=
            globalThis[x](1)
            ;return·typeof·main·===·"function"·?·await·main()·:·main;
            })
            names x at 1:12
            may read all globals
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
fn names_on_the_global_object() {
    check(
        "(globalThis as any).a_b(1); globalThis!.c_d; (globalThis satisfies object)['e_f']; globalThis?.g_h()",
        expect![[r#"
            Statements
            (async·()·=>·{"use·strict";
            (globalThis·······).a_b(1);·globalThis·.c_d;·(globalThis·················)['e_f'];·globalThis?.g_h()
            })
            names a_b at 1:1
            names c_d at 1:29
            names e_f at 1:46
            names g_h at 1:84
        "#]],
    );
    check(
        "const { i_j: e, k_l = m_n, ['o_p']: p, 'q_r': q, mcp } = globalThis as any; e(mcp)",
        expect![[r#"
            Statements
            (async·()·=>·{"use·strict";
            const·{·i_j:·e,·k_l·=·m_n,·['o_p']:·p,·'q_r':·q,·mcp·}·=·globalThis·······;·e(mcp)
            })
            names i_j at 1:9
            names k_l at 1:17
            names m_n at 1:23
            names o_p at 1:29
            names q_r at 1:40
            names others at run time
        "#]],
    );
    check(
        "const { a_b, ...rest } = globalThis",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        const·{·a_b,·...rest·}·=·globalThis
        })
        names a_b at 1:9
        may read all globals
    "#]],
    );
    check(
        "const { [x]: y } = globalThis",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        const·{·[x]:·y·}·=·globalThis
        })
        names x at 1:10
        may read all globals
    "#]],
    );
    check(
        "let g_h; ({ a_b: g_h } = globalThis)",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        let·g_h;·({·a_b:·g_h·}·=·globalThis)
        })
        may read all globals
    "#]],
    );
    check(
        "const g = globalThis; g.a_b()",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        const·g·=·globalThis;·g.a_b()
        })
        may read all globals
    "#]],
    );
    check(
        "globalThis.globalThis.a_b(1)",
        expect![[r#"
        Expression
        (async·()·=>·{"use·strict";·let·main;·main·=
        globalThis.globalThis.a_b(1)
        ;return·typeof·main·===·"function"·?·await·main()·:·main;
        })
        may read all globals
    "#]],
    );
    check(
        "Object.keys(globalThis).length",
        expect![[r#"
        Expression
        (async·()·=>·{"use·strict";·let·main;·main·=
        Object.keys(globalThis).length
        ;return·typeof·main·===·"function"·?·await·main()·:·main;
        })
        names Object at 1:1
        may read all globals
    "#]],
    );
    check(
        "(mcp as any).callTool('a_b'); a_b()",
        expect![[r#"
        Statements
        (async·()·=>·{"use·strict";
        (mcp·······).callTool('a_b');·a_b()
        })
        calls a_b at 1:23
    "#]],
    );
}
