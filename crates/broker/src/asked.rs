//! What a server asks of the client: answered by the caller where it can, and
//! declined in the protocol's own way where it cannot. What it asks for a call
//! ends with the last one that it may be for.

use std::fmt;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};
use rustc_hash::FxHashMap;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use crate::caller::{Caller, Offers, Refusal};
use crate::envelope;
use crate::incoming::Stream;
use crate::input::{self, Ask, Asks};
use crate::room::{Places, Room};
use crate::session::Session;
use crate::tasks;

/// How many requests of one server are worked on at a time. More are refused.
const MANY: usize = 16;
/// How much one server has others asked with at a time, in its requests and in results
/// that want input, in bytes as it wrote them. More is refused.
const MAX_ASKED_BYTES: u32 = 4 << 20;
/// The same in values.
const MAX_ASKED_VALUES: u32 = 1 << 18;

/// How many requests of one server a person or a model is asked for, from one call to the next.
/// More are refused: while somebody is asked, no clock of a call goes on. As many as results of
/// the newest revision may ask for in one call.
const MOST_FOR_CALL: usize = 160;

/// How long a server has to take in folders that it asked for on its own, counted from
/// when it asked; and to ask for others and take them in, counted from when it was told.
const TAKING_IN: Duration = Duration::from_millis(50);

/// The requests of a server that are being worked on.
pub(crate) struct Asked {
    session: Weak<Session>,
    /// Whom requests go to that belong to no call.
    caller: Arc<dyn Caller>,
    running: Mutex<Running>,
    /// For what it has others asked with: as it wrote that, and as it is read.
    bytes: Room,
    pub(crate) values: Room,
}

#[derive(Debug, Default)]
struct Running {
    /// By the text of their id.
    tasks: FxHashMap<Box<str>, Worked>,
    /// How many there have been.
    count: u64,
    /// How many somebody is asked for, in requests and in rounds of calls.
    asking: usize,
    /// How many there have been since a call was made.
    for_call: usize,
    since: Option<Instant>,
    /// For how long somebody was asked, up to `since`.
    time: Duration,
    last: Option<Instant>,
    /// When the server last asked for folders on its own, or was told that they are others.
    folders: Option<Instant>,
    ended: bool,
}

/// A request that is being worked on.
#[derive(Debug)]
struct Worked {
    /// Which one it is: another may have the same id once this one is cancelled.
    number: u64,
    task: Option<AbortHandle>,
}

impl Asked {
    pub(crate) fn new(session: Weak<Session>, caller: Arc<dyn Caller>) -> Self {
        Self {
            session,
            caller,
            running: Mutex::default(),
            bytes: Room::new(MAX_ASKED_BYTES),
            values: Room::new(MAX_ASKED_VALUES),
        }
    }

    /// The session, as long as it is there.
    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        self.session.upgrade()
    }

    /// Takes a request, which is answered by and by.
    pub(crate) fn request(
        &self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        stream: Stream,
    ) {
        let Some(session) = self.session.upgrade() else {
            return;
        };
        let task = params.and_then(|params| tasks::related(params.get()));
        let reply = |result| {
            let answer = envelope::answer(id, tasks::relate(result, task.as_deref()));
            session.link.post("", None, answer);
        };
        if session.is_stateless() {
            // A client answers nothing there: servers ask in results.
            tracing::debug!(server = %session.server, method, "a request that is not of the revision");
            return;
        }
        if session.link.is_congested() {
            tracing::debug!(server = %session.server, "a server asks and does not read the answers");
            return;
        }
        if method == "ping" {
            return reply(Ok(json!({})));
        }
        if session.agreed().is_none() {
            return reply(Err(not_found("not before the handshake")));
        }
        let Some(asks) = Asks::of(method) else {
            return reply(Err(not_found("Method not found")));
        };
        let room = match self.room_for(params.map_or(0, |params| params.get().len())) {
            Ok(room) => room,
            Err(full) => return reply(Err(full)),
        };
        let params = match asks.read(params, &self.values) {
            Ok(params) => params,
            Err(unfit) => return reply(Err(unfit)),
        };
        let (caller, tool) = session.inbox.caller(task.as_deref(), stream);
        let is_own = caller.is_none();
        let caller = caller.unwrap_or_else(|| Arc::clone(&self.caller));
        // What was announced is what may be asked for, whoever calls now.
        let offers = both(session.offers(), caller.offers());
        if let Some(declined) = asks.declined(offers, &params) {
            return reply(declined);
        }
        let key: Box<str> = id.get().into();
        let number = {
            let mut running = self.running();
            if running.ended {
                return;
            }
            if asks != Asks::Roots {
                if running.for_call == MOST_FOR_CALL {
                    drop(running);
                    let message = format!("more than {MOST_FOR_CALL} requests for one call");
                    return reply(Err(ErrorData::new(ErrorCode(-32000), message, None)));
                }
                running.for_call += 1;
            }
            if running.tasks.len() >= MANY || running.tasks.contains_key(&key) {
                drop(running);
                let message = format!("more than {MANY} requests at a time, or one id twice");
                return reply(Err(ErrorData::new(ErrorCode(-32000), message, None)));
            }
            if is_own && asks == Asks::Roots {
                running.folders = Some(Instant::now());
            }
            running.count += 1;
            let number = running.count;
            let worked = Worked { number, task: None };
            running.tasks.insert(key.clone(), worked);
            number
        };
        let id = id.to_owned();
        let server = Arc::clone(&session.server);
        let pages = Arc::clone(&session.pages);
        let inbox = Arc::clone(&session.inbox);
        let weak = Weak::clone(&self.session);
        let done = Done {
            session: Weak::clone(&self.session),
            key: key.clone(),
            number,
        };
        let asking = Asking::start(&session);
        drop(session);
        let task = tokio::spawn(async move {
            let _room = room;
            let ask = Ask {
                asks,
                server: &server,
                tool: tool.as_deref(),
                key: None,
                params: &params,
            };
            let gone = async {
                if is_own {
                    pending::<()>().await;
                }
                inbox.gone(&caller).await;
            };
            let answer = tokio::select! {
                biased;
                answered = input::ask(ask, &*caller, &pages) => answered.map(|(answer, _page)| answer),
                // Nothing is left that an answer would be for, and whoever is asked may never give
                // one: no clock of a later call would go on.
                () = gone => ask.answered(Err(Refusal::Cancelled)),
            };
            drop(asking);
            drop(done);
            if let Some(session) = weak.upgrade() {
                let answer = envelope::answer(&id, tasks::relate(answer, task.as_deref()));
                session.link.post("", None, answer);
            }
        });
        let is_listed = match self.running().tasks.get_mut(&key) {
            Some(worked) if worked.number == number => {
                worked.task = Some(task.abort_handle());
                true
            }
            _ => false,
        };
        if !is_listed {
            // It is done, or was cancelled at once.
            task.abort();
        }
    }

    /// A call is made, for which the server may ask anew.
    pub(crate) fn call(&self) {
        self.running().for_call = 0;
    }

    /// Room for what the server asks for with so many bytes, until they are dropped.
    pub(crate) fn room_for(&self, bytes: usize) -> Result<Places, ErrorData> {
        let full = || input::full(self.bytes.most(), "bytes");
        self.bytes.take(bytes).ok_or_else(full)
    }

    /// The server no longer wants an answer to its request.
    pub(crate) fn cancelled(&self, id: &RawValue) {
        let worked = self.running().tasks.remove(id.get());
        if let Some(task) = worked.and_then(|worked| worked.task) {
            task.abort();
        }
    }

    /// The server is told that the folders it may ask for are others now.
    pub(crate) fn roots_changed(&self) {
        self.running().folders = Some(Instant::now());
    }

    /// Leaves the server time to take in folders that it asked for on its own, or was told
    /// to be others, a moment ago, though no more than `most`: it takes calls meanwhile,
    /// and would answer them as if it had not been told. One that does not ask is not
    /// waited for again.
    pub(crate) async fn settle(&self, most: Duration) {
        let asked = self.running().folders;
        let left = asked.map(|asked| TAKING_IN.saturating_sub(asked.elapsed()).min(most));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            sleep(left).await;
        }
    }

    /// Ends all that is being worked on; nothing more is begun.
    pub(crate) fn end(&self) {
        let tasks = {
            let mut running = self.running();
            running.ended = true;
            std::mem::take(&mut running.tasks)
        };
        for task in tasks.into_values().filter_map(|worked| worked.task) {
            task.abort();
        }
    }

    /// Whether somebody is being asked on the server's behalf.
    pub(crate) fn is_asking(&self) -> bool {
        self.running().asking > 0
    }

    /// For how long somebody has been asked, in all.
    pub(crate) fn time(&self) -> Duration {
        let running = self.running();
        let current = running.since.map(|since| since.elapsed());
        running.time.saturating_add(current.unwrap_or_default())
    }

    /// When somebody was last asked.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.running().last
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Asked").field(&*self.running()).finish()
    }
}

/// Somebody is asked on a server's behalf as long as this is there, and no
/// clock of a call goes on.
#[derive(Debug)]
pub(crate) struct Asking(Weak<Session>);

impl Asking {
    pub(crate) fn start(session: &Session) -> Self {
        let mut running = session.asked.running();
        running.asking += 1;
        running.since.get_or_insert_with(Instant::now);
        Self(Weak::clone(&session.asked.session))
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let Some(session) = self.0.upgrade() else {
            return;
        };
        let mut running = session.asked.running();
        running.asking = running.asking.saturating_sub(1);
        running.last = Some(Instant::now());
        if running.asking == 0
            && let Some(since) = running.since.take()
        {
            running.time = running.time.saturating_add(since.elapsed());
        }
    }
}

/// Takes a request off the list, however its task ends.
struct Done {
    session: Weak<Session>,
    key: Box<str>,
    number: u64,
}

impl Drop for Done {
    fn drop(&mut self) {
        if let Some(session) = self.session.upgrade() {
            let mut running = session.asked.running();
            let last = running.tasks.get(&self.key);
            if last.is_some_and(|last| last.number == self.number) {
                running.tasks.remove(&self.key);
            }
        }
    }
}

fn both(one: Offers, other: Offers) -> Offers {
    Offers {
        form: one.form && other.form,
        url: one.url && other.url,
        sampling: one.sampling && other.sampling,
        sampling_tools: one.sampling_tools && other.sampling_tools,
        roots: one.roots && other.roots,
    }
}

fn not_found(message: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

#[cfg(test)]
mod tests;
