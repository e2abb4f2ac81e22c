//! Questions of servers to the person at the terminal (MCP 2025-11-25, "Elicitation").
//!
//! A server's text may lie. It is escaped, cut, and shown after a bar on each row, under a row of
//! ours that names the server. Our rows begin with `┌`, `├` or `└`, as in a question about a call.
//! Nothing is sent or opened before the person agrees.
//!
//! The prompts are written by hand because prompt libraries read the terminal in raw mode in a
//! blocking call, which cannot be withdrawn when the server or the run ends.

mod form;
pub mod page;

use callgate::faces::{Opened, Refusal, Wanted};
use callgate_text::quoted;
use serde_json::Value;

use crate::terminal::Conversation;

/// Characters shown of a server's message.
const MAX_MESSAGE: usize = 4_000;

/// Asks the person, and returns the answer for the server.
pub async fn answer(request: Wanted<'_>) -> Result<Value, Refusal> {
    let conversation = &mut Conversation::begin().await.map_err(failed)?;
    let (server, params) = (request.server, request.params);
    let tool = request.tool;
    let tool = tool.map(|tool| format!("(while it works on {tool:?})\n"));
    let message = params.get("message").and_then(Value::as_str);
    let message = cut(message.unwrap_or_default(), MAX_MESSAGE);
    let message = format!("{}{message}", tool.unwrap_or_default());
    let message = quoted(&message, conversation.columns());
    match params.get("mode").and_then(Value::as_str) {
        None | Some("form") => form::answer(conversation, server, &message, params).await,
        Some("url") => page::answer(conversation, server, &message, params).await,
        Some(_) => Err(Refusal::Unsupported),
    }
}

/// Waits until the person has finished with the opened pages.
pub async fn back_from(opened: Opened<'_>) -> Result<(), Refusal> {
    let conversation = &mut Conversation::begin().await.map_err(failed)?;
    let pages = match opened.pages {
        1 => "the page".to_owned(),
        pages => format!("the {pages} pages"),
    };
    let tool = quoted(&format!("{:?}", opened.tool), conversation.columns());
    let text =
        format!("\n┌ This tool is called again when you have finished with {pages}:\n{tool}");
    show(conversation, &text).await?;
    let prompt = "└ finished? [y] yes, call it  [n] no, cancel the call: ";
    choose(conversation, prompt, &["y", "n"], |typed| {
        matches!(typed, "y" | "yes").then_some(())
    })
    .await
}

/// Asks for a line. `!no` declines; `!cancel` or the end of the terminal cancels.
async fn ask(conversation: &mut Conversation, prompt: &str) -> Result<String, Refusal> {
    let line = conversation.ask(prompt).await.map_err(failed)?;
    let line = line.ok_or(Refusal::Cancelled)?;
    match line.trim() {
        "!no" => Err(Refusal::Declined),
        "!cancel" => Err(Refusal::Cancelled),
        _ => Ok(line),
    }
}

async fn show(conversation: &mut Conversation, text: &str) -> Result<(), Refusal> {
    conversation.show(text).await.map_err(failed)
}

/// Asks until `read` accepts the answer. `n` declines, too.
async fn choose<T>(
    conversation: &mut Conversation,
    prompt: &str,
    keys: &[&str],
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, Refusal> {
    let read = |typed: &str| match typed {
        "n" | "no" | "!no" => Some(Err(Refusal::Declined)),
        "!cancel" => Some(Err(Refusal::Cancelled)),
        typed => read(typed).map(Ok),
    };
    let answer = conversation.choose(prompt, keys, read).await;
    answer.map_err(failed)?.unwrap_or(Err(Refusal::Cancelled))
}

fn failed(error: std::io::Error) -> Refusal {
    tracing::debug!(%error, "the terminal failed");
    Refusal::Cancelled
}

/// Cuts a text to `max` characters, and says so.
fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… (cut: {} bytes in all)", &text[..end], text.len()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_long_message_is_cut() {
        assert_eq!(super::cut("ééé", 2), "éé… (cut: 6 bytes in all)");
    }
}
