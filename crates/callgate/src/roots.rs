//! Folders of a configuration, for servers that ask for them.

use std::sync::Arc;

use callgate_broker::{
    Caller, Elicit, ListRoots, Log, LogLevel, Offers, Progress, Refusal, Root, Sample, Wanted,
};
use futures::future::BoxFuture;
use serde_json::Value;

/// A caller that has these folders besides what another one can do; that one
/// itself, if there are none, or if it has folders of its own.
pub(crate) fn with_roots(roots: &[Root], caller: Arc<dyn Caller>) -> Arc<dyn Caller> {
    if roots.is_empty() || caller.offers().roots {
        return caller;
    }
    Arc::new(WithRoots {
        roots: roots.to_vec(),
        caller,
    })
}

struct WithRoots {
    roots: Vec<Root>,
    caller: Arc<dyn Caller>,
}

impl Caller for WithRoots {
    fn offers(&self) -> Offers {
        let mut offers = self.caller.offers();
        offers.roots = true;
        offers
    }

    fn elicit<'a>(&'a self, request: Elicit<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        self.caller.elicit(request)
    }

    fn sample<'a>(&'a self, request: Sample<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        self.caller.sample(request)
    }

    fn roots<'a>(&'a self, _request: ListRoots<'a>) -> BoxFuture<'a, Result<Vec<Root>, Refusal>> {
        Box::pin(std::future::ready(Ok(self.roots.clone())))
    }

    fn inputs<'a>(&'a self, wanted: Vec<Wanted<'a>>) -> BoxFuture<'a, Vec<Result<Value, Refusal>>> {
        Box::pin(async move {
            let is_ours = |one: &Wanted<'_>| matches!(one, Wanted::Roots(_));
            let others = wanted.iter().filter(|one| !is_ours(one)).copied().collect();
            let mut others = self.caller.inputs(others).await.into_iter();
            let answers = wanted.iter().map(|one| match is_ours(one) {
                true => Ok(ListRoots::result(&self.roots)),
                false => others.next().unwrap_or(Err(Refusal::Cancelled)),
            });
            answers.collect()
        })
    }

    fn logs(&self) -> Option<LogLevel> {
        self.caller.logs()
    }

    fn log(&self, log: Log<'_>) {
        self.caller.log(log);
    }

    fn is_task(&self, server: &str, tool: &str) {
        self.caller.is_task(server, tool);
    }

    fn progress(&self, progress: Progress<'_>) {
        self.caller.progress(progress);
    }
}
