//! Random texts.

use callgate_script::{ScriptErrorKind, prepare};
use proptest::prelude::*;

use super::IN_PLACE;

fn tokens() -> impl Strategy<Value = String> {
    let tokens = "a¦ ¦b_c¦ ¦await¦ ¦async¦function¦return¦export¦default¦import¦type¦interface¦\
        enum¦namespace¦class¦extends¦constructor¦private¦let¦const¦if¦else¦for¦of¦as¦\
        satisfies¦new¦super¦arguments¦this¦yield¦declare¦abstract¦static¦get¦mcp¦\
        callTool¦(¦)¦[¦]¦{¦}¦<¦>¦=>¦=¦+¦-¦*¦/¦?¦:¦;¦,¦.¦?.¦!¦...¦`¦${¦'¦\"¦\n¦\r\n¦\
        \u{2028}¦//¦/*¦*/¦<!--¦-->¦```¦```ts¦\n```\n¦#!¦@¦#¦\\¦\u{feff}¦日¦😀¦0¦1n¦010¦\
        'x'¦{}¦()¦x: T¦<T>¦<T,>(x: T): T => x¦import.meta";
    let token = prop::sample::select(tokens.split('¦').collect::<Vec<_>>());
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn prepared_text_keeps_lines_and_hides_controls(text in prop_oneof![tokens(), any::<String>()]) {
        match prepare(&text) {
            Ok(prepared) => {
                // The code has the author's lines one line lower.
                if prepared.source_map.len() <= IN_PLACE {
                    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                    let author: Vec<&str> = text.split('\n').collect();
                    let code: Vec<&str> = prepared.code.split('\n').skip(1).collect();
                    prop_assert!(code.len() > author.len());
                    for (author, code) in author.iter().zip(&code) {
                        // A ";" may be put at the end of a line, "return()" around its value.
                        let width = |line: &str| line.trim_end().encode_utf16().count();
                        prop_assert!(width(code) <= width(author) + 9, "{author:?} {code:?}");
                    }
                }
            }
            Err(error) => {
                // Some texts break assertions of the parser. No script may leave the function
                // around it, which would be a different internal error.
                if error.kind() == ScriptErrorKind::Internal {
                    prop_assert_eq!(
                        error.message(),
                        "the parser failed on this script; write it in simpler pieces"
                    );
                }
                let has_escape = error.to_string().contains('\u{1b}');
                prop_assert!(!has_escape);
            }
        }
    }
}
