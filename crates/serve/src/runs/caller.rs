//! What servers ask for while they work on a call, passed on to the client
//! that runs the script.

use std::sync::Arc;

use callgate::{
    Caller, Elicit, ListRoots, Log, LogLevel, Offers, Opened, PageDone, Progress, Refusal, Root,
    Sample, Wanted,
};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::board::{self, Unanswered};
use super::desk::Desk;
use super::news::Line;
use super::roots::{self, Roots};

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

/// What servers are told of the one client that there is, over stdio: as [`AnyClient`], but
/// folders that they ask for outside of calls are those that it has named.
#[derive(Debug, Clone)]
pub struct OneClient {
    pub(crate) roots: Arc<Roots>,
}

impl Default for OneClient {
    fn default() -> Self {
        Self {
            roots: Arc::new(Roots::alone()),
        }
    }
}

impl Caller for OneClient {
    fn offers(&self) -> Offers {
        AnyClient.offers()
    }

    fn roots<'a>(&'a self, _request: ListRoots<'a>) -> BoxFuture<'a, Result<Vec<Root>, Refusal>> {
        std::future::ready(Ok(self.roots.so_far())).boxed()
    }
}

impl Caller for Desk {
    fn offers(&self) -> Offers {
        let mut offers = Offers::default();
        offers.form = self.can.form;
        offers.url = self.can.url;
        offers.sampling = self.can.sampling;
        offers.sampling_tools = self.can.sampling_tools;
        // Also where it names none: that is an answer, and a server that was offered folders
        // may ask for them at any time.
        offers.roots = self.can.roots;
        offers
    }

    fn elicit<'a>(&'a self, request: Elicit<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        self.pass_on_one(Wanted::Elicit(request)).boxed()
    }

    fn sample<'a>(&'a self, request: Sample<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        self.pass_on_one(Wanted::Sample(request)).boxed()
    }

    fn roots<'a>(&'a self, request: ListRoots<'a>) -> BoxFuture<'a, Result<Vec<Root>, Refusal>> {
        async move {
            let result = self.pass_on_one(Wanted::Roots(request)).await?;
            Ok(roots::named(&result).unwrap_or_default())
        }
        .boxed()
    }

    fn page_opened(&self, server: &str, id: &str) -> Option<PageDone> {
        self.run.pages.opened(server, id)
    }

    fn back_from<'a>(&'a self, opened: Opened<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        async move {
            if !self.can.form {
                // The server's word is all there will be.
                if opened.is_told {
                    std::future::pending::<()>().await;
                }
                return Ok(());
            }
            let form = json!({ "method": "elicitation/create", "params": {
                "mode": "form",
                "message": format!(
                    "The server {:?} had you open a page for its tool {:?}. When you are done \
                     there, accept: the tool is called again.",
                    opened.server, opened.tool
                ),
                "requestedSchema": { "type": "object", "properties": {} },
            } });
            let form = serde_json::from_value(form).map_err(|_unfit| Refusal::Unsupported)?;
            let answer = match self.wish(vec![(None, form)]).await.pop() {
                Some(Ok(answer)) => answer,
                Some(Err(Unanswered::Failed(reason))) => return Err(Refusal::Failed(reason)),
                None | Some(Err(Unanswered::Nobody | Unanswered::Late)) => {
                    return Err(Refusal::Cancelled);
                }
            };
            match answer.get("action").and_then(Value::as_str) {
                Some("accept") => Ok(()),
                Some("decline") => Err(Refusal::Declined),
                _ => Err(Refusal::Cancelled),
            }
        }
        .boxed()
    }

    /// Asks for all of it at once.
    fn inputs<'a>(&'a self, wanted: Vec<Wanted<'a>>) -> BoxFuture<'a, Vec<Result<Value, Refusal>>> {
        self.pass_on(wanted).boxed()
    }

    fn logs(&self) -> Option<LogLevel> {
        self.logs
    }

    fn log(&self, log: Log<'_>) {
        let logger = match log.logger {
            Some(own) => format!("{}.{own}", log.server),
            None => log.server.to_owned(),
        };
        self.run.news.log(Line {
            level: log.level,
            logger,
            data: log.data.clone(),
        });
    }

    /// A call whose client has tasks is one from then on.
    fn is_task(&self, _server: &str, _tool: &str) {
        self.run.become_long();
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
    async fn pass_on_one(&self, wanted: Wanted<'_>) -> Result<Value, Refusal> {
        let mut answers = self.pass_on(vec![wanted]).await;
        answers.pop().unwrap_or(Err(Refusal::Cancelled))
    }

    async fn pass_on(&self, wanted: Vec<Wanted<'_>>) -> Vec<Result<Value, Refusal>> {
        let mut wishes = Vec::new();
        let mut answers: Vec<Option<Result<Value, Refusal>>> = Vec::new();
        for one in &wanted {
            let answer = match (self.known(one), self.request(one)) {
                (Some(known), _) => Some(Ok(known)),
                (None, Err(refusal)) => Some(Err(refusal)),
                (None, Ok(wish)) => {
                    wishes.push(wish);
                    None
                }
            };
            answers.push(answer);
        }
        let heard = match wishes.is_empty() {
            true => Vec::new(),
            false => self.wish(wishes).await,
        };
        let mut heard = heard.into_iter();
        let answer = |(one, known): (&Wanted<'_>, Option<_>)| {
            known.unwrap_or_else(|| match heard.next() {
                Some(Ok(result)) => self.checked(one, result),
                None | Some(Err(Unanswered::Nobody | Unanswered::Late)) => Err(Refusal::Cancelled),
                Some(Err(Unanswered::Failed(reason))) => Err(Refusal::Failed(reason)),
            })
        };
        wanted.iter().zip(answers).map(answer).collect()
    }

    /// The answer to what need not be asked for.
    fn known(&self, wanted: &Wanted<'_>) -> Option<Value> {
        match wanted {
            Wanted::Roots(_) => self.folders().as_deref().map(ListRoots::result),
            _ => None,
        }
    }

    /// What the client is asked, under the server's own key.
    fn request<'a>(&self, wanted: &Wanted<'a>) -> Result<board::Wanted<'a>, Refusal> {
        let (key, method, params) = match wanted {
            Wanted::Elicit(request) => {
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
                if is_url {
                    // Servers' ids may be alike, and the newest revision has none.
                    let theirs = params.get("elicitationId").and_then(Value::as_str);
                    let pages = &self.run.pages;
                    let ours = pages.name(request.server, theirs.unwrap_or_default());
                    let ours = ours.map_err(|error| {
                        Refusal::Failed(format!("no random bytes can be had: {error}"))
                    })?;
                    params.insert("elicitationId".to_owned(), ours.into());
                }
                (request.key, "elicitation/create", params)
            }
            Wanted::Sample(request) => {
                let mut params = params(request.params)?;
                // To the client, this server is all servers: it is not to give one of them what
                // it has of the others.
                if let Some(context) = params.get_mut("includeContext") {
                    *context = "none".into();
                }
                let has_tools = params.contains_key("tools") || params.contains_key("toolChoice");
                if !self.can.sampling || (has_tools && !self.can.sampling_tools) {
                    return Err(Refusal::Unsupported);
                }
                (request.key, "sampling/createMessage", params)
            }
            Wanted::Roots(request) if self.can.roots => (request.key, "roots/list", Map::new()),
            // A kind that is added later.
            _ => return Err(Refusal::Unsupported),
        };
        let request = json!({ "method": method, "params": params });
        let request = serde_json::from_value(request).map_err(|_unfit| {
            Refusal::Failed(format!("the params of the {method} are not of its form"))
        })?;
        Ok((key, request))
    }

    /// The client's answer. Folders are kept for the rest of the run.
    fn checked(&self, wanted: &Wanted<'_>, result: Value) -> Result<Value, Refusal> {
        if !matches!(wanted, Wanted::Roots(_)) {
            return Ok(result);
        }
        let named = roots::named(&result).ok_or_else(|| {
            Refusal::Failed("what the client answered to roots/list names no roots".to_owned())
        })?;
        let result = ListRoots::result(&named);
        *self.folders() = Some(named);
        Ok(result)
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
