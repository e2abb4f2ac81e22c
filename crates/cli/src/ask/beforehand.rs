//! Approval of tools before a run.

use callgate::dry_run::PreviewedTool;
use callgate::faces::{Shown, change_text};
use callgate_text::{harmless, one_line, quoted, wrapped};

use super::layout::capped;
use crate::terminal::{Conversation, numbered};

/// Characters shown of a server's text about a tool.
const SHOWN: usize = 120;

/// Shows the tools with their numbers, and asks whether to allow all, some or none of them for the
/// `time`, such as `in this run`. The end of the terminal means none.
pub async fn choose(tools: &[PreviewedTool], time: &str) -> std::io::Result<Vec<PreviewedTool>> {
    let mut conversation = Conversation::begin().await?;
    let text = list(tools, Shown::Short, conversation.columns());
    conversation.begin_row().await?;
    conversation.show(&text).await?;
    let numbers = format!("numbers from 1 to {}", tools.len());
    let is_one = tools.len() == 1;
    let mut keys = if is_one {
        vec!["y", "n"]
    } else {
        vec!["all", numbers.as_str(), "n"]
    };
    let mut whole = "";
    if tools.iter().any(|tool| tool.changed.is_some()) {
        keys.insert(keys.len() - 1, "w");
        whole = "[w] show whole  ";
    }
    let prompt = if is_one {
        format!("└ allow it {time}? [y] yes  {whole}[n] no: ")
    } else {
        format!("└ allow them {time}? [all] of them  [1 2] those, by number  {whole}[n] none: ")
    };
    let read = |typed: &str| match typed {
        "w" | "whole" => Some(None),
        "y" | "yes" if is_one => Some(Some(tools.to_vec())),
        "all" => Some(Some(tools.to_vec())),
        "n" | "no" | "none" => Some(Some(Vec::new())),
        numbers => numbered(numbers, tools).map(Some),
    };
    let prompt = harmless(&prompt);
    while let Some(chosen) = conversation.choose(&prompt, &keys, read).await? {
        if let Some(chosen) = chosen {
            return Ok(chosen);
        }
        let columns = conversation.columns();
        let whole = capped(&list(tools, Shown::Whole, columns), columns);
        conversation.show(&whole).await?;
    }
    Ok(Vec::new())
}

/// The tools with their numbers. As in a question about a call, foreign text stands after a bar,
/// and changes of a tool's definition are shown.
fn list(tools: &[PreviewedTool], shown: Shown, columns: Option<usize>) -> String {
    let max = match shown {
        Shown::Whole => usize::MAX,
        Shown::Short | Shown::Form => SHOWN,
    };
    let heading = "┌ The script names these tools, which need approval:";
    let mut text = wrapped(&[heading], columns.unwrap_or(usize::MAX)) + "\n";
    for (index, tool) in tools.iter().enumerate() {
        let number = index + 1;
        let (function, server, line) = (&tool.function, &tool.server, tool.line);
        let named = format!("{function} of server {server:?} (line {line})");
        let heading = format!("{number} {named}:");
        // A name that is too long for the row must not begin the next one.
        text += &if quoted(&heading, columns).lines().count() > 1 {
            format!("├ {number}:\n{}", quoted(&named, columns))
        } else {
            format!("├ {heading}\n")
        };
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
