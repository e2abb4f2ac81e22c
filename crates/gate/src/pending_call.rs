//! A call that is being decided.

use callgate_catalog::Tool;
use callgate_policy::flow::Finding;

use crate::arguments::Arguments;
use crate::review::Reviewed;

/// A call that is being decided. An answer may change its arguments.
pub(crate) struct PendingCall<'a> {
    pub(crate) tool: &'a Tool,
    /// Its number in the run, from 1.
    pub(crate) ordinal: usize,
    pub(crate) arguments: Arguments,
    pub(crate) flows: Vec<Finding>,
    /// The script's line, from 1, if it is known.
    pub(crate) line: Option<u32>,
    /// True if the configuration trusts the tool's server.
    pub(crate) is_trusted: bool,
    /// False if a dry run withholds the call.
    pub(crate) is_sent: bool,
    /// Why the call could not be sent after an answer that allowed it.
    pub(crate) unsent: Option<&'a str>,
}

impl PendingCall<'_> {
    /// The call as reviewers see it.
    pub(crate) fn reviewed(&self) -> Reviewed<'_> {
        Reviewed {
            function: &self.tool.function,
            server: &self.tool.definition.server,
            tool: &self.tool.definition.name,
            arguments: self.arguments.text(),
            flows: &self.flows,
        }
    }
}
