//! Servers' questions to the person at the terminal (MCP 2025-11-25, "Elicitation").
//!
//! A server's text may lie. Each of its rows stands after a bar, harmless and bounded, under our
//! row that names the server (our rows begin with `┌`, `├` and `└`, as in a question about a
//! call). Nothing is sent or opened before a clear yes.

mod field;
mod form;
pub mod page;

use callgate::{
    Refusal,
    caller::{Opened, Wanted},
    present::{harmless, quoted},
};
use serde_json::Value;

use crate::terminal::Conversation;

/// Characters of a server's message.
const MAX_MESSAGE: usize = 4_000;

/// Asks the person, and returns the answer for the server.
pub async fn answer(request: Wanted<'_>) -> Result<Value, Refusal> {
    let conversation = &mut Conversation::begin().await.map_err(failed)?;
    let from = format!("Server {:?}", request.server);
    let columns = conversation.columns();
    let mut said = String::new();
    if let Some(tool) = request.tool {
        said += &quoted(&format!("(while it works on {tool:?})"), columns);
    }
    let message = request.params.get("message").and_then(Value::as_str);
    let message = field::bounded(message.unwrap_or_default(), MAX_MESSAGE);
    said += &quoted(&message, columns);
    match request.params.get("mode").and_then(Value::as_str) {
        None | Some("form") => form::answer(conversation, &from, &said, request.params).await,
        Some("url") => page::answer(conversation, &from, &said, request.params).await,
        Some(_) => Err(Refusal::Unsupported),
    }
}

/// Waits until the person is done at pages that the person opened.
pub async fn back_from(opened: Opened<'_>) -> Result<(), Refusal> {
    let conversation = &mut Conversation::begin().await.map_err(failed)?;
    let pages = match opened.pages {
        1 => "the page".to_owned(),
        pages => format!("the {pages} pages"),
    };
    let tool = quoted(&format!("{:?}", opened.tool), conversation.columns());
    let text = format!("\n┌ This tool is called again when you are done at {pages}:\n{tool}");
    show(conversation, &text).await?;
    let prompt = "└ done there? [y] yes, call  [n] give the call up: ";
    choose(conversation, prompt, &["y", "n"], |said| {
        matches!(said, "y" | "yes").then_some(())
    })
    .await
}

/// Asks for a line. `!no` declines, and `!cancel` or the end of the terminal cancels.
async fn ask(conversation: &mut Conversation, prompt: &str) -> Result<String, Refusal> {
    let line = conversation.ask(prompt).await.map_err(failed)?;
    let line = line.ok_or(Refusal::Cancelled)?;
    match line.trim() {
        "!no" => Err(Refusal::Declined),
        "!cancel" => Err(Refusal::Cancelled),
        _ => Ok(line),
    }
}

async fn show(conversation: &Conversation, text: &str) -> Result<(), Refusal> {
    conversation.show(text).await.map_err(failed)
}

/// Asks until `read` takes the answer. `n` declines, too.
async fn choose<T>(
    conversation: &mut Conversation,
    prompt: &str,
    keys: &[&str],
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, Refusal> {
    let read = |said: &str| match said {
        "n" | "no" | "!no" => Some(Err(Refusal::Declined)),
        "!cancel" => Some(Err(Refusal::Cancelled)),
        said => read(said).map(Ok),
    };
    let answer = conversation.choose(prompt, keys, read).await;
    answer.map_err(failed)?.unwrap_or(Err(Refusal::Cancelled))
}

fn failed(error: std::io::Error) -> Refusal {
    tracing::debug!(%error, "the terminal failed");
    Refusal::Cancelled
}

/// A server's text as one line.
fn inline(text: &str) -> String {
    harmless(&text.replace(['\n', '\t'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut() {
        assert_eq!(field::bounded("ééé", 2), "éé… (cut: 6 bytes in all)");
        assert_eq!(inline("a\nb\tc\u{202e}"), "a b c\\u202e");
    }
}
