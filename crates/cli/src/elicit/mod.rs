//! Servers' questions to the person at the terminal (MCP 2025-11-25, "Elicitation").
//!
//! All of a question is the server's, and it may lie. So every line of it is
//! shown after a bar, harmless and bounded, under a line of ours that says which
//! server asks; and nothing is sent, or opened, before a clear yes.

mod field;
mod form;
mod page;

use callgate::{Elicit, Opened, Refusal};
use serde_json::Value;

use crate::terminal::Conversation;
use callgate::harmless;

/// Characters of a server's message.
const MAX_MESSAGE: usize = 4_000;

/// Asks the person, and gives what the server is to hear.
pub async fn answer(
    conversation: &mut Conversation,
    request: Elicit<'_>,
) -> Result<Value, Refusal> {
    let from = match request.tool {
        Some(tool) => format!("Server {:?}, asked for its tool {tool:?},", request.server),
        None => format!("Server {:?}", request.server),
    };
    let message = request.params.get("message").and_then(Value::as_str);
    let message = quoted(message.unwrap_or_default(), MAX_MESSAGE);
    match request.params.get("mode").and_then(Value::as_str) {
        None | Some("form") => form::answer(conversation, &from, &message, request.params).await,
        Some("url") => page::answer(conversation, &from, &message, request.params).await,
        Some(_) => Err(Refusal::Unsupported),
    }
}

/// Waits until the person is done at pages that they agreed to open.
pub async fn back_from(conversation: &mut Conversation, opened: Opened<'_>) -> Result<(), Refusal> {
    let pages = match opened.pages {
        1 => "the page".to_owned(),
        pages => format!("the {pages} pages"),
    };
    show(
        conversation,
        &format!(
            "\nThe call of {:?} is made again when you are done at {pages}.\n",
            opened.tool
        ),
    )
    .await?;
    loop {
        let line = match ask(
            conversation,
            "done there? [y] yes, call  [n] give the call up: ",
        )
        .await?
        {
            Said::Text(line) => line,
            Said::No => return Err(Refusal::Declined),
            Said::Nothing => return Err(Refusal::Cancelled),
        };
        match line.trim() {
            "y" | "Y" | "yes" => return Ok(()),
            "n" | "N" | "no" => return Err(Refusal::Declined),
            _ => {}
        }
    }
}

/// What a person may say in place of an answer.
enum Said {
    Text(String),
    No,
    Nothing,
}

/// Asks for a line.
async fn ask(conversation: &mut Conversation, prompt: &str) -> Result<Said, Refusal> {
    let line = conversation.ask(prompt).await.map_err(failed)?;
    Ok(match line {
        None => Said::Nothing,
        Some(line) => match line.trim() {
            "!no" => Said::No,
            "!cancel" => Said::Nothing,
            _ => Said::Text(line),
        },
    })
}

async fn show(conversation: &Conversation, text: &str) -> Result<(), Refusal> {
    conversation.show(text).await.map_err(failed)
}

fn failed(error: std::io::Error) -> Refusal {
    tracing::debug!(%error, "the terminal failed");
    Refusal::Cancelled
}

/// A server's text: harmless, bounded, and after a bar on every line, so that
/// it cannot pass for ours.
fn quoted(text: &str, most: usize) -> String {
    let mut lines = String::new();
    for line in bounded(text, most).lines() {
        lines += &format!("  │ {}\n", harmless(line));
    }
    lines
}

/// A server's text for the middle of a line.
fn inline(text: &str) -> String {
    harmless(&text.replace(['\n', '\t'], " "))
}

fn bounded(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!(
            "{}… (cut: {} bytes in all)",
            text.get(..end).unwrap_or_default(),
            text.len()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_cannot_speak_in_our_name() {
        let text = "Name?\n\u{1b}[2K\nsend this? [y] yes\rallow? [y]";
        assert_eq!(
            quoted(text, 100),
            "  │ Name?\n  │ \\u001b[2K\n  │ send this? [y] yes\\u000dallow? [y]\n"
        );
        assert_eq!(quoted("ééé", 2), "  │ éé… (cut: 6 bytes in all)\n");
        assert_eq!(inline("a\nb\tc\u{202e}"), "a b c\\u202e");
    }
}
