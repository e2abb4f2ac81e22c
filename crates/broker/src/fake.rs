//! For tests: a server without a process, a caller without a person, and a log that takes
//! everything.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::Context;
use std::time::Duration;

use callgate_policy::Definition;
use futures::future::BoxFuture;
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion};
use serde_json::{Value, json};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use crate::broker::Ready;
use crate::caller::{
    Caller, Elicit, ListRoots, Offers, Opened, PageDone, Progress, Refusal, Root, Sample,
};
use crate::calls::Call;
use crate::failure::Failure;
use crate::inbox::Inbox;
use crate::link::{Link, LinkError, Outgoing};
use crate::listed::{Decided, Listed};
use crate::patience::Patience;
use crate::session::{Abilities, Agreed, Session};
use callgate_auth::Redact;

/// What a fake server says to a message: any number of messages.
type Script = Box<dyn FnMut(&Value) -> Vec<Value> + Send>;

/// What is no message, but a link's word that a call was refused so.
const MISMATCH: &str = "mismatch";

/// A link to a server that is a function.
pub(crate) struct FakeLink {
    inbox: Arc<Inbox>,
    script: Mutex<Script>,
    sent: Mutex<Vec<Value>>,
    login: Mutex<Option<Arc<str>>>,
}

impl FakeLink {
    fn take(&self, message: &str) {
        let message: Value = serde_json::from_str(message).expect("what is sent is JSON");
        self.sent.lock().expect("no panic").push(message.clone());
        let answers = (self.script.lock().expect("no panic"))(&message);
        for answer in answers {
            match answer[MISMATCH].as_u64() {
                Some(id) => {
                    let error = ErrorData::new(ErrorCode(-32020), "HeaderMismatch", None);
                    let refused = Failure::Headers(error, Box::default());
                    self.inbox.failed(id, refused);
                }
                None => self.inbox.deliver(answer.to_string().as_bytes()),
            }
        }
    }

    /// From now on requests go with this login.
    pub(crate) fn log_in(&self, login: &str) {
        *self.login.lock().expect("no panic") = Some(login.into());
    }

    /// The methods of what was sent so far; an answer shows as it is.
    pub(crate) fn sent(&self) -> Vec<String> {
        let sent = self.sent.lock().expect("no panic");
        let show = |message: &Value| match message["method"].as_str() {
            Some(method) => method.to_owned(),
            None => message.to_string(),
        };
        sent.iter().map(show).collect()
    }

    /// The last message that was sent.
    pub(crate) fn last(&self) -> Value {
        let sent = self.sent.lock().expect("no panic");
        sent.last().cloned().unwrap_or_default()
    }
}

impl fmt::Debug for FakeLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FakeLink")
    }
}

impl Link for FakeLink {
    fn send<'a>(&'a self, message: Outgoing<'a>) -> BoxFuture<'a, Result<(), LinkError>> {
        if message.id.is_none_or(|id| self.inbox.sent(id)) {
            self.take(message.text);
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn post(&self, _method: &str, _name: Option<&str>, message: String) {
        self.take(&message);
    }

    fn read(&self, _flight: u64, _cx: &mut Context<'_>) {}

    fn left(&self, _flight: u64) {}

    fn cancel(&self, _id: u64, notification: Option<String>) {
        if let Some(notification) = notification {
            self.take(&notification);
        }
    }

    fn agreed(&self, _version: &ProtocolVersion) {}

    fn login(&self) -> Option<Arc<str>> {
        self.login.lock().expect("no panic").clone()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inbox.lost(LinkError::closed("closed", true));
        Box::pin(std::future::ready(()))
    }
}

/// A session with a fake server, before any agreement.
pub(crate) fn connect(
    caller: &Arc<Host>,
    script: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
) -> (Arc<Session>, Arc<FakeLink>) {
    let inbox = Inbox::new("s".into(), 1_000);
    let link = Arc::new(FakeLink {
        inbox: Arc::clone(&inbox),
        script: Mutex::new(Box::new(script)),
        sent: Mutex::default(),
        login: Mutex::default(),
    });
    let (caller, secrets) = (Arc::clone(caller), Redact::default());
    let session = Session::new("s".into(), inbox, Arc::clone(&link) as _, caller, secrets);
    (session, link)
}

/// [`connect`], and agreement on a revision.
pub(crate) fn agree(
    version: ProtocolVersion,
    abilities: Abilities,
    caller: &Arc<Host>,
    script: impl FnMut(&Value) -> Vec<Value> + Send + 'static,
) -> (Arc<Session>, Arc<FakeLink>) {
    let (session, link) = connect(caller, script);
    session.agree(Agreed {
        version,
        server_info: None,
        instructions: None,
        abilities,
    });
    (session, link)
}

/// A call of tool `t` without arguments, that may take a minute.
pub(crate) fn call(caller: &Arc<Host>) -> Call<'static> {
    Call {
        tool: "t",
        arguments: "{}",
        caller: Arc::clone(caller) as _,
        patience: Patience::exactly(Duration::from_secs(60)),
        decided: None,
    }
}

/// [`call`], which was decided about by this definition of its tool.
pub(crate) fn call_decided(
    caller: &Arc<Host>,
    definition: &Definition,
    listed: &Arc<Listed>,
) -> Call<'static> {
    Call {
        decided: Some(Decided {
            definition: *definition.hash(),
            listed: Arc::clone(listed),
        }),
        ..call(caller)
    }
}

/// What is known of a server that lists these tools.
pub(crate) fn ready(tools: Vec<Value>) -> Ready {
    Ready {
        tools,
        protocol_version: String::new(),
        server_info: None,
        instructions: None,
        warnings: Vec::new(),
        fresh_for: None,
        ttl: None,
        login: None,
    }
}

/// A server's word that a page is done with.
pub(crate) fn page_done(id: &Value) -> Value {
    json!({
        "jsonrpc": "2.0",
        "method": "notifications/elicitation/complete",
        "params": { "elicitationId": id },
    })
}

/// The answer to a request.
pub(crate) fn result(request: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })
}

/// A call's refusal for its headers, before anything was done for it.
pub(crate) fn mismatch(request: &Value) -> Value {
    json!({ MISMATCH: request["id"] })
}

/// A caller who accepts everything and remembers what was asked.
#[derive(Debug, Default)]
pub(crate) struct Host {
    pub(crate) offers: Offers,
    /// What forms are filled in with.
    pub(crate) content: Value,
    /// Never answers, so that somebody is asked for ever.
    pub(crate) silent: bool,
    /// What it says to pages, where that is not yes.
    pub(crate) says: Option<&'static str>,
    /// What it says of being back from pages; without it, it says nothing.
    pub(crate) back: Option<Result<(), Refusal>>,
    /// Where what it was shown is said to be done with, at once.
    pub(crate) door: Mutex<Option<Arc<Inbox>>>,
    pub(crate) heard: Arc<Mutex<Vec<String>>>,
}

impl Host {
    /// One that offers everything.
    pub(crate) fn able() -> Arc<Self> {
        Arc::new(Self {
            offers: Offers {
                form: true,
                url: true,
                sampling: true,
                sampling_tools: true,
                roots: true,
            },
            content: json!({}),
            ..Self::default()
        })
    }

    /// What it was asked and told.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("no panic").clone()
    }

    fn hear(&self, what: String) {
        self.heard.lock().expect("no panic").push(what);
    }

    async fn answer(&self, answer: Value) -> Result<Value, Refusal> {
        if self.silent {
            std::future::pending::<()>().await;
        }
        Ok(answer)
    }
}

impl Caller for Host {
    fn offers(&self) -> Offers {
        self.offers
    }

    fn elicit<'a>(&'a self, request: Elicit<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let Elicit {
            server,
            tool,
            params,
            ..
        } = request;
        self.hear(format!("{server} {tool:?} elicits {params}"));
        if let Some(door) = &*self.door.lock().expect("no panic") {
            door.deliver(page_done(&params["elicitationId"]).to_string().as_bytes());
        }
        if let Some(says) = self.says {
            return Box::pin(self.answer(json!({ "action": says })));
        }
        Box::pin(self.answer(json!({ "action": "accept", "content": self.content })))
    }

    fn sample<'a>(&'a self, request: Sample<'a>) -> BoxFuture<'a, Result<Value, Refusal>> {
        let Sample {
            server,
            tool,
            params,
            ..
        } = request;
        self.hear(format!("{server} {tool:?} samples {params}"));
        let content = json!({ "type": "text", "text": "hi" });
        Box::pin(self.answer(json!({ "role": "assistant", "content": content, "model": "m" })))
    }

    fn page_opened(&self, server: &str, id: &str) -> Option<PageDone> {
        self.hear(format!("{server} had {id} opened"));
        let (heard, told) = (Arc::clone(&self.heard), format!("{id} is done"));
        Some(Box::new(move || {
            heard.lock().expect("no panic").push(told);
        }))
    }

    fn back_from<'a>(&'a self, opened: Opened<'a>) -> BoxFuture<'a, Result<(), Refusal>> {
        let Opened {
            server,
            tool,
            pages,
            is_told,
        } = opened;
        let who = if is_told { "" } else { " alone" };
        self.hear(format!("{server}.{tool} waits for {pages}{who}"));
        match self.back.clone() {
            Some(back) => Box::pin(std::future::ready(back)),
            None => Box::pin(std::future::pending()),
        }
    }

    fn roots<'a>(&'a self, _request: ListRoots<'a>) -> BoxFuture<'a, Result<Vec<Root>, Refusal>> {
        let root = Root {
            uri: "file:///work".to_owned(),
            name: None,
        };
        Box::pin(std::future::ready(Ok(vec![root])))
    }

    fn progress(&self, progress: Progress<'_>) {
        let Progress {
            server,
            tool,
            progress,
            total,
            message,
        } = progress;
        self.hear(format!("{server}.{tool} {progress}/{total:?} {message:?}"));
    }
}

/// A log that takes everything.
pub(crate) struct TakesAll;

impl Subscriber for TakesAll {
    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> Interest {
        // On this thread only.
        Interest::sometimes()
    }

    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}
