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
    /// The caller's answer to a request for folders, or these folders if it offers or names none: a
    /// caller may offer folders for clients that have none.
    fn or_ours(&self, answer: Result<Value, Refusal>) -> Result<Value, Refusal> {
        let roots = answer.as_ref().ok().and_then(|it| it.get("roots"));
        let is_empty = roots.and_then(Value::as_array).is_some_and(Vec::is_empty);
        if is_empty || !self.caller.offers().roots {
            return Ok(Root::list(&self.roots));
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
            let kinds: Vec<WantedKind> = wanted.iter().map(|one| one.kind).collect();
            let answers = self.caller.answers(wanted).await.into_iter();
            let answers = answers.zip(kinds).map(|(answer, kind)| match kind {
                WantedKind::Roots => self.or_ours(answer),
                _ => answer,
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
