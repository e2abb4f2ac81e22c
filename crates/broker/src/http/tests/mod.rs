//! The link against servers that do as the revisions say, and others.

mod hostile;
mod mirroring;
mod server;
mod sessions;
mod stateless;

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ProtocolVersion;

use self::server::Server;
use super::{Endpoint, HttpLink};
use crate::auth::{Authorize, NoAuthorization};
use crate::inbox::Inbox;
use crate::link::{Link, Outgoing};
use crate::secrets::Secrets;
use crate::spec::{Http, Transport};

/// The limit of messages, in bytes.
const LIMIT: usize = 10_000;

/// A client of one server.
struct Client {
    inbox: Arc<Inbox>,
    link: Arc<dyn Link>,
}

impl Client {
    fn new(server: &Server) -> Self {
        Self::with(&server.url(), Arc::new(NoAuthorization))
    }

    fn with(url: &str, authorize: Arc<dyn Authorize>) -> Self {
        let http = Http {
            url: url.to_owned(),
            headers: [("X-Key".to_owned(), "hunter2-hunter2".to_owned())].into(),
            ..Http::default()
        };
        let secrets = Secrets::of(&Transport::Http(http.clone()));
        let inbox = Inbox::new("s".into(), LIMIT);
        let endpoint = Endpoint::new(&http, authorize, secrets).expect("it is a URL");
        let link = HttpLink::new("s".into(), endpoint, Arc::clone(&inbox));
        Self {
            inbox,
            link: Arc::new(link),
        }
    }

    /// A client that has agreed on a revision.
    fn speaking(server: &Server, version: ProtocolVersion) -> Self {
        let client = Self::new(server);
        client.link.agreed(&version);
        client
    }

    /// Sends a request and shows its answer.
    async fn request(&self, method: &str) -> String {
        self.request_with(method, None, &[]).await
    }

    async fn request_with(
        &self,
        method: &str,
        name: Option<&str>,
        parameters: &[(String, String)],
    ) -> String {
        let sent = async {
            let mut flight = crate::flight::Flight::open(&self.inbox, &self.link, None, method)
                .expect("it is not lost");
            let id = flight.id();
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
            let message = Outgoing {
                text: &text,
                method,
                id: Some(id),
                name,
                parameters,
            };
            flight.send(message).await?;
            flight.answer().await
        };
        match in_time(sent).await {
            Ok(result) => result.get().to_owned(),
            Err(failure) => format!("{failure:?}"),
        }
    }
}

/// Fails instead of hanging.
async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("within 20 s")
}
