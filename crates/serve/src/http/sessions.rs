//! The MCP sessions of one user (2025-11-25 and before), bounded in number.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::server_side_http::{ServerSseMessage, SessionId};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionError, SessionTransport,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The sessions of one user.
#[derive(Debug)]
pub(crate) struct Sessions {
    inner: LocalSessionManager,
    /// Free places, for this user and for all users.
    bounds: [Arc<Semaphore>; 2],
    taken: Mutex<HashMap<SessionId, [OwnedSemaphorePermit; 2]>>,
}

impl Sessions {
    /// At most `most` sessions, and at most `all` with those of other users. A session ends after
    /// `idle` without a message.
    pub(crate) fn new(most: usize, all: &Arc<Semaphore>, idle: Duration) -> Self {
        let mut inner = LocalSessionManager::default();
        inner.session_config.keep_alive = Some(idle);
        let own = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self {
            inner,
            bounds: [own, Arc::clone(all)],
            taken: Mutex::default(),
        }
    }

    /// True if another session can begin.
    pub(crate) fn has_room(&self) -> bool {
        self.bounds
            .iter()
            .all(|bound| bound.available_permits() > 0)
    }

    /// True if there are no sessions.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken().is_empty()
    }

    /// True if there is a session with this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.taken().contains_key(id)
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<SessionId, [OwnedSemaphorePermit; 2]>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = SessionTransport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let permit = |bound: &Arc<Semaphore>| Arc::clone(bound).try_acquire_owned();
        let [own, all] = &self.bounds;
        let (Ok(own), Ok(all)) = (permit(own), permit(all)) else {
            let full = std::io::Error::other("the limit on sessions is reached");
            return Err(SessionError::Io(full).into());
        };
        let (id, transport) = self.inner.create_session().await?;
        self.taken().insert(Arc::clone(&id), [own, all]);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.inner.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.inner.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        drop(self.taken().remove(id));
        self.inner.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.create_stream(id, message).await
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.inner.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.inner.resume(id, last_event_id).await
    }
}
