//! `tools/call`: the check of the definition, the rounds in which the server asks for input, and
//! the pages it asks to open.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use callgate_policy::DefinitionHash;
use rmcp::model::{ErrorCode, ErrorData};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::caller::{Caller, Opened, Refusal, Wanted, WantedKind};
use crate::failure::{CallFailure, FailureKind};
use crate::json_rpc::MAX_VALUE_BYTES;
use crate::list::{CurrentList, misfit};
use crate::pages;
use crate::questions::{Questions, is_accepted};
use crate::request::{Clock, Request, Session};
use crate::slot::Who;
use crate::tasks::{Step, Task};

/// The rounds of input that one call may take.
const MAX_ROUNDS: u32 = 10;
/// The questions of one result.
const MAX_INPUTS: usize = 16;
const MAX_STATE_BYTES: usize = 1 << 20;
/// The wait before a call is made again for which the server asks nothing; it doubles up to 6.4 s.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGER_PAUSES: u32 = 6;
/// The pages that one call may ask for.
const MAX_PAGES: usize = 16;
const MAX_SHOWN_URL: usize = 500;
/// The time a person has at the pages of a call.
const PAGE_PATIENCE: Duration = Duration::from_secs(15 * 60);
/// The time a server has to take the level of its log messages.
const LOGS_PATIENCE: Duration = Duration::from_secs(1);
/// The server asks for pages to be opened before the call.
const PAGES_REQUIRED: ErrorCode = ErrorCode(-32042);

/// One call of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Call<'a> {
    pub(crate) tool: &'a str,
    /// A JSON object.
    pub(crate) arguments: &'a str,
    pub(crate) caller: Arc<dyn Caller>,
    /// The definition that was decided on.
    pub(crate) definition: &'a DefinitionHash,
    /// The server's current list.
    pub(crate) list: &'a CurrentList,
}

/// The members of a result that asks for input.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputRequired<'a> {
    #[serde(borrow, default)]
    input_requests: Option<&'a RawValue>,
    /// A JSON string, sent back as it came.
    #[serde(borrow, default)]
    request_state: Option<&'a RawValue>,
}

impl Call<'_> {
    fn who(&self) -> Who {
        Who::new(Arc::clone(&self.caller), self.tool)
    }
}

/// One call on one connection.
pub(crate) struct Round<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) questions: &'a Questions,
    pub(crate) call: &'a Call<'a>,
    /// Whether the server has taken the call, and asked for something.
    pub(crate) taken: bool,
}

impl Round<'_> {
    /// Makes the call, as often as the server asks for input, and returns the `result` of its last
    /// answer.
    pub(crate) async fn run(&mut self, clock: &mut Clock) -> Result<Box<RawValue>, CallFailure> {
        let (session, call) = (self.session, self.call);
        self.ask_for_logs(clock.left()).await;
        self.questions.begin_call();
        let head = format!(
            r#""name":{},"arguments":{}"#,
            Value::from(call.tool),
            call.arguments
        );
        let mut values = json!({ "name": call.tool, "arguments": {} });
        if session.mirrors() && call.list.has_headers(call.tool) {
            let arguments = serde_json::from_str(call.arguments);
            values["arguments"] = arguments.unwrap_or_default();
        }
        let (mut made, mut waited, mut opened) = (0, 0, false);
        let mut input = String::new();
        while made <= MAX_ROUNDS {
            // A person may have been asked for long.
            call.list.check(call.tool, call.definition, self.taken)?;
            let request = Request {
                members: Some(format!("{head}{input}")),
                who: Some(call.who()),
                ..Request::new("tools/call", values.clone())
            };
            let result = match session.request_within(request, clock).await {
                Ok(result) => result,
                Err(failure) => match &failure.kind {
                    FailureKind::Refused(error) if !opened && are_pages_required(error) => {
                        self.open_pages(error).await?;
                        opened = true;
                        made += 1;
                        continue;
                    }
                    _ => return Err(failure),
                },
            };
            self.taken = true;
            match self.kind(&result)? {
                Answered::Complete => return Ok(result),
                Answered::Task => return self.follow(&result, clock).await,
                Answered::InputRequired => {}
            }
            input.clear();
            if self.add_input(&result, &mut input).await? {
                made += 1;
                continue;
            }
            let pause = FIRST_PAUSE.saturating_mul(1 << waited.min(LONGER_PAUSES));
            clock.pause(pause).await?;
            waited = waited.saturating_add(1);
        }
        Err(CallFailure::input(format!(
            "the tool still wants input after {MAX_ROUNDS} rounds of it"
        )))
    }

    /// Asks a server of an older revision for the log messages that the caller hears.
    async fn ask_for_logs(&self, most: Duration) {
        let session = self.session;
        let is_older = session.agreed.logging && !session.is_stateless();
        let Some(level) = self.call.caller.logs().filter(|_| is_older) else {
            return;
        };
        if session.logs.fetch_min(level as u8, Ordering::Relaxed) > level as u8 {
            let limit = LOGS_PATIENCE.min(most);
            // A server that does not answer logs what it did before.
            let _ = session.request(Session::log_request(level), limit).await;
        }
    }

    /// Follows a task to its end.
    async fn follow(
        &self,
        answer: &RawValue,
        clock: &mut Clock,
    ) -> Result<Box<RawValue>, CallFailure> {
        let mut task = Task::new(self.session, self.call.who(), answer)?;
        loop {
            match task.poll(clock).await? {
                Step::Working => {}
                Step::Done(result) => return Ok(result),
                Step::Wants(requests) => {
                    let mut requests = read_requests(&requests)?;
                    requests.retain(|key, _| !task.has_answered(key));
                    if !requests.is_empty() {
                        let (answers, _) = self.inputs(&requests).await?;
                        task.answer(&answers, clock).await?;
                    }
                }
            }
        }
    }

    /// Answers everything that a map of requests asks for.
    async fn inputs(&self, requests: &Map<String, Value>) -> Result<(Value, usize), CallFailure> {
        if requests.len() > MAX_INPUTS {
            let many = requests.len();
            return Err(CallFailure::input(format!(
                "the tool asks for {many} things at once, and {MAX_INPUTS} are the most"
            )));
        }
        let offers = self.call.caller.offers();
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
            let (server, tool) = (&self.session.server, Some(self.call.tool));
            let Some(question) = Wanted::read(method, server, tool, Some(key), params) else {
                let reason = "the tool asks for something that clients do not know";
                return Err(CallFailure::input(reason));
            };
            let size = question.check_size(params.to_string().len());
            size.map_err(|error| cannot(method, error))?;
            match question.declined(offers) {
                Some(Ok(declined)) => drop(answers.insert(key.clone(), declined)),
                Some(Err(error)) => return Err(cannot(method, error)),
                None => asked.push((key, method, question)),
            }
        }
        let mut pages = 0;
        if !asked.is_empty() {
            let wanted = asked.iter().map(|(.., question)| *question).collect();
            let asking = self.session.asking.begin();
            let mut given = self.call.caller.answers(wanted).await.into_iter();
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
    async fn add_input(&self, result: &RawValue, input: &mut String) -> Result<bool, CallFailure> {
        let malformed = |reason: String| Err(CallFailure::malformed(reason));
        let wanted: InputRequired<'_> = serde_json::from_str(result.get())
            .map_err(|error| CallFailure::malformed(misfit(&error)))?;
        if wanted.input_requests.is_none() && wanted.request_state.is_none() {
            return malformed("it wants input and does not say which".to_owned());
        }
        if let Some(requests) = wanted.input_requests {
            let (answers, pages) = self.inputs(&read_requests(requests)?).await?;
            if pages > 0 {
                let _asking = self.session.asking.begin();
                let back = self.call.caller.back_from(self.opened(pages, false));
                in_time(back).await.map_err(CallFailure::input)?;
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
    async fn open_pages(&self, error: &ErrorData) -> Result<(), CallFailure> {
        let refused = |why: &str| {
            let mut error = error.clone();
            error.message = format!("{}; {why}", error.message).into();
            CallFailure::refused(error)
        };
        let pages = required_pages(error);
        if !(self.session.offers.url && self.call.caller.offers().url) {
            let shown: Vec<String> = pages.iter().map(|page| shown_url(page)).collect();
            let shown = shown.join(" and ");
            let why = format!("there is no one to ask, so open {shown} and call again");
            return Err(refused(&why));
        }
        let _asking = self.session.asking.begin();
        let mut lost = self.session.tap.lost();
        let opened = async {
            let mut done = Vec::new();
            for params in &pages {
                let (server, tool) = (&self.session.server, Some(self.call.tool));
                let question = Wanted::new(WantedKind::Elicit, server, tool, params);
                let asked = question
                    .ask(&*self.call.caller, &self.questions.pages)
                    .await;
                let (answer, page) = asked.map_err(|error| {
                    refused(&format!("its page could not be shown: {}", error.message))
                })?;
                match answer["action"].as_str() {
                    Some("accept") => done.extend(page),
                    Some("decline") => return Err(refused("the user declined to open its page")),
                    _ => return Err(refused("the user did not open its page")),
                }
            }
            let told = async {
                for page in &mut done {
                    if page.wait_for(|done| *done).await.is_err() {
                        // The page was forgotten, so the server will not be heard.
                        std::future::pending::<()>().await;
                    }
                }
            };
            let back = self.call.caller.back_from(self.opened(pages.len(), true));
            let over = async {
                tokio::select! {
                    biased;
                    () = told => Ok(()),
                    back = back => back,
                }
            };
            in_time(over).await.map_err(|why| refused(&why))
        };
        tokio::select! {
            biased;
            opened = opened => opened,
            // The refused call was not carried out: it can be made on another connection.
            _ = lost.wait_for(Option::is_some) => {
                Err(CallFailure::closed("the server ended", false))
            }
        }
    }

    fn opened(&self, pages: usize, is_told: bool) -> Opened<'_> {
        Opened {
            server: &self.session.server,
            tool: self.call.tool,
            pages,
            is_told,
        }
    }

    /// The kind of a result. Large results are not parsed for it.
    fn kind(&self, result: &RawValue) -> Result<Answered, CallFailure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Typed {
            #[serde(default)]
            result_type: Option<String>,
        }
        let text = result.get().as_bytes();
        let complete = br#""resultType":"complete""#;
        if !self.session.is_stateless() || memchr::memmem::find(text, complete).is_some() {
            return Ok(Answered::Complete);
        }
        let typed = serde_json::from_str::<Typed>(result.get());
        match typed.ok().and_then(|typed| typed.result_type).as_deref() {
            None | Some("complete") => Ok(Answered::Complete),
            Some("input_required") => Ok(Answered::InputRequired),
            Some("task") => Ok(Answered::Task),
            Some(_) => {
                let reason = "its resultType is none that clients know";
                Err(CallFailure::malformed(reason))
            }
        }
    }
}

enum Answered {
    Complete,
    InputRequired,
    Task,
}

/// The requests of a result, by the server's own names.
fn read_requests(requests: &RawValue) -> Result<Map<String, Value>, CallFailure> {
    let bytes = requests.get().len();
    if bytes > MAX_VALUE_BYTES {
        return Err(CallFailure::input(format!(
            "the tool asks for things in {bytes} bytes, and {MAX_VALUE_BYTES} are the most"
        )));
    }
    serde_json::from_str(requests.get()).map_err(|error| CallFailure::malformed(misfit(&error)))
}

/// Waits until a person is done at a page.
async fn in_time(back: impl Future<Output = Result<(), Refusal>>) -> Result<(), String> {
    match timeout(PAGE_PATIENCE, back).await {
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

/// Whether a refusal says that pages have to be opened before the call.
fn are_pages_required(error: &ErrorData) -> bool {
    error.code == PAGES_REQUIRED && !required_pages(error).is_empty()
}

/// The pages that a refusal names; none if one of them is not valid.
fn required_pages(error: &ErrorData) -> Vec<&Value> {
    let listed = error
        .data
        .as_ref()
        .and_then(|data| data["elicitations"].as_array());
    let listed: Vec<&Value> = listed.into_iter().flatten().collect();
    let is_page = |page: &&Value| {
        page["mode"] == "url"
            && pages::address_fault(page).is_none()
            && pages::page_id(page).is_some()
    };
    if listed.len() <= MAX_PAGES && listed.iter().all(is_page) {
        listed
    } else {
        Vec::new()
    }
}

fn shown_url(page: &Value) -> String {
    let url = page["url"].as_str().unwrap_or_default();
    let end = url.floor_char_boundary(MAX_SHOWN_URL.min(url.len()));
    format!("{:?}", url.get(..end).unwrap_or_default())
}
