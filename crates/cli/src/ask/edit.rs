//! Arguments of a call that the person changes in an editor.

use std::io::{self, Write as _};

use anyhow::{Context as _, ensure};
use callgate_text::{label, one_line, quoted};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::print;
use crate::terminal::Conversation;

/// Starts the editor at the terminal, because the standard streams may be files.
const START: &str = "exec ${VISUAL:-${EDITOR:-vi}} \"$1\" </dev/tty >/dev/tty 2>&1";
/// The limit of bytes of edited arguments.
const MAX_EDITED: u64 = 16 << 20;
/// Characters shown of a problem.
const SHOWN: usize = 300;

/// Lets the person change the arguments in an editor. `None` if they are not to be sent.
pub async fn edited(
    conversation: &mut Conversation,
    arguments: &str,
) -> io::Result<Option<String>> {
    let changed = changed(arguments).await;
    conversation.keep();
    let text = match changed {
        Ok(changed) => changed,
        Err(problem) => {
            let problem = label(&format!("{problem:#}"), SHOWN);
            conversation.show(&format!("├ {problem}\n")).await?;
            return Ok(None);
        }
    };
    let rows = quoted(&one_line(&text, usize::MAX), conversation.columns());
    conversation
        .show(&format!("├ the arguments instead:\n{rows}"))
        .await?;
    let agreed = conversation.agrees("send the call with them?").await?;
    Ok((agreed == Some(true)).then_some(text))
}

/// The arguments from the editor. The error: why the call is not made with them.
async fn changed(arguments: &str) -> anyhow::Result<String> {
    let mut file = tempfile::Builder::new().suffix(".json").tempfile()?;
    let before = print::in_lines(arguments).unwrap_or_else(|| arguments.to_owned());
    writeln!(file, "{before}")?;
    let mut command = Command::new("sh");
    command.args(["-c", START, "sh"]).arg(file.path());
    let mut editor = Editor(command.spawn()?);
    ensure!(editor.0.wait().await?.success(), "the editor failed");
    let text = callgate_files::read_text(file.path(), MAX_EDITED)?;
    let value: Value = serde_json::from_str(&text).context("not JSON")?;
    ensure!(value.is_object(), "the arguments must be an object");
    ensure!(text.trim() != before.trim(), "the arguments are unchanged");
    Ok(text.trim().to_owned())
}

/// An editor that is ended with its question. At this signal, editors restore the terminal.
struct Editor(Child);

impl Drop for Editor {
    fn drop(&mut self) {
        let id = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = id.and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}
