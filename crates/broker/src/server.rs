//! One server of a broker, whatever becomes of its connection.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use crate::broker::{ServerState, Status};
use crate::caller::Caller;
use crate::connection::Connection;
use crate::error::{StartError, StartErrorKind};
use crate::patience::Patience;
use crate::spec::ServerSpec;
use crate::start::start;

#[derive(Debug)]
pub(crate) struct Server {
    spec: ServerSpec,
    status: RwLock<Status>,
    connection: Result<Connection, StartError>,
}

impl Server {
    /// Starts a server. Afterwards `changes` counts what changes about it.
    pub(crate) async fn start(
        spec: ServerSpec,
        unique: bool,
        changes: &Arc<watch::Sender<u64>>,
    ) -> Self {
        let started = if unique {
            start(&spec).await
        } else {
            Err(StartError {
                server: spec.name.clone(),
                kind: StartErrorKind::DuplicateName,
                stderr: String::new(),
            })
        };
        let (connection, status) = match started {
            Ok((connection, ready)) => (Ok(connection), Status::Ready(Arc::new(ready))),
            Err(error) => {
                tracing::debug!(server = spec.name, %error, "a server did not start");
                (Err(error.clone()), Status::Failed(error))
            }
        };
        changes.send_modify(|count| *count += 1);
        Self {
            spec,
            status: RwLock::new(status),
            connection,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    pub(crate) fn trusted(&self) -> bool {
        self.spec.trusted
    }

    pub(crate) fn patience(&self) -> Patience {
        Patience {
            idle: self.spec.call_timeout,
            most: self.spec.max_call_time,
        }
    }

    pub(crate) fn caller(&self) -> Arc<dyn Caller> {
        Arc::clone(&self.spec.caller)
    }

    /// What there is of it now.
    pub(crate) fn state(&self) -> ServerState {
        let status = self.status.read().unwrap_or_else(PoisonError::into_inner);
        ServerState {
            name: self.spec.name.clone(),
            trusted: self.spec.trusted,
            status: status.clone(),
        }
    }

    /// The connection, or why there is none.
    pub(crate) fn connection(&self) -> Result<&Connection, &StartError> {
        self.connection.as_ref()
    }
}
