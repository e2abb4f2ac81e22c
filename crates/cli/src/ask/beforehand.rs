//! Approval of tools before a run.

use callgate::dry_run::PreviewedTool;
use callgate::faces::{Shown, change_text};
use callgate_text::{harmless, one_line, quoted};

use crate::terminal::{Conversation, numbered};

/// Characters shown of a server's text about a tool.
const SHOWN: usize = 120;

/// Shows the tools with their numbers, and asks whether to choose all, some or none. `question`
/// states the effect. The end of the terminal means none.
pub async fn choose(
    tools: &[PreviewedTool],
    question: &str,
) -> std::io::Result<Vec<PreviewedTool>> {
    let mut conversation = Conversation::begin().await?;
    let text = list(tools, Shown::Short, conversation.columns());
    conversation.show(&format!("\n{text}")).await?;
    let numbers = format!("numbers from 1 to {}", tools.len());
    let (whole, keys) = if tools.iter().any(|tool| tool.changed.is_some()) {
        ("[w] show whole  ", &["a", &numbers, "w", "n"][..])
    } else {
        ("", &["a", &numbers, "n"][..])
    };
    let prompt =
        format!("└ {question}? [a] all of them  [1 2] those, by number  {whole}[n] none: ");
    let read = |typed: &str| match typed {
        "a" | "all" => Some(tools.to_vec()),
        "n" | "no" | "none" => Some(Vec::new()),
        numbers => numbered(numbers, tools),
    };
    let prompt = harmless(&prompt);
    let whole = |columns| list(tools, Shown::Whole, columns);
    let chosen = conversation
        .choose_or_show(&prompt, keys, read, whole)
        .await?;
    Ok(chosen.unwrap_or_default())
}

/// The tools with their numbers. As in a question about a call, foreign text stands after a bar,
/// and changes of a tool's definition are shown.
fn list(tools: &[PreviewedTool], shown: Shown, columns: Option<usize>) -> String {
    let max = match shown {
        Shown::Whole => usize::MAX,
        Shown::Short | Shown::Form => SHOWN,
    };
    let mut text = String::from("┌ The script names these tools, which need approval:\n");
    for (index, tool) in tools.iter().enumerate() {
        text += &format!(
            "├ {} {} of server {:?} (line {}):\n",
            index + 1,
            tool.function,
            tool.server,
            tool.line
        );
        let words = tool.title.iter().chain(&tool.summary);
        let words: Vec<String> = words.map(|words| one_line(words, max)).collect();
        if !words.is_empty() {
            let words = format!("its server says {}", words.join("; "));
            text += &quoted(&words, columns);
        }
        text += &quoted(&one_line(&tool.because, usize::MAX), columns);
        if let Some(changed) = &tool.changed {
            text += &change_text(changed, shown, columns);
        }
    }
    harmless(&text)
}
