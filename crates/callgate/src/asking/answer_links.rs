//! Secret links, each of which answers one question once over HTTP.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;

/// The open questions that have a link.
pub struct AnswerLinks {
    /// The URL that a secret is added to.
    base: String,
    /// The questions by the secrets of their links.
    open: Mutex<HashMap<String, LinkedQuestion>>,
}

struct LinkedQuestion {
    text: String,
    answer: oneshot::Sender<LinkAnswer>,
}

/// An answer at a link.
#[derive(Debug)]
pub struct LinkAnswer {
    /// True if this call may be sent.
    pub allows: bool,
    /// The reason of a denial, for the script.
    pub reason: Option<String>,
}

impl AnswerLinks {
    /// Links below the URL of this server, which its clients use.
    pub(super) fn new(public_url: &str) -> Arc<Self> {
        Arc::new(Self {
            base: format!("{}/answer/", public_url.trim_end_matches('/')),
            open: Mutex::default(),
        })
    }

    /// Makes the link of a question, which it shows with this text.
    pub(super) fn add(self: &Arc<Self>, text: String) -> AnswerLink {
        // Two random UUIDs have 244 random bits.
        let secret = [Uuid::new_v4(), Uuid::new_v4()].map(|id| id.simple().to_string());
        let secret = secret.concat();
        let (answer, answered) = oneshot::channel();
        let question = LinkedQuestion { text, answer };
        self.open.lock().insert(secret.clone(), question);
        AnswerLink {
            links: Arc::clone(self),
            secret,
            answered,
        }
    }

    /// The question of a link as text; `None` if it is not open.
    pub fn question(&self, secret: &str) -> Option<String> {
        let open = self.open.lock();
        open.get(secret).map(|question| question.text.clone())
    }

    /// Answers the question of a link. False if the question is not open.
    pub fn answer(&self, secret: &str, answer: LinkAnswer) -> bool {
        let question = self.open.lock().remove(secret);
        question.is_some_and(|question| question.answer.send(answer).is_ok())
    }
}

/// The link of one question, which is open until the value is dropped.
pub(super) struct AnswerLink {
    links: Arc<AnswerLinks>,
    secret: String,
    answered: oneshot::Receiver<LinkAnswer>,
}

impl AnswerLink {
    pub(super) fn url(&self) -> String {
        format!("{}{}", self.links.base, self.secret)
    }

    /// Waits for the answer at the link.
    pub(super) async fn answered(&mut self) -> Option<LinkAnswer> {
        (&mut self.answered).await.ok()
    }
}

impl Drop for AnswerLink {
    fn drop(&mut self) {
        self.links.open.lock().remove(&self.secret);
    }
}
