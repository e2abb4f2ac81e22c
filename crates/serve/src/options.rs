//! Settings of serving.

use std::time::Duration;

use callgate::config::{ServeConfig, ToolMode};

/// Settings of serving.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServeOptions {
    /// Ask the client about calls that the rules do not decide, if the client can ask a person
    /// (`elicitation`); otherwise the gate's asker is asked. Default: true.
    pub asks: bool,
    /// The time that a question to the client waits for its answer. Default: 10 minutes. Without an
    /// answer a client of 2025-11-25 has not answered; a newer client's parked run is cancelled.
    pub answer_time: Duration,
    /// The time that `run_script` and `wait` wait before they answer that the run goes on. Default:
    /// 45 s, since clients commonly give up after 60.
    pub wait: Duration,
    /// The tools that a client sees if it does not choose. Default: [`ToolMode::Code`].
    pub mode: ToolMode,
    /// Size of the model's context, in tokens. Default: 200,000.
    pub context_window: u64,
    /// Share of the context that declarations in a description may take, above 0 and at most 1.
    /// Default: 0.02.
    pub context_share: f64,
    /// The time that a client without a session may keep the list of tools. Default: 5 minutes.
    pub tools_ttl: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            asks: true,
            answer_time: Duration::from_secs(600),
            wait: Duration::from_secs(45),
            mode: ToolMode::default(),
            context_window: 200_000,
            context_share: 0.02,
            tools_ttl: Duration::from_secs(300),
        }
    }
}

impl ServeOptions {
    /// The options with the settings of a configuration.
    #[must_use]
    pub fn config(mut self, config: &ServeConfig) -> Self {
        self.mode = config.mode.unwrap_or(self.mode);
        self.context_window = config.context.window.unwrap_or(self.context_window);
        self.context_share = config.context.share.unwrap_or(self.context_share);
        self.tools_ttl = config.tools_ttl.unwrap_or(self.tools_ttl);
        self.wait = config.wait.unwrap_or(self.wait);
        self.answer_time = config.answer_time.unwrap_or(self.answer_time);
        self
    }

    /// The most tokens of the declarations in a description.
    pub(crate) fn declared_tokens(&self) -> usize {
        let tokens = self.context_window as f64 * self.context_share.clamp(0.0, 1.0);
        tokens as usize
    }
}
