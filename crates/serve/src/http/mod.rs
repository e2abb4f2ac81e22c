//! MCP over HTTP: who is let in, as which user, and how much they may ask.
//!
//! A request goes through the [`door`]: [`guard`] looks at the names in it,
//! [`auth`] at whose it is, [`limits`] at how many there are; then [`mcp`] reads
//! it and hands it to the transport of its user, of whom [`users`] has a gate,
//! runs and sessions that are no other's. What is at `/v1` goes the same way, to
//! [`crate::rest`].

mod auth;
mod bearer;
pub(crate) mod body;
pub(crate) mod door;
mod guard;
mod limits;
mod mcp;
mod oauth;
pub(crate) mod refusal;
mod sessions;
pub(crate) mod users;

pub use auth::Identity;
pub use users::MakeGate;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::{Extension, Router};
use callgate::CancellationToken;
use callgate::config::{HttpConfig, UsersConfig};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::AbortOnDropHandle;

use auth::Auth;
use door::{Door, Peer};
use guard::Guard;
use limits::Rates;
use users::Users;

use crate::options::ServeOptions;

/// The largest head of a request, in bytes; over it: status 431. Where blanks stand
/// that mean nothing, a head may have some more.
const MAX_HEAD: usize = 64 << 10;
/// The most headers of a request.
const MAX_HEADERS: usize = 100;
/// How long answers have to leave when all is over.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// How often it is looked whether runs have ended.
const LOOKING: Duration = Duration::from_millis(50);

/// Why MCP is not served over HTTP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// Others than this machine's could send requests, and need nothing for it.
    #[error(
        "{0} can be reached from other machines, and nobody needs a token; set \"bearer\" or \
         \"oauth\" in \"serve\", \"http\", or serve on 127.0.0.1"
    )]
    Unprotected(SocketAddr),
    /// No request could pass.
    #[error(
        "{0} has no name of its own, so no Host header could be right; name the hosts that \
         clients use with --allowed-host or \"allowedHosts\" in \"serve\", \"http\""
    )]
    NoHost(SocketAddr),
    /// Clients could not be told what to ask tokens for.
    #[error(
        "\"oauth\" in \"serve\", \"http\" has no \"resource\", and {0} is not what clients call; \
         write the URL that they use, such as \"https://callgate.example.com/mcp\""
    )]
    NoResource(SocketAddr),
    /// What is configured to let users in cannot be used.
    #[error("{0}")]
    Auth(String),
    /// The address cannot be had.
    #[error("cannot listen at {address}: {reason}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The system's reason.
        reason: String,
    },
}

/// Serves MCP over HTTP until `stop`, at `/mcp` of `address`. `listening` is
/// told the address, which has a port in any case.
///
/// Each user has a gate of their own, made by `make` at their first request.
/// When it is told to stop, it lets nobody in any more, lets runs go on for
/// [`HttpConfig::shutdown_time`], cancels those that are left, delivers their
/// reports, and ends the gates.
///
/// # Errors
///
/// [`HttpError`]; nothing has been served then.
pub async fn serve_http(
    make: MakeGate,
    address: SocketAddr,
    config: HttpConfig,
    users: UsersConfig,
    options: ServeOptions,
    stop: CancellationToken,
    listening: impl FnOnce(SocketAddr),
) -> Result<(), HttpError> {
    let is_open = config.bearer.is_empty() && config.oauth.is_none();
    let is_near = address.ip().is_loopback();
    if !is_near && is_open {
        return Err(HttpError::Unprotected(address));
    }
    let has_resource = config
        .oauth
        .as_ref()
        .is_none_or(|oauth| oauth.resource.is_some());
    if !is_near && !has_resource {
        return Err(HttpError::NoResource(address));
    }
    let guard = Guard::new(address, &config);
    if guard.is_shut() {
        return Err(HttpError::NoHost(address));
    }
    let failed = |error: std::io::Error| HttpError::Listen {
        address,
        reason: error.to_string(),
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let auth = Auth::new(&config, &users, &format!("http://{bound}/mcp")).await;
    let users = Users::new(make, options, config.clone(), &users);
    let door = Arc::new(Door {
        guard,
        auth: auth.map_err(HttpError::Auth)?,
        rates: Rates::new(&config.rate),
        users: Arc::clone(&users),
        config,
        closing: AtomicBool::new(false),
    });
    let sweeping = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&users).sweep()));
    // There is one user, whose first request need not wait for servers to start.
    if door.auth.is_open() {
        let everybody = door.auth.identify(&HeaderMap::new()).await;
        if everybody
            .and_then(|everybody| users.lease(&everybody))
            .is_err()
        {
            tracing::warn!(
                "everybody is refused: \"default\" in \"users\" has no role that gives a server"
            );
        }
    }
    listening(bound);
    let connections = GracefulShutdown::new();
    accept(listener, &door, &connections, &stop).await;
    drop(sweeping);
    door.closing.store(true, Ordering::Release);
    end(&door, connections).await;
    Ok(())
}

async fn accept(
    listener: TcpListener,
    door: &Arc<Door>,
    connections: &GracefulShutdown,
    stop: &CancellationToken,
) {
    let router = door::router(Arc::clone(door));
    let most = door.config.connections.min(Semaphore::MAX_PERMITS);
    let places = Arc::new(Semaphore::new(most));
    let accepting = async {
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                return;
            };
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let time = door.config.request_time;
                    serve(stream, peer, &router, time, connections, place);
                }
                // Such as no file descriptors being left: some may be soon.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(LOOKING).await;
                }
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        () = stop.cancelled() => {}
    }
}

fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    router: &Router,
    head_time: Duration,
    connections: &GracefulShutdown,
    place: OwnedSemaphorePermit,
) {
    // Answers are small and wanted at once.
    let _slower = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router.clone().layer(Extension(Peer(peer))));
    // HTTP/2 comes from proxies, which speak HTTP/1.1 on this side; without it
    // there is less to go wrong.
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(head_time)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD);
    let connection = builder
        .serve_connection(TokioIo::new(stream), service)
        .into_owned();
    let connection = connections.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error, "a connection ended early");
        }
        drop(place);
    });
}

/// Lets runs end, or ends them, and then everything.
async fn end(door: &Door, connections: GracefulShutdown) {
    let users = &door.users;
    users.answering().close();
    let by_themselves = async {
        users.answering().wait().await;
        while users.has_runs() {
            tokio::time::sleep(LOOKING).await;
        }
    };
    let _late = tokio::time::timeout(door.config.shutdown_time, by_themselves).await;
    users.end_runs().await;
    // Their reports.
    let _late = tokio::time::timeout(LAST_WORDS, users.answering().wait()).await;
    users.end().await;
    let _late = tokio::time::timeout(LAST_WORDS, connections.shutdown()).await;
}
