//! A server's questions: forms, pages (MCP 2025-11-25, client/elicitation, "URL Mode Elicitation
//! Requests"), model messages, folders. Each goes to the caller that it is for, or is declined in
//! the protocol's own way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use rmcp::ClientHandler;
use rmcp::model::{CustomRequest, CustomResult, ErrorCode, ErrorData};
use rmcp::service::{RequestContext, RoleClient};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::caller::{Caller, Offers, Refusal, Wanted, WantedKind};
use crate::clock::Asking;
use crate::form;
use crate::json_rpc::MAX_VALUE_BYTES;
use crate::tap::{Asked, Tap};

/// Questions of one server at a time. More are refused.
const MAX_QUESTIONS: usize = 16;
/// Questions to a person or a model from one call to the next.
const MAX_FOR_CALL: usize = 160;
/// The longest parameters of a question, in bytes; a sampling request brings a conversation.
const MAX_SMALL_BYTES: usize = 64 << 10;
/// The pages that a server can say to be done before the first of them is read.
const MAX_DONE: usize = 64;
/// The longest id of a page, in bytes.
const MAX_ID_BYTES: usize = 1_024;

/// The questions of one connection.
#[derive(Debug)]
pub(crate) struct Questions {
    server: Arc<str>,
    /// The host's own caller, for questions that belong to no call.
    caller: Arc<dyn Caller>,
    /// The abilities that were announced when the connection was made.
    pub(crate) offers: Offers,
    /// Tells the ids of pages that the server says are done.
    pub(crate) pages: broadcast::Sender<String>,
    pub(crate) asking: Asking,
    places: Semaphore,
    for_call: AtomicUsize,
}

impl Questions {
    pub(crate) fn new(server: Arc<str>, caller: Arc<dyn Caller>, asking: Asking) -> Self {
        Self {
            server,
            offers: caller.offers(),
            caller,
            pages: broadcast::channel(MAX_DONE).0,
            asking,
            places: Semaphore::new(MAX_QUESTIONS),
            for_call: AtomicUsize::new(0),
        }
    }

    /// Begins a call, and with it a new count of questions.
    pub(crate) fn begin_call(&self) {
        self.for_call.store(0, Ordering::Relaxed);
    }

    /// Answers one question.
    async fn answer(&self, asked: &Asked, tap: &Tap) -> Result<Value, ErrorData> {
        let (who, calls) = tap.caller(asked.stream.as_ref());
        let tool = who.as_ref().map(|who| &*who.tool);
        let tool = tool.filter(|tool| !tool.is_empty());
        let Asked {
            method,
            params,
            bytes,
            ..
        } = asked;
        let question = Wanted::new(WantedKind::of(method, *bytes)?, &self.server, tool, params);
        let caller = who.as_ref().map_or(&self.caller, |who| &who.caller);
        // The server may use only announced abilities, even if this caller has more.
        if let Some(declined) = question.declined(self.offers.and(caller.offers())) {
            return declined;
        }
        let busy = |message: String| ErrorData::new(ErrorCode(-32000), message, None);
        let full = |_| busy(format!("more than {MAX_QUESTIONS} requests at a time"));
        let _place = self.places.try_acquire().map_err(full)?;
        if question.kind != WantedKind::Roots
            && self.for_call.fetch_add(1, Ordering::Relaxed) >= MAX_FOR_CALL
        {
            let message = format!("more than {MAX_FOR_CALL} requests for one call");
            return Err(busy(message));
        }
        let _asking = self.asking.begin();
        let mut lost = tap.lost();
        // With the last call that it may be for, a question ends.
        let over = async {
            if calls.is_empty() {
                std::future::pending::<()>().await;
            }
            join_all(calls.iter().map(CancellationToken::cancelled)).await;
        };
        // The server may say that a page is done before the person has answered.
        let done = self.page_done(params);
        let answer = tokio::select! {
            biased;
            answer = caller.answer(question) => question.answered(answer),
            () = over => question.answered(Err(Refusal::Cancelled)),
            _ = lost.wait_for(Option::is_some) => question.answered(Err(Refusal::Cancelled)),
        };
        if question.is_page() && answer.as_ref().is_ok_and(is_accepted) {
            self.follow_page(&**caller, params, done);
        }
        answer
    }

    /// Waits until the server says that a page is done, from now on; false if the connection ends
    /// before.
    pub(crate) fn page_done(&self, page: &Value) -> impl Future<Output = bool> + use<> {
        let (mut pages, id) = (self.pages.subscribe(), page_id(page).map(str::to_owned));
        async move {
            loop {
                match pages.recv().await {
                    Ok(done) if Some(&done) == id.as_ref() => return true,
                    Err(broadcast::error::RecvError::Closed) => return false,
                    _ => {}
                }
            }
        }
    }

    /// Has the caller hear when an opened page is done.
    pub(crate) fn follow_page(
        &self,
        caller: &dyn Caller,
        page: &Value,
        done: impl Future<Output = bool> + Send + 'static,
    ) {
        if let Some(id) = page_id(page)
            && let Some(hears) = caller.page_opened(&self.server, id)
        {
            tokio::spawn(async move {
                if done.await {
                    hears();
                }
            });
        }
    }
}

/// rmcp's handler of one connection.
#[derive(Debug, Clone)]
pub(crate) struct Handler {
    pub(crate) questions: Arc<Questions>,
    pub(crate) tap: Arc<Tap>,
}

impl ClientHandler for Handler {
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let asked: Option<Asked> = request.params_as().ok().flatten();
        let asked = asked.ok_or_else(not_found)?;
        let answer = tokio::select! {
            answer = self.questions.answer(&asked, &self.tap) => answer,
            // rmcp sends no answer to a request that the server gave up.
            () = context.ct.cancelled() => Err(not_found()),
        };
        answer.map(CustomResult)
    }
}

impl WantedKind {
    /// The kind of a request with this method and parameters of this size.
    pub(crate) fn of(method: &str, bytes: usize) -> Result<Self, ErrorData> {
        let mut kinds = [Self::Elicit, Self::Sample, Self::Roots].into_iter();
        let kind = kinds
            .find(|kind| kind.method() == method)
            .ok_or_else(not_found)?;
        let max = match kind {
            Self::Sample => MAX_VALUE_BYTES,
            Self::Elicit | Self::Roots => MAX_SMALL_BYTES,
        };
        if bytes > max {
            let message = format!("its params have {bytes} bytes, and {max} are the most");
            return Err(ErrorData::invalid_params(message, None));
        }
        Ok(kind)
    }
}

impl Wanted<'_> {
    /// The answer to a question that is not offered, or cannot be shown.
    pub(crate) fn declined(self, offers: Offers) -> Option<Result<Value, ErrorData>> {
        let invalid = |message: String| Some(Err(ErrorData::invalid_params(message, None)));
        let params = self.params;
        match self.kind {
            WantedKind::Elicit if !offers.form && !offers.url => {
                // No person has refused.
                Some(Ok(json!({ "action": "cancel" })))
            }
            WantedKind::Elicit => match mode(params) {
                "form" if offers.form => None,
                "url" if offers.url => address_fault(params).and_then(invalid),
                _ => invalid("this mode of elicitation was not announced".to_owned()),
            },
            WantedKind::Sample if !offers.sampling => Some(Err(not_found())),
            WantedKind::Sample => {
                let tools = params.get("tools").or_else(|| params.get("toolChoice"));
                let is_refused = tools.is_some() && !offers.sampling_tools;
                let message = "sampling with tools was not announced".to_owned();
                is_refused.then(|| invalid(message)).flatten()
            }
            WantedKind::Roots => (!offers.roots).then(|| Err(not_found())),
        }
    }

    /// True if it asks to open a page.
    pub(crate) fn is_page(self) -> bool {
        self.kind == WantedKind::Elicit && mode(self.params) == "url"
    }

    /// The caller's answer in the protocol's form.
    pub(crate) fn answered(self, answer: Result<Value, Refusal>) -> Result<Value, ErrorData> {
        let params = self.params;
        match (self.kind, answer) {
            (WantedKind::Elicit, Ok(result)) => {
                form::checked(result, mode(params), params.get("requestedSchema"))
            }
            (_, Ok(result)) => Ok(result),
            (_, Err(Refusal::Failed(reason))) => Err(ErrorData::internal_error(reason, None)),
            (WantedKind::Elicit, Err(Refusal::Declined)) => Ok(json!({ "action": "decline" })),
            (WantedKind::Elicit, Err(_)) => Ok(json!({ "action": "cancel" })),
            (_, Err(Refusal::Unsupported)) => Err(not_found()),
            // The code that the specification gives for it.
            (_, Err(refusal)) => Err(ErrorData::new(ErrorCode(-1), refusal.to_string(), None)),
        }
    }
}

/// True if a person agreed.
pub(crate) fn is_accepted(answer: &Value) -> bool {
    answer["action"] == "accept"
}

/// An elicitation without a mode is a form.
fn mode(params: &Value) -> &str {
    match params.get("mode") {
        None => "form",
        Some(mode) => mode.as_str().unwrap_or_default(),
    }
}

fn not_found() -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "Method not found", None)
}

/// The id by which the server knows a page.
pub(crate) fn page_id(params: &Value) -> Option<&str> {
    let id = params.get("elicitationId").and_then(Value::as_str);
    id.filter(|id| (1..=MAX_ID_BYTES).contains(&id.len()))
}

/// The fault of a page's address.
pub(crate) fn address_fault(params: &Value) -> Option<String> {
    let Some(url) = params.get("url").and_then(Value::as_str) else {
        return Some("the page has no URL".to_owned());
    };
    match Url::parse(url) {
        Err(error) => Some(format!("the page has no valid URL: {error}")),
        Ok(url) if matches!(url.scheme(), "http" | "https") => None,
        Ok(_) => Some("the URL of the page must use http or https".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_other_than_http_are_not_pages() {
        for url in ["https://example.com/key?a=b#c", "HTTP://127.0.0.1:8080/"] {
            assert_eq!(address_fault(&json!({ "url": url })), None, "{url}");
        }
        for url in [
            "javascript:alert(1)",
            " \tjava\nscript:alert(1)",
            "file:///etc/passwd",
            "https.example:x",
            "//example.com",
            "https://",
        ] {
            assert!(address_fault(&json!({ "url": url })).is_some(), "{url}");
        }
        assert!(address_fault(&json!({ "url": 7 })).is_some());
    }
}
