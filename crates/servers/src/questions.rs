//! A server's questions: forms, pages, model messages, folders. Each goes to the caller that it
//! is for, or is declined in the protocol's own way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use rmcp::ClientHandler;
use rmcp::model::{CustomRequest, CustomResult, ErrorCode, ErrorData};
use rmcp::service::{RequestContext, RoleClient};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::caller::{Caller, Offers, Refusal, Wanted, WantedKind};
use crate::form;
use crate::json_rpc::MAX_VALUE_BYTES;
use crate::pages::{self, Pages};
use crate::request::Asking;
use crate::tap::{Asked, Tap};

/// Questions of one server at a time. More are refused.
const MAX_QUESTIONS: usize = 16;
/// Questions to a person or a model from one call to the next.
const MAX_FOR_CALL: usize = 160;
/// The longest parameters of a question, in bytes; a sampling request brings a conversation.
const MAX_SMALL_BYTES: usize = 64 << 10;

/// The questions of one connection.
#[derive(Debug)]
pub(crate) struct Questions {
    server: Arc<str>,
    /// The host's own caller, for questions that belong to no call.
    caller: Arc<dyn Caller>,
    /// What was announced when the connection was made.
    offers: Offers,
    pub(crate) pages: Arc<Pages>,
    asking: Asking,
    places: Semaphore,
    for_call: AtomicUsize,
}

impl Questions {
    pub(crate) fn new(server: Arc<str>, caller: Arc<dyn Caller>, asking: Asking) -> Self {
        Self {
            server,
            offers: caller.offers(),
            caller,
            pages: Arc::default(),
            asking,
            places: Semaphore::new(MAX_QUESTIONS),
            for_call: AtomicUsize::new(0),
        }
    }

    /// Begins a call, for which the server may ask anew.
    pub(crate) fn begin_call(&self) {
        self.for_call.store(0, Ordering::Relaxed);
    }

    /// Answers one question.
    async fn answer(&self, asked: &Asked, tap: &Tap) -> Result<Value, ErrorData> {
        let (who, calls) = tap.caller(asked.stream.as_ref());
        let is_own = who.is_none();
        let tool = who.as_ref().map(|who| &*who.tool);
        let tool = tool.filter(|tool| !tool.is_empty());
        let question = Wanted::read(&asked.method, &self.server, tool, None, &asked.params);
        let question = question.ok_or_else(not_found)?;
        question.check_size(asked.bytes)?;
        let caller = who.as_ref().map_or(&self.caller, |who| &who.caller);
        // What was announced may be asked for, whichever caller it is.
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
            if is_own {
                std::future::pending::<()>().await;
            }
            join_all(calls.iter().map(CancellationToken::cancelled)).await;
        };
        tokio::select! {
            biased;
            answer = question.ask(&**caller, &self.pages) => answer.map(|(answer, _)| answer),
            () = over => question.answered(Err(Refusal::Cancelled)),
            _ = lost.wait_for(Option::is_some) => question.answered(Err(Refusal::Cancelled)),
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

impl<'a> Wanted<'a> {
    /// A server's request; `None` if clients know none with this method.
    pub(crate) fn read(
        method: &str,
        server: &'a str,
        tool: Option<&'a str>,
        key: Option<&'a str>,
        params: &'a Value,
    ) -> Option<Self> {
        let kinds = [WantedKind::Elicit, WantedKind::Sample, WantedKind::Roots];
        let kind = kinds.into_iter().find(|kind| kind.method() == method)?;
        let wanted = Self::new(kind, server, tool, params);
        Some(Self { key, ..wanted })
    }

    /// Refuses parameters that are too long.
    pub(crate) fn check_size(self, bytes: usize) -> Result<(), ErrorData> {
        let most = match self.kind {
            WantedKind::Sample => MAX_VALUE_BYTES,
            WantedKind::Elicit | WantedKind::Roots => MAX_SMALL_BYTES,
        };
        if bytes > most {
            let message = format!("its params have {bytes} bytes, and {most} are the most");
            return Err(ErrorData::invalid_params(message, None));
        }
        Ok(())
    }

    /// The answer to a question that is not offered, or cannot be shown.
    pub(crate) fn declined(self, offers: Offers) -> Option<Result<Value, ErrorData>> {
        let invalid = |message: String| Some(Err(ErrorData::invalid_params(message, None)));
        let params = self.params;
        match self.kind {
            WantedKind::Elicit if !offers.form && !offers.url => {
                Some(Ok(json!({ "action": "decline" })))
            }
            WantedKind::Elicit => match mode(params) {
                "form" if offers.form => None,
                "url" if offers.url => pages::address_fault(params).and_then(invalid),
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

    /// Whether it asks to open a page.
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
            (WantedKind::Elicit, Err(Refusal::Cancelled)) => Ok(json!({ "action": "cancel" })),
            (WantedKind::Elicit, Err(_)) => Ok(json!({ "action": "decline" })),
            (_, Err(Refusal::Unsupported)) => Err(not_found()),
            // The code that the specification gives for it.
            (_, Err(refusal)) => Err(ErrorData::new(ErrorCode(-1), refusal.to_string(), None)),
        }
    }

    /// Asks the caller. With the answer comes what tells that an opened page is done.
    pub(crate) async fn ask(
        self,
        caller: &dyn Caller,
        pages: &Pages,
    ) -> Result<(Value, Option<watch::Receiver<bool>>), ErrorData> {
        let done = self.is_page().then(|| pages.show(self.params)).flatten();
        let answer = self.answered(caller.answer(self).await)?;
        let done = done.filter(|_| is_accepted(&answer));
        if let Some(done) = &done
            && let Some(id) = pages::page_id(self.params)
            && let Some(hears) = caller.page_opened(self.server, id)
        {
            let mut done = done.clone();
            tokio::spawn(async move {
                // An error means that the page was forgotten.
                if done.wait_for(|done| *done).await.is_ok() {
                    hears();
                }
            });
        }
        Ok((answer, done))
    }
}

/// Whether a person agreed.
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
