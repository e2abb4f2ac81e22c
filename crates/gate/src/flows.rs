//! The data flows of one run: copies of one server's results in arguments for another, and the
//! rules for them.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use callgate_catalog::Tool;
use callgate_policy::flow::{Detector, Finding, FlowRules};
use callgate_policy::{Decision, Verdict};
use parking_lot::Mutex;
use tokio::task::spawn_blocking;

use crate::arguments::Arguments;

/// Learns the results of a run, finds their copies in arguments, and applies the flow rules.
#[derive(Debug)]
pub(crate) struct Flows {
    /// `None` if the run has only one server.
    detector: Option<Arc<Detector>>,
    rules: Arc<FlowRules>,
    /// The flows that the asker allowed for the run, from function to function.
    passed: Mutex<HashSet<(String, String)>>,
}

impl Flows {
    /// Flows before the first result. The text of `script` is not a server's data.
    pub(crate) fn new(rules: Arc<FlowRules>, script: Option<&str>, servers: usize) -> Self {
        let detector = || Arc::new(Detector::new(script.unwrap_or_default()));
        Self {
            detector: (servers > 1).then(detector),
            rules,
            passed: Mutex::default(),
        }
    }

    /// The data of other servers in a call's arguments. The flows that rules are strictest about
    /// come first, because only the first ones are kept and shown.
    pub(crate) async fn find(&self, tool: &Tool, arguments: &Arguments) -> Vec<Finding> {
        let mut flows = self.search(tool, arguments).await;
        flows.sort_by_cached_key(|flow| match self.rules.verdict(flow) {
            Verdict::Deny => 0,
            Verdict::Ask if !self.passed.lock().contains(&ends(flow)) => 1,
            Verdict::Ask => 2,
            Verdict::Allow => 3,
        });
        flows
    }

    async fn search(&self, tool: &Tool, arguments: &Arguments) -> Vec<Finding> {
        let Some(detector) = &self.detector else {
            return Vec::new();
        };
        let (to, definition) = (tool.side(), Arc::clone(&tool.definition.identity));
        let (detector, text) = (Arc::clone(detector), Arc::clone(arguments.text()));
        let search = move || detector.find(&to, &text, definition.text());
        let found = spawn_blocking(search.clone()).await;
        // If the runtime is ending, the call must not pass without a search.
        found.unwrap_or_else(|_| search())
    }

    /// Learns the part of a call's result that the script reads.
    pub(crate) fn learn(&self, tool: &Tool, ordinal: usize, result: &str) {
        if let Some(detector) = &self.detector {
            detector.learn(&tool.side(), ordinal, result);
        }
    }

    /// The decision of the rules, unless all flows may pass. It does not ask again about a flow
    /// that the asker allowed.
    pub(crate) fn decide(&self, flows: &[Finding]) -> Option<Decision> {
        self.rules.review(self.unpassed(flows))
    }

    /// The functions whose data needs permission.
    pub(crate) fn to_ask(&self, flows: &[Finding]) -> Vec<String> {
        let unpassed = self.unpassed(flows).into_iter();
        let asked = unpassed.filter(|flow| self.is_asked(flow));
        let functions: BTreeSet<String> = asked.map(|flow| flow.from.function.clone()).collect();
        functions.into_iter().collect()
    }

    /// Allows the flows that the asker was asked about from now on.
    pub(crate) fn pass(&self, flows: &[Finding]) {
        let asked = flows.iter().filter(|flow| self.is_asked(flow));
        self.passed.lock().extend(asked.map(ends));
    }

    fn unpassed<'a>(&self, flows: &'a [Finding]) -> Vec<&'a Finding> {
        let passed = self.passed.lock();
        let is_passed = |flow: &&Finding| passed.contains(&ends(flow)) && self.is_asked(flow);
        flows.iter().filter(|flow| !is_passed(flow)).collect()
    }

    fn is_asked(&self, flow: &Finding) -> bool {
        self.rules.verdict(flow) == Verdict::Ask
    }
}

/// The functions of a flow. Labels and rules distinguish the tools of one server, so servers
/// would be too coarse.
fn ends(flow: &Finding) -> (String, String) {
    (flow.from.function.clone(), flow.to.function.clone())
}
