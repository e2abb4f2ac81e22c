//! Requests of a server to its client: forms, pages (MCP 2025-11-25, client/elicitation, "URL Mode
//! Elicitation Requests"), model messages, folders. Each goes to the caller of the call that it
//! belongs to, or is declined as the protocol says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use rmcp::ClientHandler;
use rmcp::model::{CustomRequest, CustomResult, ErrorCode, ErrorData, RequestId};
use rmcp::service::{RequestContext, RoleClient};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::caller::{Caller, Offers, Refusal, Wanted, WantedKind};
use crate::clock::Asking;
use crate::form;
use crate::json_rpc::MAX_VALUE_BYTES;
use crate::tap::Tap;

/// The method by which a server's request reaches [`Questions`].
pub(crate) const FORWARD: &str = "callgate/ask";
/// Questions of one server at a time. More are refused.
const MAX_QUESTIONS: usize = 16;
/// Questions to a person or a model from one call to the next.
const MAX_PER_CALL: usize = 160;
/// Bytes of the parameters of a question, except for sampling, which brings a conversation.
const MAX_SMALL_BYTES: usize = 64 << 10;
/// Bytes of a page's id.
const MAX_ID_BYTES: usize = 1_024;

/// A server's request in the form in which it reaches [`Questions`]: the parameters of [`FORWARD`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ForwardedRequest {
    pub(crate) method: String,
    pub(crate) params: Value,
    /// The length of the parameters as the server wrote them.
    pub(crate) bytes: usize,
    /// The request of ours on whose own stream it came.
    pub(crate) stream: Option<RequestId>,
}

/// The questions of one connection, as rmcp's handler of it.
#[derive(Debug)]
pub(crate) struct Questions {
    tap: Arc<Tap>,
    /// The host's own caller, for questions that belong to no call.
    caller: Arc<dyn Caller>,
    /// The abilities that were announced when the connection was made.
    pub(crate) offers: Offers,
    pub(crate) asking: Asking,
    places: Semaphore,
    /// The questions since the last call began.
    count: AtomicUsize,
}

impl Questions {
    pub(crate) fn new(tap: Arc<Tap>, caller: Arc<dyn Caller>, asking: Asking) -> Self {
        Self {
            tap,
            offers: caller.offers(),
            caller,
            asking,
            places: Semaphore::new(MAX_QUESTIONS),
            count: AtomicUsize::new(0),
        }
    }

    /// Restarts the count of questions, because a call begins.
    pub(crate) fn begin_call(&self) {
        self.count.store(0, Ordering::Relaxed);
    }

    async fn answer(&self, request: &ForwardedRequest) -> Result<Value, ErrorData> {
        let (context, calls) = self.tap.context(request.stream.as_ref());
        let tool = context.as_ref().map(|context| &*context.tool);
        let tool = tool.filter(|tool| !tool.is_empty());
        let kind = WantedKind::of(&request.method, request.bytes)?;
        let question = Wanted::new(kind, &self.tap.server, tool, &request.params);
        let caller = context
            .as_ref()
            .map_or(&self.caller, |context| &context.caller);
        // The server may use only announced abilities, even if this caller has more.
        if let Some(declined) = question.declined(self.offers.and(caller.offers())) {
            return declined;
        }
        let busy = |message: String| ErrorData::new(ErrorCode(-32000), message, None);
        let full = |_| busy(format!("more than {MAX_QUESTIONS} requests at a time"));
        let _place = self.places.try_acquire().map_err(full)?;
        if question.kind != WantedKind::Roots
            && self.count.fetch_add(1, Ordering::Relaxed) >= MAX_PER_CALL
        {
            let message = format!("more than {MAX_PER_CALL} requests for one call");
            return Err(busy(message));
        }
        let _asking = self.asking.begin();
        let mut lost = self.tap.lost();
        // A question ends with the last call that it may belong to.
        let over = async {
            if calls.is_empty() {
                std::future::pending::<()>().await;
            }
            join_all(calls.iter().map(CancellationToken::cancelled)).await;
        };
        // The server may report a page as finished before the person has answered.
        let done = self.page_done(&request.params);
        let answer = tokio::select! {
            biased;
            answer = caller.answer(question) => question.answered(answer),
            () = over => question.answered(Err(Refusal::Cancelled)),
            _ = lost.wait_for(Option::is_some) => question.answered(Err(Refusal::Cancelled)),
        };
        if question.is_page() && answer.as_ref().is_ok_and(is_accepted) {
            self.follow_page(&**caller, &request.params, done);
        }
        answer
    }

    /// Waits until the server reports from now on that a page is finished; false if the connection
    /// ends first.
    pub(crate) fn page_done(&self, page: &Value) -> impl Future<Output = bool> + use<> {
        let mut pages = self.tap.pages.subscribe();
        let id = page_id(page).map(str::to_owned);
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

    /// Notifies the caller when an opened page is finished.
    pub(crate) fn follow_page(
        &self,
        caller: &dyn Caller,
        page: &Value,
        done: impl Future<Output = bool> + Send + 'static,
    ) {
        if let Some(id) = page_id(page)
            && let Some(on_done) = caller.page_opened(&self.tap.server, id)
        {
            tokio::spawn(async move {
                if done.await {
                    on_done();
                }
            });
        }
    }
}

impl ClientHandler for Questions {
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let request: Option<ForwardedRequest> = request.params_as().ok().flatten();
        let request = request.ok_or_else(not_found)?;
        let answer = tokio::select! {
            answer = self.answer(&request) => answer,
            // rmcp sends no answer to a request that the server cancelled.
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
            let message = format!("its params have {bytes} bytes, over the limit of {max}");
            return Err(ErrorData::invalid_params(message, None));
        }
        Ok(kind)
    }
}

impl Wanted<'_> {
    /// The answer without asking the caller, if it does not offer this or the page cannot be shown.
    pub(crate) fn declined(self, offers: Offers) -> Option<Result<Value, ErrorData>> {
        let invalid = |message: String| Some(Err(ErrorData::invalid_params(message, None)));
        let params = self.params;
        match self.kind {
            WantedKind::Elicit if !offers.form && !offers.url => {
                // "decline" would say that a person refused.
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

    pub(crate) fn is_page(self) -> bool {
        self.kind == WantedKind::Elicit && mode(self.params) == "url"
    }

    /// Turns the caller's answer into the protocol's form.
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
            // The specification's code for a refusal.
            (_, Err(refusal)) => Err(ErrorData::new(ErrorCode(-1), refusal.to_string(), None)),
        }
    }
}

pub(crate) fn is_accepted(answer: &Value) -> bool {
    answer["action"] == "accept"
}

/// The mode of an elicitation. Default: a form.
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

/// Why a page's URL cannot be opened, if so.
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
