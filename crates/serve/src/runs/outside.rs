//! The people outside of a client who answer its runs' questions: by the questions' records, in any
//! process.

use std::sync::{Arc, OnceLock};

use callgate::faces::OneAtATime;
use callgate::faces::asking::{AnswerLinks, Asking, RecordedAsker, RunContext, Way};
use callgate::question::Reply;
use callgate::{Asker, Question};
use callgate_store::Store;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::answerer::Answerer;
use super::asker::ClientAsker;
use super::question;
use super::resume::Purpose;
use super::served_run::ServedRun;

/// The questions of a process. They are set before the first gate is ready; without them, only
/// clients are asked.
#[derive(Clone, Default)]
pub struct Records(Arc<OnceLock<Arc<Asking>>>);

impl Records {
    /// Sets them, once.
    pub fn set(&self, asking: Arc<Asking>) {
        let _ = self.0.set(asking);
    }

    /// The store of the records.
    pub(crate) fn store(&self) -> Option<&Arc<dyn Store>> {
        self.asking()?.store()
    }

    /// True if an operator may answer the questions of own runs.
    pub(crate) fn own_runs(&self) -> bool {
        self.asking()
            .is_some_and(|asking| asking.options().own_runs)
    }

    /// The links that answer questions.
    pub(crate) fn links(&self) -> Option<&AnswerLinks> {
        self.asking()?.links()
    }

    fn asking(&self) -> Option<&Arc<Asking>> {
        self.0.get()
    }
}

/// The ways to ask about calls of one user's runs.
#[derive(Clone, Default)]
pub(crate) struct Outside {
    pub(crate) records: Records,
    /// The people who may answer by records; `None` without such people.
    pub(crate) by: Option<Answerer>,
    /// The user, as records name it; empty in a program without users.
    pub(crate) user: String,
}

impl Outside {
    /// The people who answer by records, if the configuration and the store permit it.
    pub(crate) fn answerer(&self) -> Option<Answerer> {
        let asking = self.records.asking()?;
        let is_way = ways(asking).contains(&Way::Record);
        self.by.filter(|_| is_way && asking.store().is_some())
    }

    /// True if clients are asked.
    pub(crate) fn asks_clients(&self) -> bool {
        let asking = self.records.asking();
        asking.is_none_or(|asking| ways(asking).contains(&Way::Client))
    }

    /// True if a program is asked.
    pub(crate) fn asks_program(&self) -> bool {
        let asking = self.records.asking();
        asking.is_some_and(|asking| ways(asking).contains(&Way::Webhook))
    }

    /// The asker of a run; `None` if there is no way to ask. Only scripts wait for a record, because
    /// only they can go on without their request.
    pub(crate) fn asker(
        &self,
        run: &Arc<ServedRun>,
        client: Option<&Arc<ClientAsker>>,
    ) -> Option<Arc<dyn Asker>> {
        // Many clients can show only one form at a time.
        let forms = client.map(|client| OneAtATime::new(Arc::<ClientAsker>::clone(client)));
        let forms = forms.map(|forms| Arc::new(forms) as Arc<dyn Asker>);
        let Some(asking) = self.records.asking() else {
            return forms;
        };
        let name = client.and_then(|client| client.name.as_deref());
        let context = RunContext {
            id: run.id.clone(),
            user: self.user.clone(),
            client: name.map(str::to_owned),
        };
        let is_script = run.purpose.noun == Purpose::SCRIPT;
        let asked = ways(asking).into_iter().filter_map(|way| {
            let asker: Arc<dyn Asker> = match way {
                Way::Client => Arc::clone(forms.as_ref()?),
                Way::Webhook => return asking.webhook_way(context.clone()),
                Way::Record if is_script => Arc::new(OutsideAsker {
                    run: Arc::clone(run),
                    answerer: self.answerer()?,
                }),
                _ => return None,
            };
            Some((way.name(), asker))
        });
        let mut asked: Vec<_> = asked.collect();
        // A question to the client alone needs no record.
        if asked.iter().all(|(way, _)| *way == Way::Client.name()) {
            return Some(asked.pop()?.1);
        }
        Some(RecordedAsker::new(Arc::clone(asking), context, asked))
    }
}

/// The ways of the configuration, in their order.
fn ways(asking: &Asking) -> Vec<Way> {
    let configured = asking.options().ways.clone();
    configured.unwrap_or_else(|| vec![Way::Client, Way::Record])
}

/// Waits for an answer by the record, while requests that wait for the run can say so.
struct OutsideAsker {
    run: Arc<ServedRun>,
    answerer: Answerer,
}

impl Asker for OutsideAsker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Reply> {
        async move {
            let about = question::about(&question);
            let _asking = self.run.progress.asking_outside(about, self.answerer);
            std::future::pending().await
        }
        .boxed()
    }
}
