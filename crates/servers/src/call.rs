//! `tools/call`: the check of the definition, the rounds in which the server asks for input, and
//! the pages it asks to open.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use callgate_policy::DefinitionHash;
use futures::future::{OptionFuture, join_all};
use rmcp::model::{ErrorCode, ErrorData};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::caller::{Caller, Opened, Refusal, Wanted, WantedKind};
use crate::clock::Clock;
use crate::failure::{CallFailure, FailureKind};
use crate::json_rpc::MAX_VALUE_BYTES;
use crate::list::{CurrentList, misfit};
use crate::questions::{self, is_accepted};
use crate::request::{Request, Session};
use crate::slot::CallContext;

/// The rounds of input that one call may take.
const MAX_ROUNDS: u32 = 10;
/// The questions of one result.
const MAX_INPUTS: usize = 16;
const MAX_STATE_BYTES: usize = 1 << 20;
/// The wait before a call is made again for which the server asks nothing.
const PAUSE: Duration = Duration::from_millis(500);
/// The pages that one call may ask for.
const MAX_PAGES: usize = 16;
const MAX_SHOWN_URL: usize = 500;
/// The time a person has at the pages of a call.
const PAGE_PATIENCE: Duration = Duration::from_secs(15 * 60);
/// The time a server has to take the level of its log messages.
const LOGS_PATIENCE: Duration = Duration::from_secs(1);
/// The server asks for pages to be opened before the call.
const PAGES_REQUIRED: ErrorCode = ErrorCode(-32042);

/// A call as the host makes it.
#[derive(Debug, Clone)]
pub struct ToolCall<'a> {
    /// The server's name.
    pub server: &'a str,
    /// The tool's own name.
    pub tool: &'a str,
    /// The definition that was decided on.
    pub definition: &'a DefinitionHash,
    /// A JSON object.
    pub arguments: &'a str,
    /// The caller; `None` for the server's own ([`ServerSpec::caller`](crate::ServerSpec::caller)).
    pub caller: Option<Arc<dyn Caller>>,
    /// The longest the call may take, if that is less than the server's own limit.
    pub limit: Option<Duration>,
}

/// The members of a result that is not the end of a call (2026-07-28).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Interim<'a> {
    #[serde(borrow, default)]
    result_type: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    input_requests: Option<&'a RawValue>,
    /// A JSON string, sent back as it came.
    #[serde(borrow, default)]
    request_state: Option<&'a RawValue>,
}

/// One call on one connection.
pub(crate) struct Round<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) call: &'a ToolCall<'a>,
    pub(crate) caller: &'a Arc<dyn Caller>,
    /// The server's current list.
    pub(crate) list: &'a CurrentList,
    /// True if the server has taken the call, and asked for something.
    pub(crate) taken: bool,
}

impl Round<'_> {
    /// Makes the call, as often as the server asks for input, and returns the `result` of its last
    /// answer.
    pub(crate) async fn run(&mut self, clock: &mut Clock) -> Result<Box<RawValue>, CallFailure> {
        let (session, call) = (self.session, self.call);
        self.ask_for_logs(clock.left()).await;
        session.questions.begin_call();
        let head = format!(
            r#""name":{},"arguments":{}"#,
            Value::from(call.tool),
            call.arguments
        );
        let mut values = json!({ "name": call.tool, "arguments": {} });
        if session.mirrors() {
            let arguments = serde_json::from_str(call.arguments);
            values["arguments"] = arguments.unwrap_or_default();
        }
        let (mut made, mut opened) = (0, false);
        let mut input = String::new();
        while made <= MAX_ROUNDS {
            // A person may have been asked for long.
            self.list.check(call, self.taken)?;
            let request = Request {
                members: Some(format!("{head}{input}")),
                who: Some(self.who()),
                ..Request::new("tools/call", values.clone())
            };
            let result = match session.request_within(request, clock).await {
                Ok(result) => result,
                Err(failure) => match required_pages(&failure).filter(|_| !opened) {
                    Some((error, pages)) => {
                        self.open_pages(error, pages).await?;
                        opened = true;
                        made += 1;
                        continue;
                    }
                    None => return Err(failure),
                },
            };
            self.taken = true;
            // A result that is not an object has no members.
            let interim: Option<Interim<'_>> = serde_json::from_str(result.get())
                .ok()
                .filter(|_| session.is_stateless());
            let kind = interim
                .as_ref()
                .and_then(|interim| interim.result_type.as_deref());
            let wanted = match (kind, &interim) {
                (Some("input_required"), Some(wanted)) => wanted,
                (None | Some("complete"), _) => return Ok(result),
                (Some("task"), _) => return self.follow(&result, clock).await,
                (Some(_), _) => {
                    let reason = "its resultType is none that clients know";
                    return Err(CallFailure::malformed(reason));
                }
            };
            input.clear();
            if self.add_input(wanted, &mut input).await? {
                made += 1;
                continue;
            }
            clock.pause(PAUSE).await?;
        }
        Err(CallFailure::input(format!(
            "the tool still wants input after {MAX_ROUNDS} rounds of it"
        )))
    }

    /// Asks a server of an older revision for the log messages that are heard.
    async fn ask_for_logs(&self, max: Duration) {
        let session = self.session;
        let Some(level) = session.log_level(Some(&**self.caller)) else {
            return;
        };
        let is_asked = session.logs.fetch_min(level as u8, Ordering::Relaxed) <= level as u8;
        if !session.is_stateless() && !is_asked {
            let request = Request::new("logging/setLevel", json!({ "level": level }));
            // A server that does not answer logs what it did before.
            let _ = session.request(request, LOGS_PATIENCE.min(max)).await;
        }
    }

    /// Answers everything that a map of requests asks for.
    pub(crate) async fn inputs(
        &self,
        requests: &Map<String, Value>,
    ) -> Result<(Value, usize), CallFailure> {
        if requests.len() > MAX_INPUTS {
            let many = requests.len();
            return Err(CallFailure::input(format!(
                "the tool asks for {many} things at once, and {MAX_INPUTS} are the most"
            )));
        }
        let offers = self.caller.offers();
        let cannot = |method: &str, error: ErrorData| {
            CallFailure::input(format!(
                "the tool asks for {method}, which it cannot have: {}",
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
            let (server, tool) = (&self.session.server, Some(self.call.tool));
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

    /// Adds what a result asks for to the next round; false if the call is only to be made again
    /// later.
    async fn add_input(
        &self,
        wanted: &Interim<'_>,
        input: &mut String,
    ) -> Result<bool, CallFailure> {
        let malformed = |reason: String| Err(CallFailure::malformed(reason));
        if wanted.input_requests.is_none() && wanted.request_state.is_none() {
            return malformed("it wants input and does not say which".to_owned());
        }
        if let Some(requests) = wanted.input_requests {
            let (answers, pages) = self.inputs(&read_requests(requests)?).await?;
            if pages > 0 {
                let back = self.back_from(pages, None::<std::future::Pending<()>>);
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

    /// Has the caller open the pages that the call was refused for, and waits until the server or
    /// the person says that they are done.
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
        // The server may say that a page is done before the person has answered.
        let done = || -> Vec<_> { pages.iter().map(|page| questions.page_done(page)).collect() };
        let (done, heard) = (done(), done());
        let method = WantedKind::Elicit.method();
        let request = |page: &Value| json!({ "method": method, "params": page });
        let requests = pages.iter().enumerate();
        let requests = requests.map(|(number, page)| (number.to_string(), request(page)));
        let asked = self.inputs(&requests.collect()).await;
        let (_, opened) = asked.map_err(|failure| refused(&failure.to_string()))?;
        if opened < pages.len() {
            return Err(refused("the user did not open its page"));
        }
        for (page, heard) in pages.iter().zip(heard) {
            questions.follow_page(&**self.caller, page, heard);
        }
        let mut lost = self.session.tap.lost();
        let told = async {
            tokio::select! {
                biased;
                _ = join_all(done) => {}
                // The refused call was not carried out: it is made on another connection.
                _ = lost.wait_for(Option::is_some) => {}
            }
        };
        let back = self.back_from(pages.len(), Some(told));
        back.await.map_err(|why| refused(&why))
    }

    /// Waits until a person is done at pages, or until the server tells so, if it does.
    async fn back_from(
        &self,
        pages: usize,
        told: Option<impl Future<Output = ()>>,
    ) -> Result<(), String> {
        let _asking = self.session.questions.asking.begin();
        let back = self.caller.back_from(Opened {
            server: &self.session.server,
            tool: self.call.tool,
            pages,
            is_told: told.is_some(),
        });
        let told = OptionFuture::from(told);
        let over = async {
            tokio::select! {
                biased;
                Some(()) = told => Ok(()),
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

    pub(crate) fn who(&self) -> CallContext {
        CallContext {
            caller: Arc::clone(self.caller),
            tool: self.call.tool.into(),
        }
    }
}

/// The requests of a result, by the server's own names.
pub(crate) fn read_requests(requests: &RawValue) -> Result<Map<String, Value>, CallFailure> {
    let bytes = requests.get().len();
    if bytes > MAX_VALUE_BYTES {
        return Err(CallFailure::input(format!(
            "the tool asks for things in {bytes} bytes, and {MAX_VALUE_BYTES} are the most"
        )));
    }
    serde_json::from_str(requests.get()).map_err(|error| CallFailure::malformed(misfit(&error)))
}

/// The pages that have to be opened before a call that was refused; none if one is not valid.
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
