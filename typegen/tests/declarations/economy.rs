//! The tokens that declarations cost a model: the table of the documentation, measured on the 117
//! tools of a real server. `UPDATE_EXPECT=1` rewrites the table.

use callgate_typegen::Detail;
use expect_test::expect;
use serde_json::Value;

use crate::{corpus, declare};

#[test]
fn corpus_declarations_have_the_expected_cost() {
    let Some(tools) = corpus() else { return };
    let parts = ["name", "description", "inputSchema"];
    let listed = tools.iter().map(|tool| {
        let members = parts.map(|part| (part.to_owned(), tool[part].clone()));
        Value::Object(members.into_iter().collect())
    });
    let vocabulary = tiktoken_rs::o200k_base().unwrap();
    let mut table = format!("{:<14}{:>10}{:>10}\n", "", "characters", "tokens");
    let mut row = |label: &str, text: &str| {
        let (characters, tokens) = (text.chars().count(), vocabulary.encode_ordinary(text).len());
        table.push_str(&format!("{label:<14}{characters:>10}{tokens:>10}\n"));
    };
    row("compact JSON", &listed.collect::<Value>().to_string());
    let declarations = declare("github", &tools);
    for detail in Detail::ALL {
        row(detail.as_str(), &declarations.text(detail, |_| true));
    }
    expect![[r#"
                      characters    tokens
        compact JSON      113511     25103
        name                3180       647
        summary            10188      2032
        signature          23373      6332
        full               94467     21645
    "#]]
    .assert_eq(&table);
}
