//! The people outside of a client who answer the questions of its runs.

/// The people who answer by records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answerer {
    /// The person at the client, in a terminal.
    Terminal,
    /// An operator of the server.
    Operator,
}

impl Answerer {
    /// The advice for a model whose run waits.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::Terminal => "tell the user to run `callgate questions` in a terminal",
            Self::Operator => "tell the user that an operator of this server must answer",
        }
    }
}
