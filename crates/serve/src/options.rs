//! How scripts are served.

use std::time::Duration;

use callgate::config::{ServeConfig, ToolMode};

/// How scripts are served. Begins with the default.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServeOptions {
    /// Whether the client is asked about calls that the rules do not decide, if
    /// it can ask a person (`elicitation`). Default: yes. Without, the gate's
    /// own asker is.
    pub asks: bool,
    /// How long a question to the client waits for its answer. Default: 10
    /// minutes. A client of 2025-11-25 and before that takes longer has not
    /// answered; with a newer one the parked run ends as cancelled.
    pub answer_time: Duration,
    /// Runs that may be parked at a time, each of which has a process. Default:
    /// 16. With so many parked, the questions of a further one have nobody to
    /// answer them.
    pub parked_runs: usize,
    /// How long a call of `run_script` or `wait` waits for its run, unless it
    /// says otherwise, before it is answered that the run goes on. Default: 45 s,
    /// since clients commonly give up after 60.
    pub wait: Duration,
    /// Runs that may be under way at a time, parked ones and those that were left
    /// among them, each of which has a process. Default: 64. A further one is
    /// refused.
    pub runs: usize,
    /// How long a run can still be asked for when it has ended, if it was left, its
    /// output was cut, or what it asked went away while its client was to come again.
    /// Default: 10 minutes.
    pub kept_time: Duration,
    /// Bytes of a run's output, and of its returned value, each, that are kept in
    /// whole where they are cut in its report. Default: 8 MiB. Of more, the
    /// beginning and the end are kept.
    pub whole_output: u64,
    /// How many such runs are kept. Default: 64. The oldest go first.
    pub kept_runs: usize,
    /// Bytes of them all. Default: 64 MiB. The oldest go first; the last one that
    /// ended stays, whatever it has.
    pub kept_bytes: usize,
    /// Which tools a client sees that does not say itself. Default:
    /// [`ToolMode::Code`].
    pub mode: ToolMode,
    /// The size of the model's context, in tokens. Default: 200,000.
    pub context_window: u64,
    /// The part of the context that the declarations in a description may take,
    /// above 0 and at most 1. Default: 0.02.
    pub context_share: f64,
    /// How long a client without a session may keep the list of tools. Default: 5
    /// minutes.
    pub tools_ttl: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            asks: true,
            answer_time: Duration::from_secs(600),
            parked_runs: 16,
            wait: Duration::from_secs(45),
            runs: 64,
            kept_time: Duration::from_secs(600),
            whole_output: 8 << 20,
            kept_runs: 64,
            kept_bytes: 64 << 20,
            mode: ToolMode::default(),
            context_window: 200_000,
            context_share: 0.02,
            tools_ttl: Duration::from_secs(300),
        }
    }
}

impl ServeOptions {
    /// Takes what a configuration says.
    #[must_use]
    pub fn config(mut self, config: &ServeConfig) -> Self {
        self.mode = config.mode.unwrap_or(self.mode);
        self.context_window = config.window.unwrap_or(self.context_window);
        self.context_share = config.share.unwrap_or(self.context_share);
        self.tools_ttl = config.tools_ttl.unwrap_or(self.tools_ttl);
        self.wait = config.wait.unwrap_or(self.wait);
        self.answer_time = config.answer_time.unwrap_or(self.answer_time);
        self
    }

    /// The most tokens of the declarations in a description.
    pub(crate) fn budget(&self) -> usize {
        // Both are what they should be, or the result is a bound all the same.
        let tokens = self.context_window as f64 * self.context_share.clamp(0.0, 1.0);
        tokens as usize
    }
}
