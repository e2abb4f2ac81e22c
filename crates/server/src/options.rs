//! How scripts are served.

use std::time::Duration;

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
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            asks: true,
            answer_time: Duration::from_secs(600),
            parked_runs: 16,
        }
    }
}
