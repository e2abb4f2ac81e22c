//! Questions of the commands `init` and `trust` at the terminal.

use anyhow::{Context as _, bail};
use callgate_text::harmless;

use crate::terminal::{self, Conversation};

const ENDED: &str = "the terminal has ended; nothing was written";

/// A conversation that escapes what it shows, and fails with the terminal.
pub struct Dialogue(Conversation);

impl Dialogue {
    /// Begins a conversation; `None` without a terminal, or if flags answer all questions.
    pub async fn begin(is_answered: bool) -> anyhow::Result<Option<Self>> {
        if is_answered || !terminal::is_attended() {
            return Ok(None);
        }
        let begun = Conversation::begin().await;
        Ok(Some(Self(begun.context("the terminal has ended")?)))
    }

    pub fn columns(&self) -> Option<usize> {
        self.0.columns()
    }

    pub async fn show(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(self.0.show(&harmless(text)).await?)
    }

    /// Asks until `read` accepts the answer.
    pub async fn ask<T>(
        &mut self,
        prompt: &str,
        keys: &[&str],
        read: impl Fn(&str) -> Option<T>,
    ) -> anyhow::Result<T> {
        let prompt = harmless(&format!("└ {prompt}: "));
        let answer = self.0.choose(&prompt, keys, read).await?;
        answer.context(ENDED)
    }

    /// Asks a question for yes or no.
    pub async fn agrees(&mut self, question: &str) -> anyhow::Result<bool> {
        let answer = self.0.agrees(&harmless(question)).await?;
        answer.context(ENDED)
    }

    /// Returns an error unless the person agrees.
    pub async fn agree_or_end(&mut self, question: &str) -> anyhow::Result<()> {
        if !self.agrees(question).await? {
            bail!("nothing was written");
        }
        Ok(())
    }
}
