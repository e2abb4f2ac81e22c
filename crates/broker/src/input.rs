//! One thing that a server asks for, in a request of its own or in a result
//! that wants input: a form, a page, a model's message, the folders.

use std::sync::Arc;

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::address;
use crate::caller::{Caller, Elicit, ListRoots, Offers, Refusal, Sample, Wanted};
use crate::form;
use crate::misfit;
use crate::object::MAX_VALUE_BYTES;
use crate::pages::{Pages, Shown};
use crate::room::Room;
use crate::values::{Held, Unread};

/// The longest `params` of what a person or the host is asked, in bytes.
const MAX_SMALL_BYTES: usize = 64 << 10;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    Elicitation,
    Sampling,
    Roots,
}

impl Asks {
    /// By the method's name.
    pub(crate) fn of(method: &str) -> Option<Self> {
        Some(match method {
            "elicitation/create" => Self::Elicitation,
            "sampling/createMessage" => Self::Sampling,
            "roots/list" => Self::Roots,
            _ => return None,
        })
    }

    /// What it is asked with, an empty object where that is left off.
    pub(crate) fn read(self, params: Option<&RawValue>, room: &Room) -> Result<Held, ErrorData> {
        let params = params.map_or("{}", RawValue::get);
        let most = match self {
            // It brings a whole conversation, with pictures.
            Self::Sampling => MAX_VALUE_BYTES,
            Self::Elicitation | Self::Roots => MAX_SMALL_BYTES,
        };
        let bytes = params.len();
        let fault = match bytes > most {
            true => format!("its params have {bytes} bytes, and {most} are the most"),
            false => match room.value(params) {
                Ok(params) => return Ok(params),
                Err(Unread::TooMany { most }) => {
                    format!("its params have more than {most} values")
                }
                Err(Unread::Full { most }) => return Err(full(most, "values")),
                Err(Unread::Unfit(error)) => misfit::describe(&error),
            },
        };
        Err(ErrorData::invalid_params(fault, None))
    }

    /// How it is declined without asking anybody, if it is not offered or is nothing
    /// to show to anybody.
    pub(crate) fn declined(
        self,
        offers: Offers,
        params: &Value,
    ) -> Option<Result<Value, ErrorData>> {
        match self {
            Self::Elicitation if !offers.form && !offers.url => {
                Some(Ok(json!({ "action": "decline" })))
            }
            Self::Elicitation => {
                let offered = match mode(params) {
                    "form" => offers.form,
                    "url" => offers.url,
                    _ => false,
                };
                let fault = match (offered, mode(params)) {
                    (false, _) => Some("this mode of elicitation was not announced".to_owned()),
                    (true, "url") => address::fault(params),
                    (true, _) => None,
                };
                fault.map(|message| Err(ErrorData::invalid_params(message, None)))
            }
            Self::Sampling if !offers.sampling => Some(Err(not_announced())),
            Self::Sampling => {
                let wants_tools =
                    params.get("tools").is_some() || params.get("toolChoice").is_some();
                let message = "sampling with tools was not announced";
                (wants_tools && !offers.sampling_tools)
                    .then(|| Err(ErrorData::invalid_params(message, None)))
            }
            Self::Roots => (!offers.roots).then(|| Err(not_announced())),
        }
    }
}

/// One request of a server's: who asks, and for what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) asks: Asks,
    pub(crate) server: &'a str,
    pub(crate) tool: Option<&'a str>,
    pub(crate) key: Option<&'a str>,
    pub(crate) params: &'a Value,
}

impl<'a> Ask<'a> {
    /// What the caller is asked, which offers it.
    pub(crate) fn wanted(self) -> Wanted<'a> {
        let Self {
            asks,
            server,
            tool,
            key,
            params,
        } = self;
        match asks {
            Asks::Elicitation => Wanted::Elicit(Elicit {
                server,
                tool,
                key,
                params,
            }),
            Asks::Sampling => Wanted::Sample(Sample {
                server,
                tool,
                key,
                params,
            }),
            Asks::Roots => Wanted::Roots(ListRoots { server, tool, key }),
        }
    }

    /// Whether it is about a page to open.
    pub(crate) fn is_page(&self) -> bool {
        self.asks == Asks::Elicitation && mode(self.params) == "url"
    }

    /// What the caller said, as the protocol wants it.
    pub(crate) fn answered(self, answer: Result<Value, Refusal>) -> Result<Value, ErrorData> {
        let refusal = match (self.asks, answer) {
            (Asks::Elicitation, Ok(result)) => {
                let params = self.params;
                return form::checked(result, mode(params), params.get("requestedSchema"));
            }
            (_, Ok(result)) => return Ok(result),
            (_, Err(refusal)) => refusal,
        };
        match (self.asks, refusal) {
            (_, Refusal::Failed(reason)) => Err(ErrorData::internal_error(reason, None)),
            (Asks::Elicitation, Refusal::Cancelled) => Ok(json!({ "action": "cancel" })),
            (Asks::Elicitation, _) => Ok(json!({ "action": "decline" })),
            (_, Refusal::Unsupported) => Err(not_announced()),
            // The code that the specification gives for it.
            (_, refusal) => Err(ErrorData::new(ErrorCode(-1), refusal.to_string(), None)),
        }
    }
}

/// Asks the caller, which offers it, in a revision in which servers tell when a
/// page is done with; with the answer, what hears of that.
pub(crate) async fn ask(
    ask: Ask<'_>,
    caller: &dyn Caller,
    pages: &Arc<Pages>,
) -> Result<(Value, Option<watch::Receiver<bool>>), ErrorData> {
    let shown = ask.is_page().then(|| pages.show(ask.params)).flatten();
    let answer = ask.answered(ask.wanted().of(caller).await)?;
    let agreed = is_accepted(&answer);
    let done = shown.as_ref().filter(|_| agreed).map(Shown::done);
    if let Some(shown) = shown.filter(|_| agreed) {
        let hears = caller.page_opened(ask.server, shown.id());
        shown.agreed(hears);
    }
    Ok((answer, done))
}

/// Whether a person has agreed.
pub(crate) fn is_accepted(answer: &Value) -> bool {
    answer.get("action").and_then(Value::as_str) == Some("accept")
}

/// There is no room for what a server asks with, beside all that it asks for already.
pub(crate) fn full(most: u32, what: &str) -> ErrorData {
    let message = format!("it asks with more than {most} {what} at a time");
    ErrorData::new(ErrorCode(-32000), message, None)
}

/// An elicitation without a mode is a form.
fn mode(params: &Value) -> &str {
    match params.get("mode") {
        None => "form",
        Some(mode) => mode.as_str().unwrap_or_default(),
    }
}

fn not_announced() -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "Method not found", None)
}
