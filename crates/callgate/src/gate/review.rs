//! What is looked at besides calls: data between servers, and what the host's
//! own reviewers say.

use std::sync::Arc;

use callgate_broker::Reviewer;
use callgate_policy::flow::FlowRules;

use super::GateBuilder;

impl GateBuilder {
    /// The rules over data that goes from one server to another, and the labels
    /// they speak of. Default: none, so every flow passes and is only recorded.
    pub fn flow_rules(mut self, rules: FlowRules) -> Self {
        self.flows = rules;
        self
    }

    /// Adds a reviewer of arguments and results, in all runs and for calls
    /// without a script. Default: none.
    pub fn reviewer(mut self, reviewer: Arc<dyn Reviewer>) -> Self {
        self.reviewers.push(reviewer);
        self
    }
}
