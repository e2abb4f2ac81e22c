//! `tools/call`: the check of the definition, the rounds in which the server asks for input, and
//! the pages that it asks to open.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use callgate_schema::json_fault;
use futures::future::{OptionFuture, join_all};
use rmcp::model::{ErrorCode, ErrorData};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::caller::{Caller, Opened, Refusal, Wanted, WantedKind};
use crate::clock::Clock;
use crate::current_list::CurrentList;
use crate::failure::{CallFailure, FailureKind};
use crate::json_rpc::MAX_VALUE_BYTES;
use crate::questions::{self, is_accepted};
use crate::request::{Request, Session};
use crate::slot::CallContext;
use crate::tool_call::ToolCall;

/// Rounds of input of one call.
const MAX_ROUNDS: u32 = 10;
/// Questions of one result.
const MAX_INPUTS: usize = 16;
const MAX_STATE_BYTES: usize = 1 << 20;
/// The wait before a round without input.
const PAUSE: Duration = Duration::from_millis(500);
/// Pages of one call.
const MAX_PAGES: usize = 16;
/// Characters of a URL that a message repeats.
const MAX_SHOWN_URL: usize = 500;
/// A person's time limit at the pages of a call.
const PAGE_PATIENCE: Duration = Duration::from_secs(15 * 60);
/// The time limit for setting a server's log level.
const LOGS_PATIENCE: Duration = Duration::from_secs(1);
/// The error code for pages that must be opened before the call.
const PAGES_REQUIRED: ErrorCode = ErrorCode(-32042);

/// The members of a result that may not be the end of a call (2026-07-28).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Interim<'a> {
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    input_requests: Option<&'a RawValue>,
    /// A JSON string that is sent back unchanged.
    #[serde(borrow, default)]
    request_state: Option<&'a RawValue>,
}

/// One call on one connection.
pub(crate) struct ActiveCall<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) call: &'a ToolCall<'a>,
    pub(crate) caller: &'a Arc<dyn Caller>,
    /// The server's current list.
    pub(crate) list: &'a CurrentList,
    /// True if the server has accepted the call, and asked for input.
    pub(crate) taken: bool,
}

impl ActiveCall<'_> {
    /// Makes the call, as often as the server asks for input, and returns the `result` of its last
    /// answer.
    pub(crate) async fn run(&mut self, clock: &mut Clock) -> Result<Box<RawValue>, CallFailure> {
        let (session, call) = (self.session, self.call);
        self.set_log_level(clock.left()).await;
        session.questions.begin_call();
        let head = format!(
            r#""name":{},"arguments":{}"#,
            Value::from(call.tool),
            call.arguments
        );
        let mut values = json!({ "name": call.tool, "arguments": {} });
        if session.mirrors_arguments() {
            let arguments = serde_json::from_str(call.arguments);
            values["arguments"] = arguments.unwrap_or_default();
        }
        let (mut rounds, mut opened) = (0, false);
        let mut input = String::new();
        while rounds <= MAX_ROUNDS {
            // The definition may have changed while a person was asked.
            self.list.check(call, self.taken)?;
            let request = Request {
                members: Some(format!("{head}{input}")),
                context: Some(self.context()),
                ..Request::new("tools/call", values.clone())
            };
            let result = match session.send(request, Some(&mut *clock)).await {
                Ok((result, _)) => result,
                Err(failure) => match required_pages(&failure).filter(|_| !opened) {
                    Some((error, pages)) => {
                        self.open_pages(error, pages).await?;
                        opened = true;
                        rounds += 1;
                        continue;
                    }
                    None => return Err(failure),
                },
            };
            self.taken = true;
            let interim = interim(&result).filter(|_| session.is_stateless());
            let kind = interim.as_ref().and_then(|it| it.result_type.as_deref());
            let wanted = match (kind, &interim) {
                (Some("input_required"), Some(wanted)) => wanted,
                (None | Some("complete"), _) => return Ok(result),
                (Some("task"), _) => return self.follow_task(&result, clock).await,
                (Some(_), _) => {
                    let reason = "its resultType is unknown";
                    return Err(CallFailure::malformed(reason));
                }
            };
            input.clear();
            if self.add_input(wanted, &mut input).await? {
                rounds += 1;
            } else {
                clock.pause(PAUSE).await?;
            }
        }
        Err(CallFailure::input(format!(
            "the tool still wants input after {MAX_ROUNDS} rounds of it"
        )))
    }

    /// Sets the log level of a server of an older revision.
    async fn set_log_level(&self, max: Duration) {
        let session = self.session;
        let Some(level) = session.log_level(Some(&**self.caller)) else {
            return;
        };
        let is_set = session.logs.fetch_min(level as u8, Ordering::Relaxed) <= level as u8;
        if !session.is_stateless() && !is_set {
            let request = Request::new("logging/setLevel", json!({ "level": level }));
            // If the server does not answer, its level stays as it was.
            let _ = session.request(request, LOGS_PATIENCE.min(max)).await;
        }
    }

    /// Answers the requests of a result. Also returns the number of pages that the person opens.
    pub(crate) async fn answer_inputs(
        &self,
        requests: &Map<String, Value>,
    ) -> Result<(Value, usize), CallFailure> {
        if requests.len() > MAX_INPUTS {
            let many = requests.len();
            return Err(CallFailure::input(format!(
                "the tool asks for {many} things at once, over the limit of {MAX_INPUTS}"
            )));
        }
        let offers = self.caller.offers();
        let cannot = |method: &str, error: ErrorData| {
            CallFailure::input(format!(
                "the tool asks for {method}, which is not possible: {}",
                error.message
            ))
        };
        let (mut answers, mut asked) = (Map::new(), Vec::new());
        let none = json!({});
        for (key, request) in requests {
            let method = request["method"].as_str().unwrap_or_default();
            let params = request.get("params").unwrap_or(&none);
            let kind = WantedKind::of(method, params.to_string().len());
            let kind = kind.map_err(|error| cannot(method, error))?;
            let (server, tool) = (&self.session.tap.server, Some(self.call.tool));
            let question = Wanted {
                key: Some(key),
                ..Wanted::new(kind, server, tool, params)
            };
            match question.declined(offers) {
                Some(Ok(declined)) => drop(answers.insert(key.clone(), declined)),
                Some(Err(error)) => return Err(cannot(method, error)),
                None => asked.push((key, method, question)),
            }
        }
        let mut pages = 0;
        if !asked.is_empty() {
            let wanted = asked.iter().map(|(.., question)| *question).collect();
            let asking = self.session.questions.asking.begin();
            let mut given = self.caller.answers(wanted).await.into_iter();
            drop(asking);
            for (key, method, question) in asked {
                let answer = given.next().unwrap_or(Err(Refusal::Cancelled));
                let answer = question
                    .answered(answer)
                    .map_err(|error| cannot(method, error))?;
                pages += usize::from(question.is_page() && is_accepted(&answer));
                answers.insert(key.clone(), answer);
            }
        }
        Ok((answers.into(), pages))
    }

    /// Adds the requested input to the next round. False if the result asks only for a later
    /// repetition.
    async fn add_input(
        &self,
        wanted: &Interim<'_>,
        input: &mut String,
    ) -> Result<bool, CallFailure> {
        let malformed = |reason: String| Err(CallFailure::malformed(reason));
        if wanted.input_requests.is_none() && wanted.request_state.is_none() {
            return malformed("it wants input and does not name it".to_owned());
        }
        if let Some(requests) = wanted.input_requests {
            let (answers, pages) = self.answer_inputs(&read_requests(requests)?).await?;
            if pages > 0 {
                let back = self.wait_at_pages(pages, None::<std::future::Pending<()>>);
                back.await.map_err(CallFailure::input)?;
            }
            input.push_str(r#","inputResponses":"#);
            input.push_str(&answers.to_string());
        }
        if let Some(state) = wanted.request_state {
            if state.get().len() > MAX_STATE_BYTES || !state.get().starts_with('"') {
                return malformed(format!(
                    "its requestState is not text of up to {MAX_STATE_BYTES} bytes"
                ));
            }
            input.push_str(r#","requestState":"#);
            input.push_str(state.get());
        }
        Ok(wanted.input_requests.is_some())
    }

    /// Has the caller open the pages that a refused call requires, and waits until the server or
    /// the person reports them as finished.
    async fn open_pages(&self, error: &ErrorData, pages: &[Value]) -> Result<(), CallFailure> {
        let refused = |why: &str| {
            let mut error = error.clone();
            error.message = format!("{}; {why}", error.message).into();
            CallFailure::refused(error)
        };
        let questions = &self.session.questions;
        if !questions.offers.and(self.caller.offers()).url {
            let shown: Vec<String> = pages.iter().map(shown_url).collect();
            let shown = shown.join(" and ");
            let why = format!("there is no one to ask, so open {shown} and call again");
            return Err(refused(&why));
        }
        // The server may report a page as finished before the person has answered.
        let wait = || -> Vec<_> { pages.iter().map(|page| questions.page_done(page)).collect() };
        let (done, done_for_caller) = (wait(), wait());
        let method = WantedKind::Elicit.method();
        let request = |page: &Value| json!({ "method": method, "params": page });
        let requests = pages.iter().enumerate();
        let requests = requests.map(|(number, page)| (number.to_string(), request(page)));
        let asked = self.answer_inputs(&requests.collect()).await;
        let (_, opened) = asked.map_err(|failure| refused(&failure.to_string()))?;
        if opened < pages.len() {
            return Err(refused("the user did not open its page"));
        }
        for (page, done) in pages.iter().zip(done_for_caller) {
            questions.follow_page(&**self.caller, page, done);
        }
        let mut lost = self.session.tap.lost();
        let reported = async {
            tokio::select! {
                biased;
                _ = join_all(done) => {}
                // The refused call was not carried out, so a new connection repeats it.
                _ = lost.wait_for(Option::is_some) => {}
            }
        };
        let back = self.wait_at_pages(pages.len(), Some(reported));
        back.await.map_err(|why| refused(&why))
    }

    /// Waits until the person or the server (`reported`) reports the pages as finished. The error
    /// is a clause about the person.
    async fn wait_at_pages(
        &self,
        pages: usize,
        reported: Option<impl Future<Output = ()>>,
    ) -> Result<(), String> {
        let _asking = self.session.questions.asking.begin();
        let back = self.caller.back_from(Opened {
            server: &self.session.tap.server,
            tool: self.call.tool,
            pages,
            is_reported: reported.is_some(),
        });
        let reported = OptionFuture::from(reported);
        let over = async {
            tokio::select! {
                biased;
                Some(()) = reported => Ok(()),
                back = back => back,
            }
        };
        match timeout(PAGE_PATIENCE, over).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err("the user gave its page up".to_owned()),
            Err(_) => {
                let minutes = PAGE_PATIENCE.as_secs() / 60;
                Err(format!(
                    "the user was not done at its page within {minutes} minutes"
                ))
            }
        }
    }

    pub(crate) fn context(&self) -> CallContext {
        CallContext {
            caller: Arc::clone(self.caller),
            tool: self.call.tool.into(),
        }
    }
}

fn interim(result: &RawValue) -> Option<Interim<'_>> {
    serde_json::from_str(result.get()).ok()
}

/// The requests of a result, by the server's keys.
pub(crate) fn read_requests(requests: &RawValue) -> Result<Map<String, Value>, CallFailure> {
    let bytes = requests.get().len();
    if bytes > MAX_VALUE_BYTES {
        return Err(CallFailure::input(format!(
            "the tool's requests have {bytes} bytes, over the limit of {MAX_VALUE_BYTES}"
        )));
    }
    serde_json::from_str(requests.get()).map_err(|error| CallFailure::malformed(json_fault(&error)))
}

/// The pages that a refused call requires; `None` if one of them is not valid.
fn required_pages(failure: &CallFailure) -> Option<(&ErrorData, &[Value])> {
    let FailureKind::Refused(error) = &failure.kind else {
        return None;
    };
    let listed = error.data.as_ref()?["elicitations"].as_array()?;
    let is_page = |page: &Value| {
        page["mode"] == "url"
            && questions::address_fault(page).is_none()
            && questions::page_id(page).is_some()
    };
    let is_usable = error.code == PAGES_REQUIRED
        && (1..=MAX_PAGES).contains(&listed.len())
        && listed.iter().all(is_page);
    is_usable.then_some((&**error, listed.as_slice()))
}

fn shown_url(page: &Value) -> String {
    let url = page["url"].as_str().unwrap_or_default();
    format!("{:?}", url.chars().take(MAX_SHOWN_URL).collect::<String>())
}
