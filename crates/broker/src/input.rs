//! One thing that a server asks for, in a request of its own or in a result
//! that wants input: a form, a page, a model's message, the folders.

use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Value, json};

use crate::caller::{Caller, Elicit, Offers, Refusal, Sample};
use crate::form;

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

    /// How it is declined without asking anybody, if it is not offered.
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
                let message = "this mode of elicitation was not announced";
                (!offered).then(|| Err(ErrorData::invalid_params(message, None)))
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

/// Asks the caller, which offers it, and says what it answers as the protocol
/// wants it.
pub(crate) async fn answer(
    asks: Asks,
    caller: &dyn Caller,
    server: &str,
    tool: Option<&str>,
    params: &Value,
) -> Result<Value, ErrorData> {
    match asks {
        Asks::Elicitation => {
            let request = Elicit {
                server,
                tool,
                params,
            };
            match caller.elicit(request).await {
                Ok(result) => form::complete(result, mode(params), params.get("requestedSchema")),
                Err(Refusal::Declined | Refusal::Unsupported) => Ok(json!({ "action": "decline" })),
                Err(Refusal::Cancelled) => Ok(json!({ "action": "cancel" })),
                Err(Refusal::Failed(reason)) => Err(ErrorData::internal_error(reason, None)),
            }
        }
        Asks::Sampling => {
            let request = Sample {
                server,
                tool,
                params,
            };
            let result = caller.sample(request).await;
            result.map_err(|refusal| match refusal {
                Refusal::Unsupported => not_announced(),
                Refusal::Failed(reason) => ErrorData::internal_error(reason, None),
                // The code that the specification gives for it.
                refusal => ErrorData::new(ErrorCode(-1), refusal.to_string(), None),
            })
        }
        Asks::Roots => {
            let root = |root: crate::caller::Root| match root.name {
                Some(name) => json!({ "uri": root.uri, "name": name }),
                None => json!({ "uri": root.uri }),
            };
            let roots: Vec<Value> = caller.roots().into_iter().map(root).collect();
            Ok(json!({ "roots": roots }))
        }
    }
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
