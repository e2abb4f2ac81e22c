//! The experimental form of 2025-11-25: asked for by the call, its result fetched
//! by a request of its own, with which comes what the server asks until then.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use memchr::memmem;
use rmcp::model::ErrorData;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::{
    Followed, MAX_ID_BYTES, POLL_AGAIN, Task, cancel, created, malformed, pause, strange_status,
};
use crate::failure::Failure;
use crate::flight::Flight;
use crate::inbox::{Token, Who};
use crate::link::LinkError;
use crate::listed::Decided;
use crate::object::{Object, object};
use crate::patience::{Clock, Patience, later};
use crate::room::{Places, Room};
use crate::session::{Request, Session};

/// The member of `_meta` by which a message says to which task it belongs.
const RELATED: &str = "io.modelcontextprotocol/related-task";
/// How long the answer to a call that was given up is waited for at least, so that
/// its task can be cancelled.
const LATE: Duration = Duration::from_secs(60);
/// How many of a connection are waited for so, and how many bytes they may have of which the
/// server has taken no notice. Of more, nobody is there to cancel the task.
const MANY_GIVEN_UP: u32 = 64;
const MAX_GIVEN_UP_BYTES: u32 = if cfg!(test) { 1 << 20 } else { 16 << 20 };

/// The task that a message with these parameters belongs to, by its own word.
pub(crate) fn related(params: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Object<Meta>,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "io.modelcontextprotocol/related-task")]
        related: Object<Related>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Related {
        task_id: String,
    }
    // Few messages belong to one.
    memmem::find(params.as_bytes(), b"/related-task")?;
    let params: Params = object(params).ok()?;
    let id = params.meta.0.related.0.task_id;
    (id.len() <= MAX_ID_BYTES).then_some(id)
}

/// An answer to a request of the server's that belongs to a task: it has to say so.
/// An error has no place for that.
pub(crate) fn relate(
    answer: Result<Value, ErrorData>,
    task: Option<&str>,
) -> Result<Value, ErrorData> {
    let mut answer = answer?;
    if let (Some(task), Value::Object(result)) = (task, &mut answer) {
        let meta = result.entry("_meta").or_insert(Value::Null);
        if !meta.is_object() {
            *meta = Value::Object(Map::new());
        }
        if let Value::Object(meta) = meta {
            meta.insert(RELATED.to_owned(), json!({ "taskId": task }));
        }
    }
    Ok(answer)
}

/// Makes a call that asks for a task. One that is given up is not cancelled itself,
/// as the specification wants it: its answer is waited for all the same, and the
/// task cancelled that it tells of.
pub(crate) async fn begin(
    session: &Session,
    call: &Request<'_>,
    token: &Token,
    patience: Patience,
) -> Result<Box<RawValue>, Failure> {
    let clock = Clock::start(patience, &session.asked);
    let gone = |sent| Failure::Lost(LinkError::closed("the connection was closed", sent));
    let shared = session.asked.session().ok_or_else(|| gone(false))?;
    let call = Owned::of(call, token.id());
    let id = Arc::clone(&call.id);
    let (tell, answered) = oneshot::channel();
    let late = Patience {
        idle: patience.idle.max(LATE),
        most: patience.most.max(LATE),
    };
    tokio::spawn(async move { make(&shared, call, late, tell).await });
    let mut awaited = Awaited { session, answered };
    let answer = pin!(async {
        let answer = (&mut awaited.answered).await;
        answer.unwrap_or_else(|_| Err(gone(true)))
    });
    let last_sign = || session.inbox.progressed_at(token.id());
    let answered = clock.limit(answer, last_sign, &session.asked).await;
    let (Err(failure @ Failure::Timeout(_)), Some(id)) = (&answered, id.get()) else {
        return answered;
    };
    Err(match session.held_up(*id, failure.clone()) {
        // It may be sent before it is given up.
        Failure::Lost(error) => Failure::Lost(LinkError {
            sent: true,
            ..error
        }),
        failure => failure,
    })
}

/// Makes a call that may be given up meanwhile, and tells its answer.
async fn make(session: &Session, call: Owned, patience: Patience, mut tell: Telling) {
    if tell.is_closed() {
        // It was given up before it was made.
        return;
    }
    let (token, bytes) = (call.token, call.members.len());
    let id = Arc::clone(&call.id);
    let is_sent = AtomicBool::new(false);
    let answer = pin!(async {
        let mut flight = call.send(session).await?;
        is_sent.store(true, Ordering::Relaxed);
        flight.answer().await
    });
    let last_sign = || session.inbox.progressed_at(token);
    let clock = Clock::start(patience, &session.asked);
    let mut answer = pin!(clock.limit(answer, last_sign, &session.asked));
    let _room = tokio::select! {
        biased;
        answer = &mut answer => {
            let answer = answer.map_err(|failure| session.failed(failure));
            if let Err(Ok(unheard)) = tell.send(answer) {
                cancel_created(session, &unheard);
            }
            return;
        }
        () = tell.closed() => {
            if let Some(id) = id.get() {
                // What the server asks and tells from now on is not for them.
                session.inbox.is_nobodys(*id);
            }
            if id.get().is_some_and(|id| session.link.held_up(*id).is_some()) {
                // It is not made: nobody knows when it would be.
                return;
            }
            let held = if is_sent.load(Ordering::Relaxed) { 0 } else { bytes };
            let Some(room) = session.given_up.room_for(held) else {
                tracing::debug!(server = %session.server, "a call too many was given up");
                return;
            };
            room
        }
    };
    if let Ok(unheard) = answer.await {
        cancel_created(session, &unheard);
    }
}

type Telling = oneshot::Sender<Result<Box<RawValue>, Failure>>;

/// A call that outlasts whoever makes it.
struct Owned {
    method: String,
    members: String,
    name: Option<String>,
    parameters: Vec<(String, String)>,
    decided: Option<Decided>,
    who: Option<Who>,
    token: u64,
    /// Of its request, once there is one.
    id: Arc<OnceLock<u64>>,
}

impl Owned {
    fn of(call: &Request<'_>, token: u64) -> Self {
        Self {
            method: call.method.to_owned(),
            members: call.members.to_owned(),
            name: call.name.map(str::to_owned),
            parameters: call.parameters.to_owned(),
            decided: call.decided.cloned(),
            who: call.who.clone(),
            token,
            id: Arc::default(),
        }
    }

    /// Sends it, and keeps nothing of it: there may be much, and the answer may take long.
    async fn send(self, session: &Session) -> Result<Flight, Failure> {
        let request = Request {
            name: self.name.as_deref(),
            parameters: &self.parameters,
            decided: self.decided.as_ref(),
            who: self.who.clone(),
            progress: true,
            token: Some(self.token),
            ..Request::new(&self.method, &self.members)
        };
        let mut flight = session.open(&request)?;
        // There is one.
        let _first = self.id.set(flight.id());
        session.send(&mut flight, &request).await?;
        Ok(flight)
    }
}

/// What calls may take up that were given up and whose answers are waited for.
#[derive(Debug)]
pub(crate) struct GivenUp {
    calls: Room,
    /// Of what has not been sent yet.
    bytes: Room,
}

impl Default for GivenUp {
    fn default() -> Self {
        Self {
            calls: Room::new(MANY_GIVEN_UP),
            bytes: Room::new(MAX_GIVEN_UP_BYTES),
        }
    }
}

impl GivenUp {
    /// Room for one more, of which so many bytes are held, until it is dropped.
    fn room_for(&self, bytes: usize) -> Option<[Places; 2]> {
        Some([self.bytes.take(bytes)?, self.calls.take(1)?])
    }
}

/// The answer to a call that asks for a task.
struct Awaited<'a> {
    session: &'a Session,
    answered: oneshot::Receiver<Result<Box<RawValue>, Failure>>,
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.answered.close();
        // It may have come just when it was given up.
        if let Ok(Ok(unheard)) = self.answered.try_recv() {
            cancel_created(self.session, &unheard);
        }
    }
}

fn cancel_created(session: &Session, answer: &RawValue) {
    if let Some(task) = created(answer) {
        cancel(session, &task.task_id);
    }
}

pub(super) async fn poll(
    followed: &Followed<'_>,
    first: &Task<'_>,
    token: &Token,
) -> Result<Box<RawValue>, Failure> {
    let mut pause = pause(first);
    let mut status = Status::of(first)?;
    loop {
        match status {
            Status::Working => {}
            Status::Ended => {
                followed.is_over();
                return followed.ask("tasks/result", followed.patience).await;
            }
            Status::WantsInput => return result_with_input(followed, token, pause).await,
        }
        sleep(pause).await;
        (status, pause) = get(followed, followed.patience).await?;
    }
}

/// Asks for the result before there is one: what the server wants comes with it.
/// It may work on for long after that, which polls tell, as before.
async fn result_with_input(
    followed: &Followed<'_>,
    token: &Token,
    first: Duration,
) -> Result<Box<RawValue>, Failure> {
    let Followed {
        session, patience, ..
    } = *followed;
    let request = Request {
        progress: true,
        ..followed.request("tasks/result")
    };
    // While it wants to be left alone it need not show that it works.
    let polled = Mutex::new(Instant::now() + first);
    let heard = || {
        let polled = *polled.lock().unwrap_or_else(PoisonError::into_inner);
        let of_the_task = session.inbox.progressed_at(token.id());
        of_the_task.map_or(polled, |progressed| progressed.max(polled))
    };
    let fetched = async {
        let mut pause = POLL_AGAIN;
        loop {
            let mut flight = session.open(&request)?;
            let id = flight.id();
            let last_sign = || session.inbox.progressed_at(id).max(Some(heard()));
            let answer = session.fly(&mut flight, &request, patience, last_sign);
            let failure = match answer.await {
                Ok(result) => return Ok(result),
                Err(failure) => failure,
            };
            if let Failure::Refused(_) = &failure {
                // That is what the call has come to.
                followed.is_over();
            }
            // A request so long is cut off by what is in between; the task goes on.
            let until = later(heard(), patience.idle);
            followed.again(failure, &mut pause, until).await?;
        }
    };
    let polls = async {
        let mut pause = first;
        loop {
            sleep(pause).await;
            match get(followed, Patience::exactly(patience.most)).await {
                Ok((Status::Working | Status::WantsInput, next)) => pause = next,
                // The result is due.
                Ok((Status::Ended, _)) | Err(_) => break,
            }
            *polled.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + pause;
        }
        pending::<Infallible>().await
    };
    tokio::select! {
        biased;
        result = fetched => result,
        never = polls => match never {},
    }
}

async fn get(followed: &Followed<'_>, patience: Patience) -> Result<(Status, Duration), Failure> {
    let answer = followed.ask("tasks/get", patience).await?;
    let task = object(answer.get()).map_err(|error| malformed(&error))?;
    Ok((Status::of(&task)?, pause(&task)))
}

/// How far a task is.
enum Status {
    Working,
    /// It has a result only if it is asked for it.
    WantsInput,
    /// It has a result.
    Ended,
}

impl Status {
    fn of(task: &Task<'_>) -> Result<Self, Failure> {
        match task.status.as_str() {
            "working" => Ok(Self::Working),
            "input_required" => Ok(Self::WantsInput),
            "completed" | "failed" | "cancelled" => Ok(Self::Ended),
            _ => Err(strange_status()),
        }
    }
}

#[cfg(test)]
mod tests;
