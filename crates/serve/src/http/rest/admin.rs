//! `/v1/admin`: questions and runs of all users, for operators.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, Uri};
use axum::{Extension, Json};
use callgate_store::{
    Access, AnswerRecord, Body, Choice, Page, QuestionFilter, QuestionRecord, QuestionState,
    RunFilter, Store, StoreError, StoreErrorKind,
};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::http::body;
use crate::http::door::Door;
use crate::http::operators::Operator;
use crate::http::refusal::HttpRefusal;

/// The limit of a reason, in characters.
const MAX_REASON: usize = 1_000;
/// Seconds after which the store may be free.
const RETRY_SECONDS: u64 = 5;

type Shown = Result<Value, HttpRefusal>;
type Answered = Result<Json<Value>, HttpRefusal>;
type Id = Result<Path<String>, PathRejection>;

/// The body of an answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    answer: Choice,
    /// The sentence for the script, of a denial.
    reason: Option<String>,
    /// The arguments to send in place of the script's: an object.
    arguments: Option<Box<RawValue>>,
}

/// Answers with the questions in a state, the open ones by default.
pub(super) async fn questions(
    State(door): State<Arc<Door>>,
    Extension(operator): Extension<Arc<Operator>>,
    uri: Uri,
) -> Answered {
    let mut filter: QuestionFilter = query(&uri)?;
    filter.state.get_or_insert(QuestionState::Open);
    with_store(&door, move |store| {
        let page = store.questions(operator.access(), &filter)?;
        Ok(list("questions", &page, |question| {
            // The whole texts of many questions are long.
            let texts = question.get_mut("texts");
            if let Some(texts) = texts.and_then(Value::as_object_mut) {
                texts.retain(|name, _| name != "whole" && name != "arguments");
            }
        }))
    })
    .await
}

/// Answers with a question.
pub(super) async fn question(
    State(door): State<Arc<Door>>,
    id: Id,
    Extension(operator): Extension<Arc<Operator>>,
) -> Answered {
    let id = text(id)?;
    with_store(&door, move |store| {
        Ok(json!(store.question(operator.access(), &id)?))
    })
    .await
}

/// Answers a question, unless it is answered, expired or withdrawn.
pub(super) async fn answer(
    State(door): State<Arc<Door>>,
    Extension(operator): Extension<Arc<Operator>>,
    id: Id,
    request: Request,
) -> Answered {
    let id = text(id)?;
    let (parts, body) = request.into_parts();
    let read = body::read(&door.config, &door.memory, &parts.headers, body).await;
    let (bytes, _taken) = read?;
    body::object(&bytes)?;
    let given: Given = serde_json::from_slice(&bytes)
        .map_err(|error| HttpRefusal::bad(format!("the question was not answered: {error}")))?;
    check(&given)?;
    let own_runs = door.records.own_runs();
    with_store(&door, move |store| {
        settle(store, &operator, &id, &given, own_runs)
    })
    .await
}

/// Answers with the runs, the newest first, without their reports.
pub(super) async fn runs(
    State(door): State<Arc<Door>>,
    Extension(operator): Extension<Arc<Operator>>,
    uri: Uri,
) -> Answered {
    let filter: RunFilter = query(&uri)?;
    with_store(&door, move |store| {
        let page = store.runs(operator.access(), &filter)?;
        Ok(list("runs", &page, |_| {}))
    })
    .await
}

/// Answers with a run, its report and its calls.
pub(super) async fn run(
    State(door): State<Arc<Door>>,
    id: Id,
    Extension(operator): Extension<Arc<Operator>>,
) -> Answered {
    let id = text(id)?;
    with_store(&door, move |store| {
        let access = operator.access();
        let mut run = json!(store.run(access, &id)?);
        run["calls"] = json!(store.calls(access, &id, 0, usize::MAX)?);
        Ok(run)
    })
    .await
}

fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, HttpRefusal> {
    let read = Query::<T>::try_from_uri(uri);
    read.map(|Query(query)| query)
        .map_err(|wrong| HttpRefusal::bad(wrong.body_text()))
}

fn text(id: Id) -> Result<String, HttpRefusal> {
    let wrong = |_| HttpRefusal::bad("the id in the path is not UTF-8");
    id.map(|Path(id)| id).map_err(wrong)
}

/// A page of records, each changed for the list.
fn list<T: Serialize>(name: &str, page: &Page<T>, change: impl Fn(&mut Value)) -> Value {
    let mut items: Vec<Value> = page.items.iter().map(|item| json!(item)).collect();
    items.iter_mut().for_each(change);
    json!({ name: items, "next": page.next })
}

/// Does an operation of the store on a thread that may block.
async fn with_store(
    door: &Door,
    act: impl FnOnce(&dyn Store) -> Shown + Send + 'static,
) -> Answered {
    let store = door.records.store().cloned().ok_or_else(|| {
        let message = "there is no record of runs; the operator's log has the reason";
        HttpRefusal::unavailable(message, RETRY_SECONDS)
    })?;
    let done = tokio::task::spawn_blocking(move || {
        // Nothing waits for the questions of ended processes.
        store.close_lost(Timestamp::now())?;
        store.expire_questions(Access::All, Timestamp::now())?;
        act(&*store)
    });
    let done = done.await;
    let shown = done.unwrap_or_else(|_panicked| {
        let message = "this server could not answer";
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Err(HttpRefusal::new(status, message))
    });
    shown.map(Json)
}

impl From<StoreError> for HttpRefusal {
    fn from(error: StoreError) -> Self {
        match error.kind() {
            StoreErrorKind::NotFound => Self::new(StatusCode::NOT_FOUND, error.to_string()),
            StoreErrorKind::Conflict => Self::new(StatusCode::CONFLICT, error.to_string()),
            _ => {
                tracing::warn!(%error, "the record of runs cannot be used");
                let message = "the record of runs cannot be used now; the operator's log has the \
                               reason";
                Self::unavailable(message, RETRY_SECONDS)
            }
        }
    }
}

/// Checks the members of an answer against each other.
fn check(given: &Given) -> Result<(), HttpRefusal> {
    if matches!(given.answer, Choice::Always | Choice::DenyRun) {
        let message = "\"answer\" must be \"once\", \"run\", \"session\" or \"deny\"";
        return Err(HttpRefusal::bad(message));
    }
    let reason = given.reason.as_deref().unwrap_or_default();
    if !reason.is_empty() && given.answer != Choice::Deny {
        return Err(HttpRefusal::bad(
            "\"reason\" goes with \"answer\": \"deny\" only",
        ));
    }
    if reason.chars().count() > MAX_REASON {
        let message = format!("\"reason\" has more than {MAX_REASON} characters");
        return Err(HttpRefusal::bad(message));
    }
    let Some(arguments) = &given.arguments else {
        return Ok(());
    };
    if given.answer != Choice::Once {
        return Err(HttpRefusal::bad(
            "\"arguments\" go with \"answer\": \"once\" only",
        ));
    }
    if !arguments.get().starts_with('{') {
        return Err(HttpRefusal::bad("\"arguments\" must be an object"));
    }
    Ok(())
}

/// Answers a question in the store.
fn settle(
    store: &dyn Store,
    operator: &Operator,
    id: &str,
    given: &Given,
    own_runs: bool,
) -> Shown {
    let access = operator.access();
    let question = store.question(access, id)?;
    if !own_runs && operator.is_user(&question.user) {
        let message = "this is a question of your own run, which a different operator must answer \
                       (\"self\": false in \"asking\")";
        return Err(HttpRefusal::new(StatusCode::FORBIDDEN, message));
    }
    let mut answer = AnswerRecord::default();
    answer.choice = given.answer;
    answer.reason = given.reason.clone().filter(|reason| !reason.is_empty());
    answer.by.clone_from(&operator.name);
    "http".clone_into(&mut answer.via);
    if let Some(arguments) = &given.arguments {
        let bytes = arguments.get().as_bytes();
        let hash = store.put_blob(&question.user, &question.run, bytes)?;
        answer.edited = Some(Body {
            sha256: hash.clone(),
            bytes: bytes.len() as u64,
            blob: Some(hash),
        });
    }
    answer.at = Timestamp::now();
    let settled = store.answer_question(access, id, &answer)?;
    let is_repeated = settled.question.answer.as_ref().is_some_and(|first| {
        answer.at = first.at;
        answer == *first
    });
    if settled.is_first || is_repeated {
        return Ok(json!(settled.question));
    }
    Err(HttpRefusal::new(
        StatusCode::CONFLICT,
        refusal(&settled.question),
    ))
}

/// Why an answer does not count.
fn refusal(question: &QuestionRecord) -> String {
    let at = question.closed.map(|at| format!(" at {at:.0}"));
    let at = at.unwrap_or_default();
    match (question.state, &question.answer) {
        (QuestionState::Answered, Some(first)) => format!(
            "the question was answered first by {:?} (way {}){at}: {}",
            first.by,
            first.via,
            json!(first.choice).as_str().unwrap_or_default()
        ),
        (QuestionState::Expired, _) => format!("the question expired{at}"),
        _ => format!(
            "the question was withdrawn{at}: {}",
            question.withdrawn.as_deref().unwrap_or("its run has ended")
        ),
    }
}
