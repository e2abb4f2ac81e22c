//! Servers' requests while they work on a call, passed on to the client of the run.

use std::sync::Arc;

use callgate::faces::{
    Caller, Log, LogLevel, Offers, Opened, PageDone, Progress, Refusal, Root, Wanted, WantedKind,
};
use callgate_text::label;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::asker::ClientAsker;
use super::client::can_answer;
use super::pending::{NewRequest, NoAnswer};
use super::progress::Notice;
use super::roots::{self, Roots};
use super::shown::{self, OwnNames};

/// The limit of a logger's name, in characters.
const MAX_LOGGER: usize = 200;
/// The limit of a progress message, in characters.
const MAX_PROGRESS: usize = 1_200;

/// A caller for servers that start before there is a client: it offers every capability. A request
/// that the run's client cannot answer is declined. Over stdio, servers also get the folders of the
/// only client outside of calls; over HTTP they get no folders outside of calls.
#[derive(Debug, Clone)]
pub struct AnyClient {
    pub(crate) roots: Arc<Roots>,
}

impl Default for AnyClient {
    fn default() -> Self {
        Self {
            roots: Arc::new(Roots::of_only_client()),
        }
    }
}

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

    fn answer<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let answer = match wanted.kind {
            WantedKind::Roots => Ok(Root::list(&self.roots.so_far())),
            _ => Err(Refusal::Unsupported),
        };
        std::future::ready(answer).boxed()
    }
}

impl Caller for ClientAsker {
    fn offers(&self) -> Offers {
        self.capabilities
    }

    fn answer<'a>(&'a self, wanted: Wanted<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        async move {
            let mut answers = self.pass_on(vec![wanted]).await;
            answers.pop().unwrap_or(Err(Refusal::Cancelled))
        }
        .boxed()
    }

    fn page_opened(&self, server: &str, id: &str) -> Option<PageDone> {
        self.run.pages.completion(server, id)
    }

    fn back_from<'a>(&'a self, opened: Opened<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        async move {
            if !self.capabilities.form {
                if opened.is_reported {
                    // The server notifies when the user is done with the page.
                    std::future::pending::<()>().await;
                }
                return Ok(());
            }
            let form = json!({ "method": "elicitation/create", "params": {
                "mode": "form",
                "message": format!(
                    "The server {} had you open a page for its tool {}. When you are done \
                     there, accept: the tool is called again.",
                    shown::name(opened.server), shown::name(opened.tool)
                ),
                "requestedSchema": { "type": "object", "properties": {} },
            } });
            let form = serde_json::from_value(form).map_err(|_unfit| Refusal::Unsupported)?;
            let about = format!("the page of server {}", shown::name(opened.server));
            let _asking = self.run.progress.asking(about);
            let answer = self.request(vec![(None, form)]).await.pop();
            let answer = answered(answer)?;
            match answer.get("action").and_then(Value::as_str) {
                Some("accept") => Ok(()),
                Some("decline") => Err(Refusal::Declined),
                _ => Err(Refusal::Cancelled),
            }
        }
        .boxed()
    }

    fn answers<'a>(
        &'a self,
        wanted: Vec<Wanted<'a>>,
    ) -> BoxFuture<'a, Vec<Result<Value, Refusal>>> {
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
        let mut data = log.data.clone();
        shown::make_harmless(&mut data);
        let logger = label(&logger, MAX_LOGGER);
        let params = json!({ "level": log.level, "logger": logger, "data": data });
        let message = json!({ "method": "notifications/message", "params": params });
        if let Ok(message) = serde_json::from_value(message) {
            self.run.progress.notify(Notice::Log(log.level, message));
        }
    }

    /// A call that a server runs as a task becomes a task of the client, if it has tasks.
    fn is_task(&self, _server: &str, _tool: &str) {
        self.run.is_long.cancel();
    }

    fn progress(&self, progress: Progress<'_>) {
        let (server, tool) = (progress.server, progress.tool);
        let mut text = format!("{server} {tool}: {}", progress.progress);
        if let Some(total) = progress.total {
            text += &format!("/{total}");
        }
        if let Some(message) = progress.message {
            text += &format!(" {message}");
        }
        let text = label(&text, MAX_PROGRESS);
        self.run.progress.notify(Notice::Progress(text));
    }
}

impl ClientAsker {
    /// Sends the client all requests that have no known answer, together.
    async fn pass_on(&self, wanted: Vec<Wanted<'_>>) -> Vec<Result<Value, Refusal>> {
        let mut requests = Vec::new();
        let mut known = Vec::new();
        for one in &wanted {
            let folders = match one.kind {
                WantedKind::Roots => self.folders().as_deref().map(Root::list),
                _ => None,
            };
            known.push(match (folders, self.client_request(one)) {
                (Some(folders), _) => Err(Ok(folders)),
                (None, Err(refusal)) => Err(Err(refusal)),
                (None, Ok((request, own_names))) => {
                    requests.push(request);
                    Ok(own_names)
                }
            });
        }
        let elicited = wanted.iter().filter(|one| one.kind == WantedKind::Elicit);
        let _asking: Vec<_> = elicited
            .map(|one| format!("a question of server {}", shown::name(one.server)))
            .map(|about| self.run.progress.asking(about))
            .collect();
        let mut answers = self.request(requests).await.into_iter();
        let wanted = wanted.iter().zip(known);
        wanted
            .map(|(one, known)| match known {
                Err(known) => known,
                Ok(own_names) => {
                    let mut answer = answered(answers.next())?;
                    own_names.restore(&mut answer);
                    self.checked(one, answer)
                }
            })
            .collect()
    }

    /// The request for the client, with the server's own key, and the server's names in it.
    fn client_request<'a>(
        &self,
        wanted: &Wanted<'a>,
    ) -> Result<(NewRequest<'a>, OwnNames), Refusal> {
        let mut own_names = OwnNames::default();
        let method = wanted.kind.method();
        let params = match wanted.kind {
            WantedKind::Elicit => {
                let is_url = wanted.params.get("mode").and_then(Value::as_str) == Some("url");
                let mut params = params(wanted.params)?;
                // The person must know that a server asks, and not Callgate.
                let message = params.get("message").and_then(Value::as_str);
                let message = shown::message(wanted.server, message.unwrap_or_default());
                params.insert("message".to_owned(), message.into());
                if let Some(schema) = params.get_mut("requestedSchema") {
                    own_names = OwnNames::of_form(schema);
                }
                if is_url {
                    let url = params.get("url").and_then(Value::as_str);
                    let page = shown::page(url.unwrap_or_default())?;
                    params.insert("url".to_owned(), page.into());
                    // Two servers may use the same id, and the newest revision has none.
                    let server_id = params.get("elicitationId").and_then(Value::as_str);
                    let server_id = server_id.unwrap_or_default();
                    let id = self.run.pages.add(wanted.server, server_id);
                    params.insert("elicitationId".to_owned(), id.into());
                }
                params
            }
            WantedKind::Sample => {
                let mut params = params(wanted.params)?;
                // For the client, Callgate is one server: one of its servers must not get context
                // of the others.
                if let Some(context) = params.get_mut("includeContext") {
                    *context = "none".into();
                }
                // A person may review them at the client.
                for texts in ["messages", "systemPrompt"] {
                    params.get_mut(texts).map(shown::make_harmless);
                }
                params
            }
            WantedKind::Roots => Map::new(),
        };
        let request = serde_json::from_value(json!({ "method": method, "params": params }));
        let request = request
            .map_err(|_unfit| Refusal::Failed(format!("the params do not match {method}")))?;
        if !can_answer(self.capabilities, &request) {
            return Err(Refusal::Unsupported);
        }
        Ok(((wanted.key, request), own_names))
    }

    /// The client's answer. Folders are kept for the rest of the run.
    fn checked(&self, wanted: &Wanted<'_>, result: Value) -> Result<Value, Refusal> {
        if wanted.kind != WantedKind::Roots {
            return Ok(result);
        }
        let named = roots::named(&result).ok_or_else(|| {
            Refusal::Failed("the client's answer to roots/list has no roots".to_owned())
        })?;
        let result = Root::list(&named);
        *self.folders() = Some(named);
        Ok(result)
    }
}

/// The answer, or the refusal for the server.
fn answered(answer: Option<Result<Value, NoAnswer>>) -> Result<Value, Refusal> {
    match answer {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(NoAnswer::Failed(reason))) => Err(Refusal::Failed(reason)),
        None | Some(Err(NoAnswer::NoClient | NoAnswer::Late)) => Err(Refusal::Cancelled),
    }
}

/// The params without `_meta`, which concerns the server and Callgate only.
fn params(params: &Value) -> Result<Map<String, Value>, Refusal> {
    let params = params.as_object().cloned();
    let mut params =
        params.ok_or_else(|| Refusal::Failed("the params are not an object".to_owned()))?;
    params.remove("_meta");
    Ok(params)
}
