//! Folders of a configuration, for servers that ask for them.

use std::sync::Arc;

use callgate_servers::{
    Caller, Log, LogLevel, Offers, Opened, PageDone, Progress, Refusal, Root, Wanted, WantedKind,
};
use futures::future::BoxFuture;
use serde_json::Value;

/// A caller that has these folders if it names none itself; without folders, the caller itself.
pub(crate) fn with_roots(roots: &[Root], caller: Arc<dyn Caller>) -> Arc<dyn Caller> {
    if roots.is_empty() {
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

impl WithRoots {
    /// The caller's answer, or these folders if it names none: a caller may offer folders for
    /// clients that have none.
    fn or_ours(&self, answer: Value) -> Value {
        let named = answer.get("roots").and_then(Value::as_array);
        if named.is_some_and(Vec::is_empty) {
            return Root::list(&self.roots);
        }
        answer
    }
}

impl Caller for WithRoots {
    fn offers(&self) -> Offers {
        let mut offers = self.caller.offers();
        offers.roots = true;
        offers
    }

    fn answer<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async move {
            let mut answers = self.answers(vec![wanted]).await;
            answers.pop().unwrap_or(Err(Refusal::Cancelled))
        })
    }

    fn page_opened(&self, server: &str, id: &str) -> Option<PageDone> {
        self.caller.page_opened(server, id)
    }

    fn back_from<'a>(&'a self, opened: Opened<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        self.caller.back_from(opened)
    }

    fn answers<'a>(
        &'a self,
        wanted: Vec<Wanted<'a>>,
    ) -> BoxFuture<'a, Vec<Result<Value, Refusal>>> {
        Box::pin(async move {
            let offered = self.caller.offers().roots;
            let is_roots = |one: &Wanted<'_>| one.kind == WantedKind::Roots;
            let is_ours = |one: &Wanted<'_>| !offered && is_roots(one);
            let others = wanted.iter().filter(|one| !is_ours(one)).copied().collect();
            let mut others = self.caller.answers(others).await.into_iter();
            let answers = wanted.iter().map(|one| {
                if is_ours(one) {
                    return Ok(Root::list(&self.roots));
                }
                let answer = others.next().unwrap_or(Err(Refusal::Cancelled));
                if is_roots(one) {
                    return answer.map(|answer| self.or_ours(answer));
                }
                answer
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

#[cfg(test)]
mod tests;
