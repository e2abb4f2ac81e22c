//! What arguments carry and what results bring: data of other servers, and the
//! word of the host's own reviewers.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callgate_policy::flow::{Finding, FlowRules};
use callgate_policy::{Because, Decision, Verdict};
use futures::future::BoxFuture;

use crate::flows::Flows;
use crate::target::Target;

/// Somebody of the host's who looks at what goes to servers and comes from
/// them, besides the rules. Each method has a default that lets everything
/// pass.
///
/// Reviewers are asked one after the other, in the order they were added, for
/// calls of scripts and for those without one. The futures must not block their
/// thread: the run and its limits wait on the same one. A call that is cancelled
/// drops them.
pub trait Reviewer: Send + Sync {
    /// Looks at a call before it is decided.
    fn review_arguments<'a>(&'a self, _call: Reviewed<'a>) -> BoxFuture<'a, Review> {
        Box::pin(std::future::ready(Review::Allow))
    }

    /// Looks at what the script would get: the value as JSON text, or what a
    /// tool that failed says of it.
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
    /// Other servers' data that was found in them.
    pub flows: &'a [Finding],
}

/// What a [`Reviewer`] says of arguments. The stricter of this and of what the
/// rules say holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Review {
    /// Nothing against it.
    Allow,
    /// Somebody is to be asked, each time, for this reason.
    Ask(String),
    /// The call is not to be made, for this reason, which the script is told.
    Deny(String),
}

/// What a [`Reviewer`] says of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResultReview {
    /// The script gets it.
    Allow,
    /// The script gets an error with this reason in its place.
    Withhold(String),
}

/// The review of one run.
pub(crate) struct Reviews {
    rules: Arc<FlowRules>,
    reviewers: Vec<Arc<dyn Reviewer>>,
    /// What the run has learnt; `None` where there is no second server.
    flows: Option<Flows>,
    /// The flows that somebody let pass for this run: from a function to a
    /// function, because labels and rules tell the tools of one server apart.
    passed: Mutex<HashSet<(String, String)>>,
}

/// What the review of a call's arguments found.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) flows: Vec<Finding>,
    /// What reviewers said, if they did not let it pass.
    reviewed: Option<Decision>,
}

impl Reviews {
    /// `script` is the run's own text, and `servers` how many there are.
    pub(crate) fn new(
        rules: Arc<FlowRules>,
        reviewers: Vec<Arc<dyn Reviewer>>,
        script: Option<&str>,
        servers: usize,
    ) -> Self {
        let flows = || Flows::new(script.unwrap_or_default());
        Self {
            rules,
            reviewers,
            flows: (servers > 1).then(flows),
            passed: Mutex::default(),
        }
    }

    /// Finds flows in the arguments of a call, as they would be sent, and asks the reviewers.
    pub(crate) async fn arguments(&self, target: &Target, arguments: &Arc<String>) -> Findings {
        let flows = match &self.flows {
            Some(flows) => flows.find(target, arguments).await,
            None => Vec::new(),
        };
        self.reviewed(target, arguments, flows).await
    }

    /// What the reviewers say of arguments with these flows.
    async fn reviewed(&self, target: &Target, arguments: &str, flows: Vec<Finding>) -> Findings {
        let mut reviewed: Option<Decision> = None;
        for reviewer in &self.reviewers {
            let call = seen(target, arguments, &flows);
            let (verdict, reason) = match reviewer.review_arguments(call).await {
                Review::Allow => continue,
                Review::Ask(reason) => (Verdict::Ask, reason),
                Review::Deny(reason) => (Verdict::Deny, reason),
            };
            let because = Because::Reviewer(reason);
            if verdict == Verdict::Deny || reviewed.is_none() {
                reviewed = Some(Decision::new(verdict, because));
            }
            if verdict == Verdict::Deny {
                break;
            }
        }
        Findings { flows, reviewed }
    }

    /// What the findings decide, if they do not let the call pass: the
    /// strictest of rules over flows and reviewers.
    pub(crate) fn decide(&self, findings: &Findings) -> Option<Decision> {
        // Not of one that somebody let pass: that is no reason to ask any more.
        let of_flows = self.rules.review(self.unpassed(findings));
        match (&findings.reviewed, of_flows) {
            (Some(reviewed), Some(flows)) if flows.verdict == Verdict::Deny => {
                let denied = reviewed.verdict == Verdict::Deny;
                Some(if denied { reviewed.clone() } else { flows })
            }
            (Some(reviewed), _) => Some(reviewed.clone()),
            (None, flows) => flows,
        }
    }

    /// Lets the flows that somebody was asked about pass from now on. Others of the same
    /// functions, of which the question said nothing, are asked about when they come.
    pub(crate) fn pass(&self, findings: &Findings) {
        let asked = findings.flows.iter().filter(|flow| self.is_asked(flow));
        lock(&self.passed).extend(asked.map(pair));
    }

    /// Learns what the script gets from a call.
    pub(crate) fn learn(&self, target: &Target, ordinal: usize, result: &str) {
        if let Some(flows) = &self.flows {
            flows.learn(target, ordinal, result);
        }
    }

    /// Why the script may not have a result; `None` if it may.
    pub(crate) async fn result(
        &self,
        target: &Target,
        arguments: &str,
        findings: &Findings,
        result: &str,
    ) -> Option<String> {
        for reviewer in &self.reviewers {
            let call = seen(target, arguments, &findings.flows);
            if let ResultReview::Withhold(reason) = reviewer.review_result(call, result).await {
                return Some(reason);
            }
        }
        None
    }

    /// The flows of a call, those first that rules have most against: where not all of them
    /// are kept or shown, these are.
    pub(crate) fn weighed<'a>(&self, findings: &'a Findings) -> Vec<&'a Finding> {
        let mut flows: Vec<&Finding> = findings.flows.iter().collect();
        if flows.is_empty() {
            return flows;
        }
        let passed = lock(&self.passed);
        flows.sort_by_cached_key(|flow| match self.rules.verdict(flow) {
            Verdict::Deny => 0,
            Verdict::Ask if !passed.contains(&pair(flow)) => 1,
            Verdict::Ask => 2,
            Verdict::Allow => 3,
        });
        flows
    }

    /// The functions whose data somebody has to let pass.
    pub(crate) fn asks(&self, findings: &Findings) -> Vec<String> {
        let unpassed = self.unpassed(findings).into_iter();
        let asked = unpassed.filter(|flow| self.is_asked(flow));
        let functions: BTreeSet<String> = asked.map(|flow| flow.from.function.clone()).collect();
        functions.into_iter().collect()
    }

    /// The flows without those that are asked about and that somebody let pass.
    fn unpassed<'a>(&self, findings: &'a Findings) -> Vec<&'a Finding> {
        if findings.flows.is_empty() {
            return Vec::new();
        }
        let passed = lock(&self.passed);
        let flows = findings.flows.iter();
        let unpassed = flows.filter(|flow| !(passed.contains(&pair(flow)) && self.is_asked(flow)));
        unpassed.collect()
    }

    fn is_asked(&self, flow: &Finding) -> bool {
        self.rules.verdict(flow) == Verdict::Ask
    }
}

impl fmt::Debug for Reviews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reviews")
            .field("rules", &self.rules)
            .field("reviewers", &self.reviewers.len())
            .finish_non_exhaustive()
    }
}

fn pair(flow: &Finding) -> (String, String) {
    (flow.from.function.clone(), flow.to.function.clone())
}

fn seen<'a>(target: &'a Target, arguments: &'a str, flows: &'a [Finding]) -> Reviewed<'a> {
    Reviewed {
        function: &target.function,
        server: &target.server,
        tool: &target.tool,
        arguments,
        flows,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
