//! Texts that are too long or too deep.

use callgate_script::{MAX_SCRIPT_BYTES, ScriptErrorKind, prepare};

#[test]
fn size_and_depth_limits_are_enforced() {
    let deep = "the code is nested more than 1000 deep; write it in simpler pieces";
    let long = "the script is over the limit of 262144 bytes; let it fetch its data with tools";
    for (source, kind, place, message) in [
        ("f();".repeat(70_000), ScriptErrorKind::TooLong, None, long),
        (
            format!("f({}1{})", "(".repeat(1_100), ")".repeat(1_100)),
            ScriptErrorKind::TooComplex,
            Some((1, 1001)),
            deep,
        ),
        (
            format!("f({}1)", "a+".repeat(1_100)),
            ScriptErrorKind::TooComplex,
            Some((1, 3)),
            deep,
        ),
    ] {
        let error = prepare(&source).expect_err("too much");
        let found = (
            error.kind(),
            error.line().zip(error.column()),
            error.message(),
        );
        assert_eq!(found, (kind, place, message));
    }
    assert!(prepare(&format!("f({}1)", "a+".repeat(900))).is_ok());
    assert!(prepare(&format!("f({}1{})", "(".repeat(450), ")".repeat(450))).is_ok());
    assert!(prepare(&"f();\n".repeat(50_000)).is_ok());
}

/// Each of these nests one construct as deep as the length of a script allows.
#[test]
fn nested_text_does_not_overflow_the_stack() {
    let units = "(¦[¦{¦!¦-¦a+¦a=>¦a=¦a?¦a?b:¦a**¦a,¦a.b¦a()¦a[¦new ¦if(1)¦if(1){}else ¦for(;;)¦\
        while(1)¦do ¦`${¦f(¦()=>{¦(a)=>¦async a=>¦async()=>{¦function f(){¦class A{[¦\
        class A extends ¦class A{static{¦a<b>¦let x:A<¦x as ¦x!¦x`¦...¦[...¦({a:¦({[¦\
        typeof ¦await ¦yield ¦void ¦delete ¦throw ¦return ¦switch(1){case 1:¦try{¦with(a)¦\
        type A=¦type A=[¦type A={a:¦type A=(¦type A=()=>¦type A=keyof ¦\
        type A=A extends B?¦namespace A{¦namespace A.¦enum A{a=¦interface A{a:¦import(¦\
        export default ¦@a ¦/¦/*¦\\¦'¦#¦a?.b¦a?.(¦\u{2028}¦<!--¦a satisfies ¦let[¦let{a:¦\
        (a:¦abstract class A{¦declare namespace A{¦a=>(¦let x:(¦let x:[¦let x:{a:¦\
        let x:()=>¦let x:new()=>¦let x:A|(¦let x:`${¦let x:keyof ¦let x:A[";
    for unit in units.split('¦') {
        let bomb = unit.repeat(MAX_SCRIPT_BYTES / 16 / unit.len());
        assert!(prepare(&bomb).is_err(), "{unit}");
    }
    // On these, the parser's time grows with the square of their length.
    for unit in ["a:", "a<", "A<", "<a>"] {
        assert!(prepare(&unit.repeat(1_000)).is_err(), "{unit}");
    }
}

/// Nesting near the limit, through every pass.
#[test]
fn deep_code_passes() {
    let check = |open: &str, close: &str, levels: usize| {
        let nested = format!("f({}1{})", open.repeat(levels), close.repeat(levels));
        let less = format!("f({}1{})", open.repeat(90), close.repeat(90));
        for prefix in ["", "enum E { A }\n"] {
            if let Err(error) = prepare(&format!("{prefix}{nested}")) {
                assert_eq!(error.kind(), ScriptErrorKind::TooComplex, "{open}: {error}");
            }
            assert!(prepare(&format!("{prefix}{less}")).is_ok());
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

/// The parser reads such syntax twice, and each nesting doubles the time. A script passes if it is
/// read in time; else its process is ended (`tests/reading.rs` of the worker).
#[test]
fn exponential_time_syntax_is_accepted_when_short() {
    for (before, open, close, after) in [
        ("f(", "<T>[", "]", ")"),
        ("f(", "async<T>(a=", ")", ")"),
        ("type A = ", "(infer U extends ", " ? b : c)", ";\nreturn 1"),
    ] {
        let (open, close) = (open.repeat(8), close.repeat(8));
        let script = format!("{before}{open}1{close}{after}");
        if let Err(error) = prepare(&script) {
            panic!("{script}: {error}");
        }
    }
}
