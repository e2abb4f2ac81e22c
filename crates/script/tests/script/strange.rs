//! Texts that no author would write.

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
    fn any_text_is_prepared_without_panic(text in prop_oneof![tokens(), any::<String>()]) {
        match prepare(&text) {
            Ok(prepared) => {
                // The author's lines are where they are said to be.
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
                // The parser has assertions that some nonsense breaks; what
                // must not be is a script that leaves the function around it.
                if error.kind() == ScriptErrorKind::Internal {
                    prop_assert_eq!(
                        error.message(),
                        "the parser failed on this script; write it in simpler pieces"
                    );
                }
                let steers = error.to_string().contains('\u{1b}');
                prop_assert!(!steers);
            }
        }
    }
}
