//! Choosing before a run which tools a script may call.

use callgate::{
    PreviewedTool,
    present::{Shown, change_text, harmless, quoted},
};

use crate::terminal::{Conversation, numbered};

/// Characters of a server's text about a tool.
const SHOWN: usize = 120;

/// Shows the tools with a number each, and asks for all, some or none. `granting` says what a
/// choice does. A terminal that is gone means none.
pub async fn choose(
    tools: &[PreviewedTool],
    granting: &str,
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
        format!("└ {granting}? [a] all of them  [1 2] those, by number  {whole}[n] none: ");
    let read = |said: &str| match said {
        "a" | "all" => Some(Some(tools.to_vec())),
        "n" | "no" | "none" => Some(Some(Vec::new())),
        "w" | "whole" => Some(None),
        numbers => numbered(numbers, tools).map(Some),
    };
    loop {
        match conversation.choose(&harmless(&prompt), keys, read).await? {
            None => return Ok(Vec::new()),
            Some(Some(chosen)) => return Ok(chosen),
            Some(None) => {
                let text = list(tools, Shown::Whole, conversation.columns());
                conversation.show(&text).await?;
            }
        }
    }
}

/// The tools with their numbers. As in a question about a call, servers' texts stand after a bar,
/// and a tool's changes are shown.
fn list(tools: &[PreviewedTool], shown: Shown, columns: Option<usize>) -> String {
    let max = match shown {
        Shown::Whole => usize::MAX,
        Shown::Short | Shown::Form => SHOWN,
    };
    let mut text = String::from("┌ The script names these tools, which would be asked about:\n");
    for (index, tool) in tools.iter().enumerate() {
        let PreviewedTool {
            function,
            server,
            line,
            because,
            ..
        } = tool;
        text += &format!(
            "├ {} {function} of server {server:?} (line {line}):\n",
            index + 1
        );
        let said = tool.title.iter().chain(&tool.summary);
        let said: Vec<String> = said
            .map(|said| said.chars().take(max).collect::<String>())
            .map(|said| said.replace(['\n', '\t'], " "))
            .collect();
        if !said.is_empty() {
            let said = format!("its server says {}", said.join("; "));
            text += &quoted(&said, columns);
        }
        text += &quoted(&because.replace('\n', " "), columns);
        if let Some(changed) = &tool.changed {
            text += &change_text(changed, shown, columns);
        }
    }
    harmless(&text)
}
