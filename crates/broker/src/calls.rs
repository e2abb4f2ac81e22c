//! `tools/call`, and the rounds it may take: a result that wants input is
//! answered and the call made again, and a task is polled to its end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use memchr::memmem;
use rmcp::model::ErrorData;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::asked::Asking;
use crate::caller::{Caller, Refusal};
use crate::failure::Failure;
use crate::inbox::{Token, Who};
use crate::input::{self, Ask, Asks};
use crate::link::LinkError;
use crate::listed::Decided;
use crate::misfit;
use crate::object::{MAX_VALUE_BYTES, Object, object};
use crate::pages;
use crate::patience::{Clock, Patience};
use crate::session::{Request, Session};
use crate::tasks;

/// The request that calls a tool.
pub(crate) const CALL: &str = "tools/call";

/// How often one call may want input. A server that has not got what it needs
/// by then is going round in circles.
const MAX_ROUNDS: u32 = 10;
/// How much one result may ask for.
const MAX_INPUTS: usize = 16;
/// How much one result may name. That of a task names what has been answered, too.
const MAX_REQUESTS: usize = 1_024;
/// The longest state that is sent back, in bytes of JSON.
const MAX_STATE_BYTES: usize = 1 << 20;
/// How long to wait before a call is made again that wants no input, but only
/// to be made again; doubled each time, up to 6.4 s.
const FIRST_PAUSE: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 100 });
/// How often it is doubled.
const LONGER_PAUSES: u32 = 6;

/// One call of a tool.
#[derive(Clone)]
pub(crate) struct Call<'a> {
    pub(crate) tool: &'a str,
    /// A JSON object.
    pub(crate) arguments: &'a str,
    /// On whose behalf.
    pub(crate) caller: Arc<dyn Caller>,
    pub(crate) patience: Patience,
    /// What was decided on; `None` where nobody knows what the tool is.
    pub(crate) decided: Option<Decided>,
}

impl Call<'_> {
    /// On whose behalf its requests are made.
    pub(crate) fn who(&self) -> Who {
        Who {
            caller: Arc::clone(&self.caller),
            tool: self.tool.into(),
        }
    }
}

/// What a result of the newest revision wants before there is a result.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputRequired<'a> {
    #[serde(borrow, default)]
    input_requests: Option<&'a RawValue>,
    /// A JSON string, sent back as it came.
    #[serde(borrow, default)]
    request_state: Option<&'a RawValue>,
}

/// How far a call has come.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds {
    /// How often it was made again with something that the server wanted.
    made: u32,
    /// How often it was made again only because the server wanted that.
    waited: u32,
    /// Whether the server has taken the call, and not refused it.
    taken: bool,
    pages_opened: bool,
    /// What is added to the call for what the server last wanted.
    input: String,
}

impl Rounds {
    /// Why a call does not go on that had come so far.
    pub(crate) fn failed(&self, failure: Failure) -> Failure {
        match failure {
            // Whatever request it was that did not get there: the call did.
            Failure::Lost(error) if self.taken => Failure::Lost(LinkError {
                sent: true,
                ..error
            }),
            failure => failure,
        }
    }
}

impl Session {
    /// Calls a tool and returns the `result` member of the last answer.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Box<RawValue>, Failure> {
        self.go_on(call, Rounds::default()).await
    }

    /// [`Session::call`] of a call that was refused for its headers when it had come so far.
    pub(crate) async fn go_on(
        &self,
        call: &Call<'_>,
        mut rounds: Rounds,
    ) -> Result<Box<RawValue>, Failure> {
        let Patience { idle, most } = call.patience;
        let called = self.rounds(call, &mut rounds).await;
        called.map_err(|failure| match failure {
            // Of the whole, not of what was left of it.
            Failure::Timeout(limit) if limit != idle => Failure::Timeout(most),
            Failure::Changed { what, spent, .. } => Failure::Changed {
                what,
                sent: rounds.taken,
                spent,
            },
            // It was fit before, by another list.
            Failure::Unfit(reason) if rounds.taken => Failure::Input(reason),
            other => rounds.failed(other),
        })
    }

    async fn rounds(&self, call: &Call<'_>, rounds: &mut Rounds) -> Result<Box<RawValue>, Failure> {
        self.want_logs(call.caller.logs(), call.patience.most).await;
        self.asked.settle(call.patience.most).await;
        self.asked.call();
        let clock = Clock::start(call.patience, &self.asked);
        let mut members = String::with_capacity(call.arguments.len() + call.tool.len() + 32);
        members.push_str(r#""name":"#);
        members.push_str(&Value::from(call.tool).to_string());
        members.push_str(r#","arguments":"#);
        members.push_str(call.arguments);
        let definition = call.decided.as_ref().map(|decided| &decided.definition);
        let special = self.tools.get(call.tool, definition);
        let takes_tasks = self.agreed().is_some_and(|agreed| agreed.abilities.tasks);
        let as_task = special.as_ref().is_some_and(|special| special.as_task);
        let mut token = None;
        if as_task && takes_tasks && !self.is_stateless() {
            members.push_str(r#","task":{}"#);
            let asked_for = Token::new(&self.inbox, call.who());
            token = Some(asked_for.map_err(Failure::Lost)?);
        }
        let first = members.len();
        let parameters = match special {
            Some(special) => special.headers(call.arguments)?,
            None => Vec::new(),
        };
        members.push_str(&rounds.input);
        while rounds.made <= MAX_ROUNDS {
            // After it was learnt how the tool is called, so that this is of no newer list; and
            // before each request, since somebody may have been asked for long.
            if let Some(decided) = &call.decided {
                decided.still_is(call.tool).map_err(Failure::changed)?;
            }
            let request = Request {
                method: CALL,
                members: &members,
                name: Some(call.tool),
                parameters: &parameters,
                decided: call.decided.as_ref(),
                who: Some(call.who()),
                progress: true,
                token: token.as_ref().map(Token::id),
                version: None,
            };
            let rest = clock.left(&self.asked)?;
            let answered = match &token {
                Some(token) => tasks::begin(self, &request, token, rest).await,
                None => self.request(request, rest).await,
            };
            let result = match answered {
                Err(Failure::Headers(error, _)) => {
                    let rounds = Box::new(std::mem::take(rounds));
                    return Err(Failure::Headers(error, rounds));
                }
                Err(Failure::Refused(error))
                    if !rounds.pages_opened && pages::are_required(&error) =>
                {
                    self.open_pages(call, &error).await?;
                    rounds.pages_opened = true;
                    rounds.made += 1;
                    continue;
                }
                result => result?,
            };
            rounds.taken = true;
            match self.kind(&result)? {
                Kind::Complete => return Ok(result),
                Kind::Task => return tasks::follow(self, call, &result, token, clock).await,
                Kind::InputRequired => {}
            }
            rounds.input.clear();
            let given = self.add_input(call, &result, &mut rounds.input).await?;
            members.truncate(first);
            members.push_str(&rounds.input);
            if given {
                rounds.made += 1;
                continue;
            }
            // What the server waits for takes as long as it does, and the call no longer than
            // it may in all.
            let pause = FIRST_PAUSE.saturating_mul(1 << rounds.waited.min(LONGER_PAUSES));
            clock.pause(pause, &self.asked).await?;
            rounds.waited = rounds.waited.saturating_add(1);
        }
        Err(Failure::Input(format!(
            "the tool still wants input after {MAX_ROUNDS} rounds of it"
        )))
    }

    /// Answers everything that a map of requests asks for, as the members of
    /// an object; with it, how many pages somebody has agreed to open.
    pub(crate) async fn inputs(
        &self,
        call: &Call<'_>,
        requests: &Requests<'_>,
    ) -> Result<(String, usize), Failure> {
        if requests.len() > MAX_INPUTS {
            let many = requests.len();
            return Err(Failure::Input(format!(
                "the tool asks for {many} things at once, and {MAX_INPUTS} are the most"
            )));
        }
        let offers = call.caller.offers();
        let cannot = |method: &str, error: ErrorData| {
            Failure::Input(format!(
                "the tool asks for {method}, which it cannot have: {}",
                error.message
            ))
        };
        let bytes = |(key, request): &(String, Requested<'_>)| {
            key.len() + request.params.map_or(0, |params| params.get().len())
        };
        let room = self.asked.room_for(requests.iter().map(bytes).sum());
        // For as long as there are values of it.
        let _room = room.map_err(|full| {
            let message = full.message;
            Failure::Input(format!("{message}; make fewer such calls at a time"))
        })?;
        let mut read = Vec::with_capacity(requests.len());
        for (key, request) in requests {
            let method = request.method.as_str();
            let Some(asks) = Asks::of(method) else {
                return Err(Failure::Input(
                    "the tool asks for something that clients do not know".to_owned(),
                ));
            };
            let params = asks.read(request.params, &self.asked.values);
            read.push((key, method, asks, params.map_err(|e| cannot(method, e))?));
        }
        let mut responses = serde_json::Map::new();
        let mut asked = Vec::new();
        let mut pages = 0;
        for (key, method, asks, params) in &read {
            let ask = Ask {
                asks: *asks,
                server: &self.server,
                tool: Some(call.tool),
                key: Some(key),
                params,
            };
            match asks.declined(offers, ask.params) {
                Some(Ok(declined)) => {
                    responses.insert((*key).clone(), declined);
                }
                Some(Err(error)) => return Err(cannot(method, error)),
                None => asked.push((key, method, ask)),
            }
        }
        if !asked.is_empty() {
            let wanted = asked.iter().map(|(.., ask)| ask.wanted()).collect();
            let asking = Asking::start(self);
            let mut answers = call.caller.inputs(wanted).await.into_iter();
            drop(asking);
            for (key, method, ask) in asked {
                let answer = answers.next().unwrap_or(Err(Refusal::Cancelled));
                let is_page = ask.is_page();
                let answered = ask
                    .answered(answer)
                    .map_err(|error| cannot(method, error))?;
                pages += usize::from(is_page && input::is_accepted(&answered));
                responses.insert((*key).clone(), answered);
            }
        }
        Ok((Value::Object(responses).to_string(), pages))
    }

    /// Adds what a result wants to the next try; false if that is only to be made again,
    /// later. Pages are done with then, by the word of whoever opened them.
    async fn add_input(
        &self,
        call: &Call<'_>,
        result: &RawValue,
        members: &mut String,
    ) -> Result<bool, Failure> {
        let wanted: InputRequired<'_> =
            object(result.get()).map_err(|error| Failure::Malformed(misfit::describe(&error)))?;
        if wanted.input_requests.is_none() && wanted.request_state.is_none() {
            let reason = "it wants input and does not say which".to_owned();
            return Err(Failure::Malformed(reason));
        }
        if let Some(requests) = wanted.input_requests {
            let (responses, pages) = self.inputs(call, &read_requests(requests)?).await?;
            if pages > 0 {
                self.done_at(call, pages).await?;
            }
            members.push_str(r#","inputResponses":"#);
            members.push_str(&responses);
        }
        if let Some(state) = wanted.request_state {
            if state.get().len() > MAX_STATE_BYTES || !state.get().starts_with('"') {
                let reason =
                    format!("its requestState is no text of up to {MAX_STATE_BYTES} bytes");
                return Err(Failure::Malformed(reason));
            }
            members.push_str(r#","requestState":"#);
            members.push_str(state.get());
        }
        Ok(wanted.input_requests.is_some())
    }

    /// The result of a request of which nothing else may come, and no task.
    pub(crate) fn whole(&self, result: Box<RawValue>) -> Result<Box<RawValue>, Failure> {
        match self.is_stateless() {
            true => match self.kind(&result)? {
                Kind::Complete => Ok(result),
                Kind::InputRequired | Kind::Task => Err(Failure::Malformed(
                    "its resultType is none of such a request".to_owned(),
                )),
            },
            false => Ok(result),
        }
    }

    /// What sort of result it is. Large results are not parsed for it.
    pub(crate) fn kind(&self, result: &RawValue) -> Result<Kind, Failure> {
        let text = result.get().as_bytes();
        if !self.is_stateless() {
            // Only a server that was asked for one, or that errs, gives a task.
            let may_be_task = memmem::find(text, br#""taskId""#).is_some();
            return Ok(match may_be_task && tasks::is_task(result) {
                true => Kind::Task,
                false => Kind::Complete,
            });
        }
        if memmem::find(text, br#""resultType":"complete""#).is_some() {
            return Ok(Kind::Complete);
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Typed {
            #[serde(default)]
            result_type: Option<String>,
        }
        let typed = object::<Typed>(result.get());
        match typed
            .map(|typed| typed.result_type)
            .as_ref()
            .map(|kind| kind.as_deref())
        {
            Ok(None | Some("complete")) => Ok(Kind::Complete),
            Ok(Some("input_required")) => Ok(Kind::InputRequired),
            Ok(Some("task")) => Ok(Kind::Task),
            // What is no object is the shaping's to complain about.
            Err(_) => Ok(Kind::Complete),
            Ok(Some(_)) => Err(Failure::Malformed(
                "its resultType is none that clients know".to_owned(),
            )),
        }
    }
}

/// What a result asks for, by the server's own names and in its order.
pub(crate) type Requests<'a> = Vec<(String, Requested<'a>)>;

/// One thing that a result asks for; what it is asked with is not read yet.
#[derive(Deserialize)]
pub(crate) struct Requested<'a> {
    #[serde(default)]
    method: String,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Reads what a result asks for.
pub(crate) fn read_requests(requests: &RawValue) -> Result<Requests<'_>, Failure> {
    struct Named;
    impl<'de> Visitor<'de> for Named {
        type Value = Requests<'de>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "an object of up to {MAX_REQUESTS} members")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let mut requests = Requests::new();
            let mut many = 0;
            while let Some((name, Object(request))) = members.next_entry::<String, _>()? {
                many += 1;
                if many > MAX_REQUESTS {
                    return Err(A::Error::invalid_length(many, &self));
                }
                // Of those of one name, the last holds.
                match requests.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) => *known = request,
                    None => requests.push((name, request)),
                }
            }
            Ok(requests)
        }
    }
    let bytes = requests.get().len();
    if bytes > MAX_VALUE_BYTES {
        return Err(Failure::Input(format!(
            "the tool asks for things in {bytes} bytes, and {MAX_VALUE_BYTES} are the most"
        )));
    }
    serde_json::Deserializer::from_str(requests.get())
        .deserialize_map(Named)
        .map_err(|error| Failure::Malformed(misfit::describe(&error)))
}

/// What a call is answered with.
pub(crate) enum Kind {
    Complete,
    InputRequired,
    Task,
}

#[cfg(test)]
mod tests;
