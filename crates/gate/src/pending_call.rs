//! A call that is being decided.

use callgate_catalog::Tool;
use callgate_policy::flow::Finding;

use crate::arguments::Arguments;
use crate::review::Reviewed;

/// A call that is being decided.
#[derive(Clone, Copy)]
pub(crate) struct PendingCall<'a> {
    pub(crate) tool: &'a Tool,
    pub(crate) arguments: &'a Arguments,
    pub(crate) flows: &'a [Finding],
    /// The script's line, from 1, if it is known.
    pub(crate) line: Option<u32>,
    /// True if the configuration trusts the tool's server.
    pub(crate) is_trusted: bool,
    /// False if a dry run withholds the call.
    pub(crate) is_sent: bool,
}

impl<'a> PendingCall<'a> {
    /// The call as reviewers see it.
    pub(crate) fn reviewed(&self) -> Reviewed<'a> {
        Reviewed {
            function: &self.tool.function,
            server: &self.tool.definition.server,
            tool: &self.tool.definition.name,
            arguments: self.arguments.text(),
            flows: self.flows,
        }
    }
}
