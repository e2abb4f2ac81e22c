//! The places in the author's text of the code that runs.

use super::author_place;
use crate::line_and_column;
use crate::prepare;

/// Each word `at_…` of the script that is in the code, too, is where the script has it.
#[track_caller]
fn check(source: &str) {
    let prepared = prepare(source).unwrap();
    let text = source.strip_prefix('\u{feff}').unwrap_or(source);
    let places = |text: &str| -> Vec<(String, (u32, u32))> {
        let words = text.match_indices("at_").map(|(at, _)| {
            let rest = &text[at..];
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let (line, column) = line_and_column(text, at);
            (rest[..end.unwrap_or(rest.len())].to_owned(), (line, column))
        });
        words.collect()
    };
    let author = places(text);
    let code = places(&prepared.code);
    assert!(
        !code.is_empty(),
        "no word is in the code:\n{}",
        prepared.code
    );
    for (word, place) in code {
        let found = author_place(&prepared.source_map, place.0, place.1);
        let is = author.iter().any(|(w, p)| *w == word && Some(*p) == found);
        assert!(
            is,
            "{word} at {place:?} is said to be at {found:?}, and is in {author:?}:\n{}",
            prepared.code
        );
    }
}

/// Syntax for which the whole script is reprinted.
const PRINTED: [&str; 5] = [
    "enum E { A, B = 'b' }",
    "namespace N { export const a = 1; export namespace M { export let b = a } }",
    "class P { constructor(private x: number, readonly y = 1) {} }",
    "const assertion = <number>1;",
    "",
];

#[test]
fn every_word_keeps_its_place() {
    let lines = [
        "const at_1 = at_2(at_3).at_4;",
        "function at_f(at_x: number): string { return at_x.at_y.at_z(at_1, `${at_t}`) }",
        "/* 日本😀 */\tclass at_C<T> extends at_D<T> { at_m = at_n; static at_s?: number = at_i; #p = at_p; get at_g(): T { return this.at_u! } async *at_h(this: T, at_v?: T) { yield* at_w } static { at_b() } }",
        "const { at_d, x: at_e = at_r, ...at_rest }: { at_d: number } = at_o as any as { at_d: number };",
        "at_await\n  .at_line(\t'😀' + at_col)\n;at_ps(`\n` + at_in_template)",
        "for (const at_k of at_l satisfies unknown) { if (at_q) continue; else throw new at_E(at_a?.[at_j]?.()) }",
        "switch (at_sw) { case at_c1: { break } default: at_tag`a${at_c2}b` }",
        "try { await at_try() } catch (at_err) { at_catch\n  (at_err) } finally { delete at_del.at_x }",
        "const at_arrow = async <T,>(at_a1: T, at_a2 = at_a3): Promise<T> => ({ at_a4, [at_a5]: at_a6, get at_a7() { return 1 }, at_a8() {} }) as T;",
        "label: for (let at_i1 = 0, at_i2; at_i1 < at_i2; at_i1++) { new (class at_cls { constructor(public pp: number) { at_super() } })(at_i1) }",
        "using at_using = at_u1; at_u2 ||= at_u3 ?? (at_u4, at_u5); return at_r1 ? at_r2 : !at_r3 && (-at_r4) ** 2",
    ];
    for printed in PRINTED {
        for line in lines {
            let returns = line.contains("return at_r1");
            check(&format!("at_0();{printed}\n{line}"));
            if !returns {
                check(&format!("{line}\n{printed};at_end()"));
            }
            check(&format!(
                "```ts\r\n at_0(); {printed}\r\n\t{line}\r\n```\r\n"
            ));
            check(&format!("\u{feff}// {printed}\rat_0();{printed}\r{line}"));
            check(&format!(
                "#!/bin/callgate\nat_0();{printed} /* a\nb */ {line}"
            ));
        }
    }
}

#[test]
fn every_form_keeps_its_places() {
    for printed in PRINTED {
        check(&format!(
            "export default async () => {{\n {printed}\n at_1() }}"
        ));
        check(&format!("{printed}\nexport default at_1(\nat_2)"));
        check(&format!(
            "{printed}\nexport default async function main() {{ at_1() }}"
        ));
        check(&format!("async () => {{ {printed}\n at_1() }}"));
        check(&format!("async function () {{ {printed}\n at_1() }}"));
        check(&format!(
            "// first\nasync function main() {{ {printed}\n at_1() }}"
        ));
        check(&format!("(async () => {{ {printed}\n at_1() }})()"));
    }
}

#[test]
fn generated_code_has_no_author_position() {
    for script in ["await a_b()\nf()", "enum E { A }\nawait a_b()\nf()"] {
        let prepared = prepare(script).unwrap();
        let (line, column) = line_and_column(&prepared.code, prepared.code.len() - 1);
        assert_eq!(
            author_place(&prepared.source_map, line, column),
            None,
            "{script}"
        );
        assert_eq!(author_place(&prepared.source_map, 1, 1), None, "{script}");
    }
    // V8 places a call of an undefined function where its statement begins.
    let prepared = prepare("// why\n  await a_b()").unwrap();
    let column = prepared.code.find("main =").unwrap() as u32 + 1;
    assert_eq!(author_place(&prepared.source_map, 1, column), Some((2, 3)));
}
