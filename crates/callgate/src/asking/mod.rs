//! Questions about calls as records, which are answered by several ways.
//!
//! The first answer wins. With a store, a question is written before a way shows it, and other
//! processes can answer it. Without a store, it is in this process alone.

mod answer_links;
mod open;
mod options;
mod record;
#[cfg(test)]
mod tests;
mod watch;
mod webhook;
mod webhook_config;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use callgate_gate::{Answer, Asker, GrantStoreError, Question, Reply};
use callgate_store::{OpenStore, Store};
use futures::future::BoxFuture;
use tokio::time::timeout;

pub use answer_links::{AnswerLinks, LinkAnswer};
use open::OpenQuestion;
pub use options::{AskingOptions, Way};
pub use record::{RunContext, choice_of, question_texts, reply_record};
use watch::Watch;
use webhook::Webhook;
pub use webhook_config::{WebhookConfig, WebhookUrl};

/// A client answers this fast only by itself: no person has read the question.
const AT_ONCE: Duration = Duration::from_millis(100);

/// The questions of this process.
pub struct Asking {
    store: Option<Arc<OpenStore>>,
    options: AskingOptions,
    watch: Arc<Watch>,
    on_elsewhere: Option<OnElsewhere>,
    /// Made for the first run that has this way; `None` without one.
    webhook: OnceLock<Option<Arc<Webhook>>>,
    links: Option<Arc<AnswerLinks>>,
}

type OnElsewhere = Box<dyn Fn(&str, &Reply) + Send + Sync>;

impl Asking {
    /// The questions of this process, kept in a store if there is one.
    pub fn new(store: Option<Arc<OpenStore>>, options: AskingOptions) -> Self {
        Self {
            store,
            options,
            watch: Arc::default(),
            on_elsewhere: None,
            webhook: OnceLock::new(),
            links: None,
        }
    }

    /// Gives each question to the webhook a link below this URL, where it can be answered later.
    #[must_use]
    pub fn public_url(mut self, url: Option<&str>) -> Self {
        self.links = url.map(AnswerLinks::new);
        self
    }

    /// The links of open questions, if there is a public URL.
    pub fn links(&self) -> Option<&AnswerLinks> {
        self.links.as_deref()
    }

    /// Calls `tell` with the function and the reply when a question is answered in a different
    /// process.
    #[must_use]
    pub fn on_elsewhere(mut self, tell: impl Fn(&str, &Reply) + Send + Sync + 'static) -> Self {
        self.on_elsewhere = Some(Box::new(tell));
        self
    }

    /// The store by which other processes can answer questions.
    pub fn store(&self) -> Option<&Arc<dyn Store>> {
        self.store.as_ref().map(|open| &open.store)
    }

    /// The time that a question waits for an answer.
    pub fn expires(&self) -> Duration {
        self.options.expires
    }

    /// The settings.
    pub fn options(&self) -> &AskingOptions {
        &self.options
    }
}

/// The asker of one run: it records each question, and asks by the ways in their order.
pub struct RecordedAsker {
    asking: Arc<Asking>,
    run: RunContext,
    ways: Vec<(&'static str, Arc<dyn Asker>)>,
}

impl RecordedAsker {
    /// The asker of a run. Each way has its name, which answers carry. Other processes can answer
    /// if [`record_way`] is one of the ways.
    pub fn new(
        asking: Arc<Asking>,
        run: RunContext,
        ways: Vec<(&'static str, Arc<dyn Asker>)>,
    ) -> Arc<Self> {
        Arc::new(Self { asking, run, ways })
    }

    async fn answer(&self, question: Question) -> Reply {
        let function = question.function.clone();
        let has_record = self.ways.iter().any(|(way, _)| is_record(way));
        let mut open = match self.asking.store.as_ref().filter(|_| has_record) {
            Some(store) => OpenQuestion::new(&self.asking, store, &self.run, &question).await,
            None => None,
        };
        let is_open = open.is_some();
        let here = timeout(self.asking.expires(), self.by_ways(question, is_open));
        let (reply, is_elsewhere) = tokio::select! {
            biased;
            Some(reply) = elsewhere(&mut open) => (reply, true),
            reply = here => (reply.unwrap_or_else(|_| Answer::Late.into()), false),
        };
        let (reply, is_elsewhere) = match open {
            Some(open) if !is_elsewhere => open.settle(reply).await,
            _ => (reply, is_elsewhere),
        };
        if let Some(tell) = &self.asking.on_elsewhere
            && is_elsewhere
            && record::choice_of(reply.answer).is_some()
        {
            tell(&function, &reply);
        }
        reply
    }

    /// Asks by one way after the other, until one has an answer; else the last reply.
    async fn by_ways(&self, question: Question, is_open: bool) -> Reply {
        let mut last = Reply::from(Answer::NoAsker);
        for (name, way) in &self.ways {
            if is_record(name) && !is_open {
                continue;
            }
            let asked = Instant::now();
            last = way.ask(question.clone()).await;
            let took = last.took.unwrap_or_else(|| asked.elapsed());
            if !passes(name, last.answer, took) {
                last.via.get_or_insert_with(|| (*name).to_owned());
                break;
            }
        }
        last
    }
}

impl Asker for RecordedAsker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        Box::pin(self.answer(question))
    }

    fn kept<'a>(
        &'a self,
        function: &'a str,
        place: &'a str,
        kept: Result<(), GrantStoreError>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            for (_, way) in &self.ways {
                way.kept(function, place, kept.clone()).await;
            }
        })
    }
}

fn is_record(way: &str) -> bool {
    way == Way::Record.name()
}

/// True if a reply passes the question on to the next way.
fn passes(way: &str, answer: Answer, took: Duration) -> bool {
    let is_choice = answer.allows() || matches!(answer, Answer::Deny | Answer::DenyRun);
    !is_choice || way == Way::Client.name() && took < AT_ONCE
}

/// The answer of a different process; `None` if there can be none.
async fn elsewhere(open: &mut Option<OpenQuestion>) -> Option<Reply> {
    open.as_mut()?.elsewhere().await
}

/// The way that waits for an answer in the store, such as from `callgate questions`. A question
/// that is not in a store passes it.
pub fn record_way() -> (&'static str, Arc<dyn Asker>) {
    let pending = |_: Question| std::future::pending::<Reply>();
    (Way::Record.name(), Arc::new(pending))
}
