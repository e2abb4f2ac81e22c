//! Texts that are too long or too deep.

use expect_test::{Expect, expect};

use super::check;
use crate::*;

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
        "a<b>",
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
        let bomb = unit.repeat(MAX_SCRIPT_BYTES / 4 / unit.len());
        assert!(prepare(&bomb).is_err(), "{unit}");
    }
    // On these, the parser's time grows with the square of their length.
    for unit in ["a:", "a<", "A<", "<a>"] {
        assert!(prepare(&unit.repeat(1_000)).is_err(), "{unit}");
    }
}

/// As deep as it may be, through every pass.
#[test]
fn deep_code_passes() {
    let check = |open: &str, close: &str, levels: usize| {
        let nested = format!("f({}1{})", open.repeat(levels), close.repeat(levels));
        for prefix in ["", "enum E { A }\n"] {
            if let Err(error) = prepare(&format!("{prefix}{nested}")) {
                assert_eq!(error.kind(), ScriptErrorKind::TooComplex, "{open}: {error}");
            }
            assert!(
                prepare(&format!(
                    "{prefix}f({}1{})",
                    open.repeat(90),
                    close.repeat(90)
                ))
                .is_ok()
            );
        }
    };
    check("(", ")", 995);
    check("[", "]", 995);
    check("- ", "", 995);
    check("a + ", "", 995);
    check("async () => ", "", 995);
    check("[{ a: ", "}]", 495);
    check("() => { if (1) { return ", "}}", 330);
    check("class { static a = ", "}", 330);
    check("function () { switch (1) { case 1: return ", "}}", 330);
    check("`${", "}`", 495);
    check("a ? b : ", "", 495);
    check("((a: A<B>): a is C => ", ")", 330);
    check("g(", ")", 995);
    check("<T,>(a: T) => ", "", 9);
}

#[test]
fn nested_type_assertions() {
    let nested = |levels: usize| format!("f({}1{})", "<T>[".repeat(levels), "]".repeat(levels));
    assert!(prepare(&nested(8)).is_ok());
    check(
        &nested(40),
        expect![[r#"
        TooComplex: script.ts:1:43: type assertions stand too deep inside each other; write "x as T" for "<T>x"
        1 | f(<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[<T>[…
          |                                           ^
    "#]],
    );
    // Neither comparisons, nor calls, nor text that looks like them.
    let many =
        "if (f(x) < y) { g<T>(h<T>([<T>(a: T) => a])) } s = '<T>[<T>['; /<T>[(]<T>/.test(s);\n";
    assert!(prepare(&many.repeat(50)).is_ok());
    check(
        &"`${/* ' */<a>[".repeat(20),
        expect![[r#"
        TooComplex: script.ts:1:151: type assertions stand too deep inside each other; write "x as T" for "<T>x"
        1 | …' */<a>[`${/* ' */<a>[`${/* ' */<a>[`${/* ' */<a>[`${/* ' */<a>[`${/* ' */<a>[`${/* ' */<a>[`${/* ' */<a>[`${/* ' */<a>[…
          |                                                              ^
    "#]],
    );
}

/// The end of what the parser is said not to be able to take.
#[track_caller]
fn too_complex(source: &str, message: &str) {
    let error = prepare(source).expect_err(source);
    assert_eq!(error.kind(), ScriptErrorKind::TooComplex, "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn nested_generic_async_functions() {
    let nested = |word: &str, levels: usize| {
        let open = format!("{word}(a=").repeat(levels);
        format!("f({open}1{})", ")".repeat(levels))
    };
    let words = [
        "async<T>",
        "async\u{a0}<T>",
        "async // \u{2028}<T>",
        "async<T, U>",
        "\\u0061sync<T>",
        "asyn\\u{63}<T>",
    ];
    for word in words {
        too_complex(&nested(word, 40), "generic async functions");
    }
    let many = "f(async <T,>(a: T) => a); g([async <T,>(a: T) => a, async <T,>(a: T) => a]);\n";
    assert!(prepare(&many.repeat(50)).is_ok());
}

#[test]
fn nested_constraints() {
    let nested = |open: &str, close: &str| {
        let (open, close) = (open.repeat(40), close.repeat(40));
        format!("type T = {open}a{close};\nreturn 1")
    };
    let bombs = [
        ("(infer U extends ", " ? b : c)"),
        ("Array<infer U extends ", " ? b : c>"),
        ("[1, infer\u{a0}U /* */ extends ", " ? b : c]"),
        ("infer infer extends () => ", " ? b : c"),
    ];
    for (open, close) in bombs {
        too_complex(&nested(open, close), "infer U extends V");
    }
    let many: String = (0..50)
        .map(|n| format!("type F{n}<T> = T extends [infer A extends string, 1] ? A : 0;\n"))
        .collect();
    assert!(prepare(&format!("{many}return 1")).is_ok());
}

/// Each level has the parser read twice what is in it: ten levels are let pass around
/// little, and fewer around more.
#[test]
fn what_doubles_the_time_to_parse_at_its_bounds() {
    let assertions = ("f(", "<T>[", "]", ")", "type assertions stand too deep");
    let functions = (
        "f(",
        "async<T>(a=",
        ")",
        ")",
        "generic async functions stand",
    );
    let constraints = (
        "type A = ",
        "(infer U extends ",
        " ? b : c)",
        ";\nreturn 1",
        "too many \"infer U extends V\"",
    );
    for (before, open, close, after, too_deep) in [assertions, functions, constraints] {
        let around = |levels: usize, bytes: usize| {
            let (open, close) = (open.repeat(levels), close.repeat(levels));
            let inner = format!("[{}1]", "1,".repeat(bytes / 2));
            format!("{before}{open}{inner}{close}{after}")
        };
        let passes = |levels, bytes| {
            if let Err(error) = prepare(&around(levels, bytes)) {
                panic!("{levels} {open:?} around {bytes} bytes: {error}");
            }
        };
        passes(10, 700);
        too_complex(&around(11, 0), too_deep);
        too_complex(&around(10, 1_100), "too much code stands inside nested");
        passes(4, 45_000);
        too_complex(&around(4, 66_000), "too much code stands inside nested");
    }
    // What has no end is read as often.
    for open in ["/", "'", "`", "/*"] {
        let unclosed = format!("f({}{open}{}", "<T>[".repeat(10), "a".repeat(1_100));
        too_complex(&unclosed, "too much code stands inside nested");
    }
    // What stands beside them is read once.
    let beside = "f(async<T>(a=async<T>(a=1)));\n";
    assert!(prepare(&beside.repeat(6_000)).is_ok());
}

#[test]
fn constants_that_double_are_refused() {
    let mut doubled = "enum E { A0 = 'xxxxxxxx'".to_owned();
    let mut constants = "const a0 = 'xxxxxxxx';".to_owned();
    for n in 1..60 {
        let before = n - 1;
        doubled.push_str(&format!(", A{n} = `${{A{before}}}${{A{before}}}`"));
        constants.push_str(&format!("const a{n} = a{before} + a{before};"));
    }
    let long = "y".repeat(100_000);
    let used = "f(E.A);".repeat(20_000);
    for script in [
        format!("{doubled} }}\nf(E)"),
        format!("{constants}\nenum E {{ B = a59 }}\nf(E)"),
        format!("const enum E {{ A = '{long}' }}\n{used}"),
    ] {
        let error = prepare(&script).unwrap_err();
        assert_eq!(error.kind(), ScriptErrorKind::TooComplex, "{error}");
        assert_eq!(
            error.message(),
            "the constants of the script become too long when they are worked out; build long \
             texts in a function"
        );
    }
    let some = "f(E.A);".repeat(1_000);
    assert!(
        prepare(&format!(
            "const enum E {{ A = 'short', B = A + A }}\n{some}"
        ))
        .is_ok()
    );
}
