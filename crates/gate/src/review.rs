//! The host's own reviewers of arguments and results.

use std::sync::Arc;

use callgate_policy::flow::{Finding, FlowRecord};
use callgate_policy::{Because, Decision, Verdict};
use futures::future::BoxFuture;

/// A check by the host of calls and their results, in addition to the rules. Each method has a
/// default that allows everything.
///
/// Reviewers are asked one after the other, in the order they were added, for calls with and
/// without a script. The futures must not block their thread, which also runs the run and its
/// limits. A call that is cancelled drops them.
pub trait Reviewer: Send + Sync {
    /// Reviews a call before it is decided.
    fn review_arguments<'a>(&'a self, _call: Reviewed<'a>) -> BoxFuture<'a, Review> {
        Box::pin(std::future::ready(Review::Allow))
    }

    /// Reviews the result for the script: the value as JSON text, or the message of a tool that
    /// failed.
    fn review_result<'a>(
        &'a self,
        _call: Reviewed<'a>,
        _result: &'a str,
    ) -> BoxFuture<'a, ResultReview> {
        Box::pin(std::future::ready(ResultReview::Allow))
    }
}

/// A call as a [`Reviewer`] sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Reviewed<'a> {
    /// The generated function name.
    pub function: &'a str,
    /// The server's name.
    pub server: &'a str,
    /// The tool's own name.
    pub tool: &'a str,
    /// The whole arguments, as JSON text. Written by a script.
    pub arguments: &'a str,
    /// Other servers' data that was found in the arguments.
    #[doc(hidden)]
    pub flows: &'a [Finding],
}

impl Reviewed<'_> {
    /// Other servers' data in the arguments.
    pub fn flow_records(&self) -> Vec<FlowRecord> {
        self.flows.iter().map(Finding::record).collect()
    }
}

/// A [`Reviewer`]'s answer about arguments. The stricter of this and the rules' decision applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Review {
    /// The call may be made.
    Allow,
    /// The asker is asked about each such call, for this reason.
    Ask(String),
    /// The call may not be made, for this reason, which the script gets.
    Deny(String),
}

/// A [`Reviewer`]'s answer about a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultReview {
    /// The script gets the result.
    Allow,
    /// The script gets an error with this reason.
    Withhold(String),
}

pub(crate) struct Reviewers(pub(crate) Vec<Arc<dyn Reviewer>>);

impl Reviewers {
    /// The strictest decision about arguments, unless all reviewers allow them.
    pub(crate) async fn review_arguments(&self, call: Reviewed<'_>) -> Option<Decision> {
        let mut strictest = None;
        for reviewer in &self.0 {
            match reviewer.review_arguments(call).await {
                Review::Allow => {}
                Review::Ask(reason) => {
                    let asked = || Decision::new(Verdict::Ask, Because::Reviewer(reason));
                    strictest.get_or_insert_with(asked);
                }
                Review::Deny(reason) => {
                    return Some(Decision::new(Verdict::Deny, Because::Reviewer(reason)));
                }
            }
        }
        strictest
    }

    /// The reason why the script may not have a result; `None` if it may.
    pub(crate) async fn review_result(&self, call: Reviewed<'_>, result: &str) -> Option<String> {
        for reviewer in &self.0 {
            if let ResultReview::Withhold(reason) = reviewer.review_result(call, result).await {
                return Some(reason);
            }
        }
        None
    }
}
