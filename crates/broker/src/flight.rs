//! A request in the air: whoever awaits it reads for all, and dropping it
//! cancels it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::failure::Failure;
use crate::handshake::{DISCOVER, INITIALIZE};
use crate::inbox::{Answer, Inbox, Who};
use crate::link::{Link, LinkError, LinkErrorKind, Outgoing};

/// The request by which a server of the newest revision is listened to. Its answer is the end.
pub(crate) const LISTEN: &str = "subscriptions/listen";

/// A request whose answer has not been taken.
///
/// Dropped before that, it forgets the request, and tells the server not to go
/// on with it if it was sent.
#[derive(Debug)]
pub(crate) struct Flight {
    inbox: Arc<Inbox>,
    link: Arc<dyn Link>,
    id: u64,
    /// Whether a drop tells the server.
    cancellable: bool,
    sent: bool,
    landed: bool,
}

impl Flight {
    /// Opens a flight; nothing is sent yet.
    pub(crate) fn open(
        inbox: &Arc<Inbox>,
        link: &Arc<dyn Link>,
        who: Option<Who>,
        method: &str,
    ) -> Result<Self, LinkError> {
        Ok(Self {
            id: inbox.open(who, method == LISTEN)?,
            inbox: Arc::clone(inbox),
            link: Arc::clone(link),
            // The handshake may not be cancelled.
            cancellable: !matches!(method, INITIALIZE | DISCOVER),
            sent: false,
            landed: false,
        })
    }

    /// A drop does not tell the server.
    pub(crate) fn is_not_cancelled(&mut self) {
        self.cancellable = false;
    }

    /// The JSON-RPC id.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Sends the request. While it is on its way its answer may come already,
    /// and over HTTP some of it has by the time this resolves. If the connection is
    /// lost meanwhile, that is the answer, and what is on its way is left.
    pub(crate) async fn send(&mut self, message: Outgoing<'_>) -> Result<(), Failure> {
        // Should this future be dropped, the server may have seen it.
        self.sent = true;
        let mut sending = self.link.send(message);
        let sent = poll_fn(|cx| match sending.as_mut().poll(cx) {
            Poll::Pending => self.inbox.poll_answered(self.id, cx).map(Ok),
            sent => sent,
        });
        sent.await.map_err(|error| {
            self.sent = error.sent;
            match error.kind {
                LinkErrorKind::Changed(what) => Failure::changed(what),
                _ => Failure::Lost(error),
            }
        })
    }

    /// Waits for the answer. Taken once.
    pub(crate) async fn answer(&mut self) -> Answer {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// [`Flight::answer`] for those who wait for something else as well.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        if let Poll::Ready(answer) = self.inbox.poll_to_read(self.id, cx) {
            return Poll::Ready(self.land(answer));
        }
        self.link.read(self.id, cx);
        // Reading may have brought it.
        match self.inbox.poll(self.id, cx) {
            Poll::Ready(answer) => Poll::Ready(self.land(answer)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn land(&mut self, answer: Answer) -> Answer {
        self.landed = true;
        self.link.left(self.id);
        answer
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if self.landed {
            return;
        }
        let waited = self.inbox.forget(self.id);
        self.link.left(self.id);
        if waited && self.sent {
            let told = self.cancellable.then(|| cancelled(self.id));
            self.link.cancel(self.id, told);
        }
    }
}

fn cancelled(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"the caller no longer waits for it"}}}}"#
    )
}
