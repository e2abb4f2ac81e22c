//! Folders of a configuration, for servers that ask for them.

use std::sync::Arc;

use callgate_broker::{Caller, Elicit, Offers, Progress, Refusal, Root, Sample};
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

    fn roots(&self) -> Vec<Root> {
        self.roots.clone()
    }

    fn progress(&self, progress: Progress<'_>) {
        self.caller.progress(progress);
    }
}
