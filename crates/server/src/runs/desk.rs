//! Where what a run wants of its client goes: questions about calls, what
//! servers ask for while they work on one, and how far they are.

use std::time::Duration;

use callgate::{Answer, Asker, Question, Root};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::model::{ClientResult, InputRequest, ServerRequest};
use rmcp::service::{Peer, RoleServer, ServiceError};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::client::{Can, Client, Way};
use super::question;

/// News of progress that wait to be told. What does not fit is not told: the
/// next one says more.
const NEWS: usize = 64;

/// The desk of one run.
pub(crate) struct Desk {
    pub(crate) can: Can,
    /// The folders that the client named, if it names any.
    pub(crate) roots: Vec<Root>,
    route: Route,
    answer_time: Duration,
    news: mpsc::Sender<String>,
}

enum Route {
    Requests(Peer<RoleServer>),
    Rounds(mpsc::UnboundedSender<Wish>),
}

/// Something that a run wants of its client, and waits for.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) request: InputRequest,
    pub(crate) answer: oneshot::Sender<Value>,
}

/// What comes over a desk.
#[derive(Debug)]
pub(crate) struct Drawer {
    /// Wishes that are to be put into an answer. Bounded by the calls that may
    /// be under way.
    pub(crate) wishes: mpsc::UnboundedReceiver<Wish>,
    /// Lines that say how far servers are.
    pub(crate) news: mpsc::Receiver<String>,
}

/// Why a wish has no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// Nobody answered, or not in time.
    Nobody,
    /// The client could not do it, and said why.
    Failed(String),
}

impl Desk {
    /// A desk to this client.
    pub(crate) fn new(client: &Client, roots: Vec<Root>, answer_time: Duration) -> (Self, Drawer) {
        let (wish, wishes) = mpsc::unbounded_channel();
        let (news, told) = mpsc::channel(NEWS);
        let desk = Self {
            can: client.can,
            roots,
            route: match client.way {
                Way::Requests => Route::Requests(client.peer.clone()),
                Way::Rounds => Route::Rounds(wish),
            },
            answer_time,
            news,
        };
        let news = told;
        (desk, Drawer { wishes, news })
    }

    /// Tells the client's user something, if there is room for it.
    pub(crate) fn tell(&self, line: String) {
        let _full = self.news.try_send(line);
    }

    /// Has the client answer this.
    pub(crate) async fn wish(&self, request: InputRequest) -> Result<Value, Unanswered> {
        match &self.route {
            Route::Requests(peer) => {
                let asked = peer.send_request(as_request(request)?);
                match tokio::time::timeout(self.answer_time, asked).await {
                    Ok(Ok(result)) => as_value(&result),
                    Ok(Err(ServiceError::McpError(error))) => {
                        Err(Unanswered::Failed(error.message.into_owned()))
                    }
                    Ok(Err(_)) | Err(_) => Err(Unanswered::Nobody),
                }
            }
            Route::Rounds(wishes) => {
                let (answer, answered) = oneshot::channel();
                let wish = Wish { request, answer };
                wishes.send(wish).map_err(|_gone| Unanswered::Nobody)?;
                answered.await.map_err(|_dropped| Unanswered::Nobody)
            }
        }
    }
}

impl Asker for Desk {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        async move {
            let form = question::form(&question).filter(|_| self.can.form);
            let Some(form) = form else {
                return Answer::Nobody;
            };
            match self.wish(form).await {
                Ok(result) => question::answer(&result),
                Err(Unanswered::Nobody) => Answer::Nobody,
                Err(Unanswered::Failed(reason)) => {
                    tracing::debug!(reason, "the client could not ask its user");
                    Answer::Nobody
                }
            }
        }
        .boxed()
    }
}

fn as_request(request: InputRequest) -> Result<ServerRequest, Unanswered> {
    match request {
        InputRequest::Elicitation(request) => Ok(ServerRequest::ElicitRequest(request)),
        InputRequest::CreateMessage(request) => Ok(ServerRequest::CreateMessageRequest(request)),
        InputRequest::ListRoots(request) => Ok(ServerRequest::ListRootsRequest(request)),
        // A kind that is added later.
        _ => Err(Unanswered::Nobody),
    }
}

fn as_value(result: &ClientResult) -> Result<Value, Unanswered> {
    serde_json::to_value(result).map_err(|error| Unanswered::Failed(error.to_string()))
}
