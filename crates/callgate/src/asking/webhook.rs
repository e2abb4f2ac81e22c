//! The way "webhook": a program answers questions over HTTP.
//!
//! Each request is signed (Standard Webhooks), so that the program can refuse forged and repeated
//! ones. An answer is the body of the response. Anything but a clear answer passes the question on,
//! and never allows a call.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use callgate_auth::is_loopback;
use callgate_gate::{Answer, Asker, Question, Reply};
use callgate_policy::Because;
use callgate_text::one_line;
use futures::future::BoxFuture;
use hmac::{Hmac, Mac as _};
use jiff::Timestamp;
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

use super::answer_links::{AnswerLink, AnswerLinks, LinkAnswer};
use super::options::Way;
use super::webhook_config::{WebhookConfig, signing_key};
use super::{Asking, RunContext};
use crate::question_text::{Shown, question_text};

/// The time limit of one request with its answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of an answer, in bytes.
const MAX_ANSWER: usize = 64 << 10;
/// The maximum length of the reason for a denial, in characters.
const MAX_REASON: usize = 1_000;
/// The problem of a secret without a key.
const NO_KEY: &str =
    "its secret has no key: write a text that is not empty, with Base64 after \"whsec_\"";

/// A program that answers questions over HTTP. Its secret is looked up at the first question.
pub(super) struct Webhook {
    config: WebhookConfig,
    client: Client,
    key: OnceCell<Hmac<Sha256>>,
    has_warned: AtomicBool,
}

impl Asking {
    /// The way that asks the configured program about calls of a run; `None` without a program, or
    /// if it cannot be asked, which is logged.
    pub fn webhook_way(&self, run: RunContext) -> Option<(&'static str, Arc<dyn Asker>)> {
        let webhook = self.webhook.get_or_init(|| {
            let webhook = Webhook::new(self.options.webhook.as_ref()?, TIMEOUT);
            let log = |error: &reqwest::Error| tracing::warn!(%error, "the webhook is not used");
            webhook.inspect_err(log).ok().map(Arc::new)
        });
        let way = WebhookOfRun {
            webhook: Arc::clone(webhook.as_ref()?),
            run,
            expires: self.expires(),
            links: self.links.clone(),
        };
        Some((Way::Webhook.name(), Arc::new(way)))
    }
}

/// The program, asked about calls of one run.
struct WebhookOfRun {
    webhook: Arc<Webhook>,
    run: RunContext,
    expires: Duration,
    links: Option<Arc<AnswerLinks>>,
}

impl Asker for WebhookOfRun {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        Box::pin(async move {
            let expires = Timestamp::now().checked_add(self.expires);
            let expires = expires.unwrap_or(Timestamp::MAX);
            let with_arguments = self.webhook.config.arguments;
            let link = self.links.as_ref();
            let link = link.map(|links| links.add(shown(&self.run, &question, with_arguments)));
            let url = link.as_ref().map(AnswerLink::url);
            match message(&self.run, expires, &question, with_arguments, url) {
                Ok(body) => self.webhook.answer(&question.id, &body, link).await,
                Err(error) => self
                    .webhook
                    .pass_on(&format!("the question is not JSON: {error}")),
            }
        })
    }
}

impl Webhook {
    fn new(config: &WebhookConfig, limit: Duration) -> reqwest::Result<Self> {
        let mut client = Client::builder().redirect(Policy::none()).timeout(limit);
        if is_loopback(&config.url.0) {
            client = client.no_proxy();
        }
        Ok(Self {
            config: config.clone(),
            client: client.build()?,
            key: OnceCell::new(),
            has_warned: AtomicBool::new(false),
        })
    }

    /// Posts a question until there is an answer other than `later`. A question with a link is posted
    /// once. An answer at the link counts before that of the program.
    async fn answer(&self, id: &str, body: &str, mut link: Option<AnswerLink>) -> Reply {
        loop {
            let posted = tokio::select! {
                biased;
                Some(answer) = at_link(&mut link) => return by_link(answer),
                posted = self.post(id, body) => posted,
            };
            let said = match posted {
                Ok(said) => said,
                Err(fault) => return self.pass_on(&fault),
            };
            match said.answer {
                Choice::Allow => return reply(Answer::Once, None),
                Choice::Deny => return reply(Answer::Deny, said.reason),
                Choice::Ask => return Answer::NoAsker.into(),
                Choice::Later => match at_link(&mut link).await {
                    Some(answer) => return by_link(answer),
                    None => tokio::time::sleep(self.config.poll).await,
                },
            }
        }
    }

    async fn post(&self, id: &str, body: &str) -> Result<Said, String> {
        let key = self.key.get_or_try_init(|| self.look_up()).await?;
        let timestamp = Timestamp::now().as_second();
        let request = self.client.post(self.config.url.0.clone());
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp.to_string())
            .header("webhook-signature", sign(key, id, timestamp, body))
            .body(body.to_owned());
        let response = request.send().await.map_err(broken)?;
        if !response.status().is_success() {
            return Err(format!("it answered {}", response.status()));
        }
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()?.split(';').next());
        if !kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
            return Err("the content type of its answer is not application/json".to_owned());
        }
        let answer = read(response).await?;
        // The error's own text may repeat the answer.
        let form = "its answer is not an object with \"answer\": \"allow\", \"deny\", \"ask\" or \"later\"";
        serde_json::from_slice(&answer).map_err(|_| form.to_owned())
    }

    async fn look_up(&self) -> Result<Hmac<Sha256>, String> {
        let secret = self.config.secret.look_up().await;
        let secret = secret.map_err(|error| format!("its secret: {error}"))?;
        signing_key(&secret).ok_or_else(|| NO_KEY.to_owned())
    }

    /// Logs why the program has not answered: the first time as a warning.
    fn pass_on(&self, fault: &str) -> Reply {
        let webhook = self.config.url.0.origin().ascii_serialization();
        if self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::debug!(webhook, fault, "the webhook has not answered a question");
        } else {
            tracing::warn!(webhook, fault, "the webhook has not answered a question");
        }
        Answer::Failed.into()
    }
}

/// The signature of a request: Standard Webhooks, version 1.
fn sign(key: &Hmac<Sha256>, id: &str, timestamp: i64, body: &str) -> String {
    let mut mac = key.clone();
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body.as_bytes());
    let code = mac.finalize().into_bytes();
    format!("v1,{}", BASE64_STANDARD.encode(code))
}

/// Waits for an answer at the link; `None` without a link.
async fn at_link(link: &mut Option<AnswerLink>) -> Option<LinkAnswer> {
    link.as_mut()?.answered().await
}

/// The reply of an answer at the link.
fn by_link(answer: LinkAnswer) -> Reply {
    let mut reply = if answer.allows {
        reply(Answer::Once, None)
    } else {
        reply(Answer::Deny, answer.reason)
    };
    reply.by = Some("link of the webhook".to_owned());
    reply
}

/// A reply of the program. The reason is for the script.
fn reply(answer: Answer, reason: Option<String>) -> Reply {
    let name = Way::Webhook.name().to_owned();
    let reason = reason.map(|reason| one_line(&reason, MAX_REASON));
    let mut reply = Reply::from(answer);
    reply.reason = reason.filter(|reason| !reason.is_empty());
    reply.by = Some(name.clone());
    reply.via = Some(name);
    reply
}

/// An answer of the program. A member that has no effect would mislead, so it is an error.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    answer: Choice,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Choice {
    Allow,
    Deny,
    Ask,
    Later,
}

/// The body of a request, which `docs/webhook.md` describes. Without the arguments, it has no text of
/// the script's line, which may repeat them.
fn message(
    run: &RunContext,
    expires: Timestamp,
    question: &Question,
    with_arguments: bool,
    answer_url: Option<String>,
) -> serde_json::Result<String> {
    let arguments = question.arguments.as_str();
    let line = question.line.as_ref().map(|line| {
        let text = Some(&line.text).filter(|_| with_arguments);
        json!({ "number": line.number, "text": text })
    });
    let done = question.done.iter().map(|it| {
        json!({
            "function": it.function,
            "sent": it.sent,
            "failed": it.failed,
            "denied": it.denied,
        })
    });
    let sent = with_arguments.then(|| serde_json::from_str(arguments));
    serde_json::to_string(&Message {
        question: json!({
            "type": "question",
            "id": question.id,
            "run": run.id,
            "user": run.user,
            "client": run.client,
            "function": question.function,
            "server": question.server,
            "tool": question.tool,
            "reason": reason(question, with_arguments),
            "line": line,
            "flows": question.flow_records(),
            "done": done.collect::<Vec<_>>(),
            "answerUrl": answer_url,
            "answers": ["allow", "deny", "ask", "later"],
            "expires": expires.to_string(),
            "argumentsHash": {
                "bytes": arguments.len(),
                "sha256": hex::encode(Sha256::digest(arguments)),
            },
        }),
        arguments: sent.transpose()?,
    })
}

/// The reason for a question. That of a call that could not be sent may quote its server.
fn reason(question: &Question, with_arguments: bool) -> String {
    match question.decision.because {
        Because::Unsent(_) if !with_arguments => {
            "needs approval again: it was allowed, but not sent".to_owned()
        }
        _ => question.reason(),
    }
}

/// A question as text for the person who opens its link.
fn shown(run: &RunContext, question: &Question, with_arguments: bool) -> String {
    let text = if with_arguments {
        question_text(question, Shown::Whole, None)
    } else {
        let (tool, server) = (&question.tool, &question.server);
        let reason = reason(question, with_arguments);
        let text = format!("{tool:?} of server {server:?} {reason}");
        one_line(&text, usize::MAX)
    };
    let user = Some(&run.user).filter(|user| !user.is_empty());
    let user = user.map(|user| format!(" of {}", one_line(user, usize::MAX)));
    format!("run {}{}\n{text}", run.id, user.unwrap_or_default())
}

/// A question, and its arguments as they would be sent.
#[derive(Serialize)]
struct Message<'a> {
    #[serde(flatten)]
    question: Value,
    arguments: Option<&'a RawValue>,
}

async fn read(mut response: Response) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if chunk.len() > MAX_ANSWER - bytes.len() {
            return Err(format!("its answer has more than {MAX_ANSWER} bytes"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The reason why there is no whole response, without the URL.
fn broken(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return "it gave no answer in time".to_owned();
    }
    let error = error.without_url();
    let mut innermost: &dyn std::error::Error = &error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    format!("it cannot be reached: {innermost}")
}
