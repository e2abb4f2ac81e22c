//! What arguments carry and what results bring: data of other servers, and the
//! word of the host's own reviewers.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callgate_policy::flow::{Finding, FlowRules, Flows, Side};
use callgate_policy::{Because, Decision, Definition, Verdict};
use futures::future::BoxFuture;
use serde_json::Value;

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

/// The bytes of results from which learning them is worth another thread: that
/// takes some tenths of a millisecond.
const LARGE_BACKLOG: usize = 128 << 10;

/// The review of one run.
pub(crate) struct Reviews {
    rules: Arc<FlowRules>,
    reviewers: Vec<Arc<dyn Reviewer>>,
    /// What the run has learnt; `None` where there is no second server.
    flows: Option<Arc<Mutex<Flows>>>,
    /// The flows that somebody let pass for this run: from a server to a
    /// function.
    passed: Mutex<HashSet<(String, String)>>,
}

/// What the review of a call's arguments found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) flows: Vec<Finding>,
    /// What reviewers said, if they did not let it pass.
    reviewed: Option<Decision>,
}

impl Findings {
    /// What the ledger has of the flows.
    pub(crate) fn records(&self) -> Vec<Value> {
        let records = self.flows.iter().map(Finding::record);
        records
            .filter_map(|record| serde_json::to_value(record).ok())
            .collect()
    }
}

impl Reviews {
    /// `script` is the run's own text, and `servers` how many there are.
    pub(crate) fn new(
        rules: Arc<FlowRules>,
        reviewers: Vec<Arc<dyn Reviewer>>,
        script: Option<&str>,
        servers: usize,
    ) -> Self {
        let flows = || Arc::new(Mutex::new(Flows::new(script.unwrap_or_default())));
        Self {
            rules,
            reviewers,
            flows: (servers > 1).then(flows),
            passed: Mutex::default(),
        }
    }

    /// Looks at the arguments of a call.
    pub(crate) async fn arguments(&self, target: &Target, arguments: &str) -> Findings {
        let definition = target.definition.as_deref().map(Definition::text);
        let flows = match &self.flows {
            Some(flows) => {
                let to = side(target);
                learn_elsewhere(flows, &to, arguments).await;
                lock(flows).inspect(&to, arguments, definition.unwrap_or(""))
            }
            None => Vec::new(),
        };
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
                reviewed = Some(Decision { verdict, because });
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
        let of_flows = self.rules.review(&findings.flows).filter(|decision| {
            decision.verdict == Verdict::Deny || !self.all_passed(&findings.flows)
        });
        match (&findings.reviewed, of_flows) {
            (Some(reviewed), Some(flows)) if flows.verdict == Verdict::Deny => {
                let denied = reviewed.verdict == Verdict::Deny;
                Some(if denied { reviewed.clone() } else { flows })
            }
            (Some(reviewed), _) => Some(reviewed.clone()),
            (None, flows) => flows,
        }
    }

    /// Lets these flows pass from now on, where rules would ask.
    pub(crate) fn pass(&self, findings: &Findings) {
        lock(&self.passed).extend(findings.flows.iter().map(pair));
    }

    /// Learns what the script gets from a call.
    pub(crate) fn learn(&self, target: &Target, ordinal: usize, result: &str) {
        if let Some(flows) = &self.flows {
            lock(flows).learn(side(target), ordinal, result);
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

    fn all_passed(&self, flows: &[Finding]) -> bool {
        let passed = lock(&self.passed);
        let mut asked = flows
            .iter()
            .filter(|flow| self.rules.decide(flow).verdict == Verdict::Ask);
        asked.all(|flow| passed.contains(&pair(flow)))
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

/// Learns a large backlog of results on a thread for such work, as the run and
/// its limits wait on this one. Where that cannot be done, the look does it.
async fn learn_elsewhere(flows: &Arc<Mutex<Flows>>, to: &Side, arguments: &str) {
    let backlog = lock(flows).backlog(to, arguments);
    if backlog >= LARGE_BACKLOG {
        let flows = Arc::clone(flows);
        let _learnt = tokio::task::spawn_blocking(move || lock(&flows).catch_up()).await;
    }
}

fn pair(flow: &Finding) -> (String, String) {
    (flow.from.server.clone(), flow.to.function.clone())
}

fn side(target: &Target) -> Side {
    Side::new(&target.function, &target.server, &target.tool)
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::runtime::Builder;
    use tokio::time::timeout;

    use super::*;

    const ARGUMENTS: &str = r#"{"text":"sixteen bytes and more"}"#;
    const SOON: Duration = Duration::from_secs(30);

    fn flows_with(bytes: usize) -> Arc<Mutex<Flows>> {
        let mut flows = Flows::default();
        let note = serde_json::json!({ "note": "n".repeat(bytes) });
        flows.learn(Side::new("a_get", "a", "get"), 1, &note.to_string());
        Arc::new(Mutex::new(flows))
    }

    #[test]
    fn a_large_backlog_is_learnt_on_another_thread_and_a_small_one_is_left() {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .max_blocking_threads(1)
            .build()
            .expect("a runtime");
        let (large, small) = (flows_with(LARGE_BACKLOG), flows_with(1_000));
        let own = Side::new("a_put", "a", "put");
        let other = Side::new("b_put", "b", "put");
        let backlog = |flows: &Mutex<Flows>| lock(flows).backlog(&other, ARGUMENTS);
        runtime.block_on(async {
            // The only thread that there is for such work has other work.
            let (done, wait) = mpsc::channel::<()>();
            let busy = tokio::task::spawn_blocking(move || wait.recv());
            let learning = learn_elsewhere(&large, &other, ARGUMENTS);
            tokio::pin!(learning);
            // What a run needs goes on meanwhile, on this thread.
            let meanwhile = async {
                learn_elsewhere(&large, &own, ARGUMENTS).await;
                learn_elsewhere(&large, &other, "{}").await;
                learn_elsewhere(&small, &other, ARGUMENTS).await;
                tokio::task::yield_now().await;
            };
            tokio::select! {
                biased;
                () = &mut learning => panic!("learnt on the run's thread"),
                () = meanwhile => {}
            }
            assert!(backlog(&large) > LARGE_BACKLOG);
            assert!(backlog(&small) > 1_000);
            done.send(()).expect("the other work waits");
            timeout(SOON, learning).await.expect("learnt in time");
            assert_eq!(backlog(&large), 0);
            assert!(busy.await.is_ok());
        });
    }
}
