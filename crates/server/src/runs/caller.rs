//! What servers ask for while they work on a call, passed on to the client
//! that runs the script.

use callgate::{Caller, Elicit, Offers, Progress, Refusal, Root, Sample};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::board::Unanswered;
use super::desk::Desk;

/// What servers are told that can be done for them, where that has to be said
/// before there is a client: all that a client may be able to do. What the
/// client of a run cannot do is declined when it is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnyClient;

impl Caller for AnyClient {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.form = true;
        offers.url = true;
        offers.sampling = true;
        offers.sampling_tools = true;
        offers.roots = true;
        offers
    }
}

impl Caller for Desk {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.form = self.can.form;
        offers.url = self.can.url;
        offers.sampling = self.can.sampling;
        offers.sampling_tools = self.can.sampling_tools;
        offers.roots = !self.roots.is_empty();
        offers
    }

    fn elicit<'a>(&'a self, request: Elicit<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        async move {
            let is_url = request.params.get("mode").and_then(Value::as_str) == Some("url");
            if !(if is_url { self.can.url } else { self.can.form }) {
                return Err(Refusal::Unsupported);
            }
            let mut params = params(request.params)?;
            // Whoever reads it must know that it is not Callgate that asks.
            let message = params.get("message").and_then(Value::as_str);
            let message = format!(
                "The server {:?} asks: {}",
                request.server,
                message.unwrap_or_default()
            );
            params.insert("message".to_owned(), message.into());
            self.pass_on("elicitation/create", params).await
        }
        .boxed()
    }

    fn sample<'a>(&'a self, request: Sample<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        async move {
            let params = params(request.params)?;
            let has_tools = params.contains_key("tools") || params.contains_key("toolChoice");
            if !self.can.sampling || (has_tools && !self.can.sampling_tools) {
                return Err(Refusal::Unsupported);
            }
            self.pass_on("sampling/createMessage", params).await
        }
        .boxed()
    }

    fn roots(&self) -> Vec<Root> {
        self.roots.clone()
    }

    fn progress(&self, progress: Progress<'_>) {
        let mut line = format!(
            "{} {}: {}",
            progress.server, progress.tool, progress.progress
        );
        if let Some(total) = progress.total {
            line.push_str(&format!("/{total}"));
        }
        if let Some(message) = progress.message {
            line.push_str(&format!(" {message}"));
        }
        self.run.news.tell(line);
    }
}

impl Desk {
    async fn pass_on(&self, method: &str, params: Map<String, Value>) -> Result<Value, Refusal> {
        let request = json!({ "method": method, "params": params });
        let request = serde_json::from_value(request).map_err(|_unfit| {
            Refusal::Failed(format!("the params of the {method} are not of its form"))
        })?;
        self.wish(request)
            .await
            .map_err(|unanswered| match unanswered {
                Unanswered::Nobody | Unanswered::Late => Refusal::Cancelled,
                Unanswered::Failed(reason) => Refusal::Failed(reason),
            })
    }
}

/// The params without `_meta`, which is between the server and this end.
fn params(params: &Value) -> Result<Map<String, Value>, Refusal> {
    let mut params = params
        .as_object()
        .cloned()
        .ok_or_else(|| Refusal::Failed("the params are no object".to_owned()))?;
    params.remove("_meta");
    Ok(params)
}
