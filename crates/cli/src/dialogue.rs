//! Questions of commands at the terminal, one after the other.

use anyhow::{Context as _, bail};
use callgate::present::harmless;

use crate::terminal::{self, Conversation};

/// A conversation in which questions of `init` and `trust` are asked.
pub struct Dialogue(Conversation);

impl Dialogue {
    /// `None` without a terminal, or if the answers are known.
    pub async fn begin(is_answered: bool) -> anyhow::Result<Option<Self>> {
        if is_answered || !terminal::is_attended() {
            return Ok(None);
        }
        let begun = Conversation::begin().await;
        Ok(Some(Self(begun.context("the terminal is gone")?)))
    }

    /// Shows a text, made harmless.
    pub async fn show(&self, text: &str) -> anyhow::Result<()> {
        Ok(self.0.show(&harmless(text)).await?)
    }

    /// Asks until `read` takes the answer.
    pub async fn ask<T>(
        &mut self,
        prompt: &str,
        keys: &[&str],
        read: impl Fn(&str) -> Option<T>,
    ) -> anyhow::Result<T> {
        let prompt = harmless(&format!("└ {prompt}: "));
        let answer = self.0.choose(&prompt, keys, read).await?;
        answer.context("the terminal is gone; nothing was written")
    }

    /// Asks for a yes or a no.
    pub async fn agrees(&mut self, question: &str) -> anyhow::Result<bool> {
        let prompt = format!("{question} [y] yes  [n] no");
        let read = |answer: &str| match answer {
            "y" | "yes" => Some(true),
            "n" | "no" => Some(false),
            _ => None,
        };
        self.ask(&prompt, &["y", "n"], read).await
    }

    /// Ends the command unless the person agrees.
    pub async fn agree_or_end(&mut self, question: &str) -> anyhow::Result<()> {
        if !self.agrees(question).await? {
            bail!("nothing was written");
        }
        Ok(())
    }
}
