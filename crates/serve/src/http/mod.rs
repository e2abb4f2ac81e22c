//! MCP over HTTP.
//!
//! A request passes the [`door`]: [`guard`] checks its names, [`auth`] its user, [`limits`] the
//! rate. Then [`mcp`] or [`rest`] answers it for its user; [`users`] has a gate, runs and
//! sessions for each. The paths of [`operators`] have a door of their own.

mod accept;
mod answer_link;
mod auth;
mod bearer;
mod body;
mod door;
mod guard;
mod limits;
mod mcp;
mod newcomers;
mod oauth;
mod operators;
mod refusal;
mod rest;
mod users;

pub use auth::Identity;
pub use users::{MakeGate, MakingGate};

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get};
use axum::{Extension, Router};
use callgate::CancellationToken;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::AbortOnDropHandle;

use auth::Auth;
use door::Door;
use guard::{Guard, MAX_HEAD};
use newcomers::{Newcomer, Newcomers};
use oauth::METADATA_PATH;
use users::Users;

use crate::config::ServeConfig;
use crate::runs::Records;
use crate::stdio::ServeError;

/// The limit of headers in a request.
const MAX_HEADERS: usize = 100;
/// The time limit for a head to arrive, and for a connection to wait for a head.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// The time for the last answers at the end.
const LAST_ANSWERS: Duration = Duration::from_secs(3);
/// The interval at which runs are polled at the end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Serves MCP over HTTP at `/mcp` of `address` until `stop`. `listening` gets the address with
/// its port.
///
/// `make` makes the gate of each user at the user's first request. With operators in the
/// configuration, questions that a client cannot show wait in `records` for them. After `stop`,
/// requests are refused, runs continue for `shutdown_time` of the configuration, the others are
/// cancelled, and reports are sent.
/// The error: [`ServeError`], before anything is served.
pub async fn serve_http(
    make: MakeGate,
    records: Records,
    address: SocketAddr,
    config: ServeConfig,
    stop: CancellationToken,
    listening: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    let is_open = config.http.bearer.is_empty() && config.http.oauth.is_none();
    let is_near = address.ip().is_loopback();
    if !is_near && is_open {
        return Err(ServeError(format!(
            "{address} can be reached from other machines, and no token is required; set \"bearer\" or \
             \"oauth\" in \"serve\", \"http\", or serve on 127.0.0.1"
        )));
    }
    let oauth = config.http.oauth.as_ref();
    let has_resource = oauth.is_none_or(|oauth| oauth.resource.is_some());
    if !is_near && !has_resource {
        return Err(ServeError(format!(
            "\"oauth\" in \"serve\", \"http\" has no \"resource\", and clients cannot use {address} as a \
             URL; set it to the URL that they use, such as \"https://callgate.example.com/mcp\""
        )));
    }
    let guard = Guard::new(address, &config.http);
    if guard.hosts.is_empty() {
        return Err(ServeError(format!(
            "{address} stands for all addresses, so no Host header can match it; name the hosts \
             that clients use with --allowed-host or \"allowedHosts\" in \"serve\", \"http\""
        )));
    }
    let failed = |error: std::io::Error| ServeError(format!("cannot listen at {address}: {error}"));
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let auth = Auth::new(&config, &format!("http://{bound}/mcp")).await;
    let users = Users::new(make, records.clone(), config.clone());
    let door = Arc::new(Door {
        guard,
        auth: auth.map_err(ServeError)?,
        users: Arc::clone(&users),
        records,
        memory: users.memory(),
        config: config.http,
        closing: AtomicBool::new(false),
    });
    let sweeping = AbortOnDropHandle::new(tokio::spawn(Arc::clone(&users).sweep()));
    // Without authentication there is one user, whose servers start before the first request.
    if door.auth.is_open() {
        let user = door.auth.identify(&HeaderMap::new()).await;
        if user.and_then(|user| users.lease(&user)).is_err() {
            tracing::warn!(
                "all requests are refused: \"default\" in \"users\" has no role that gives a server"
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

/// The routes and the layers before them. Requests behind `admit` have the user's lease, and those
/// behind `admit_operator` the operator.
fn router(door: Arc<Door>) -> Router {
    let mut admin = Router::new();
    if door.auth.has_operators() {
        let admitted = from_fn_with_state(Arc::clone(&door), door::admit_operator);
        admin = rest::admin_routes().layer(admitted);
    }
    let behind = Router::new()
        .route("/mcp", any(mcp::answer))
        .merge(rest::routes())
        .layer(from_fn_with_state(Arc::clone(&door), door::admit));
    let mut links = Router::new();
    if door.config.public_url.is_some() {
        links = answer_link::routes();
    }
    let guarded = Router::new()
        .route(METADATA_PATH, get(door::metadata))
        .route(&format!("{METADATA_PATH}/{{*path}}"), get(door::metadata))
        .merge(behind)
        .merge(admin)
        .merge(links)
        .fallback(door::nowhere)
        .method_not_allowed_fallback(door::wrong_method)
        .layer(from_fn_with_state(Arc::clone(&door), door::guard))
        .with_state(door);
    // A probe has no host name and no token, and the answer reveals nothing.
    let health = get("ok\n").fallback(door::wrong_method);
    Router::new().route("/healthz", health).merge(guarded)
}

async fn accept(
    listener: TcpListener,
    door: &Arc<Door>,
    connections: &GracefulShutdown,
    stop: &CancellationToken,
) {
    let router = router(Arc::clone(door));
    let max = door.config.connections.min(Semaphore::MAX_PERMITS);
    let places = Arc::new(Semaphore::new(max));
    let newcomers = Arc::<Newcomers>::default();
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    if places.available_permits() == 0 {
                        newcomers.end_one();
                    }
                    let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                        return;
                    };
                    let time = door.config.request_time.min(HEAD_TIME);
                    let newcomer = newcomers.add(peer.ip());
                    let router = router.clone().layer(Extension(Arc::clone(&newcomer)));
                    serve(stream, router, time, connections, (place, newcomer));
                }
                // The process may be out of file descriptors for a moment.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(POLL_INTERVAL).await;
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
    router: Router,
    head_time: Duration,
    connections: &GracefulShutdown,
    (place, newcomer): (OwnedSemaphorePermit, Arc<Newcomer>),
) {
    // Answers are small, and clients wait for them.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router);
    // Proxies that take HTTP/2 speak HTTP/1.1 to the server behind.
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
        tokio::select! {
            ended = connection => if let Err(error) = ended {
                tracing::debug!(error, "a connection ended early");
            },
            () = newcomer.ended() => tracing::debug!("a connection was closed to make room"),
        }
        drop(place);
    });
}

/// Waits for runs, cancels the rest, and ends all users.
async fn end(door: &Door, connections: GracefulShutdown) {
    let users = &door.users;
    users.answering.close();
    let by_themselves = async {
        users.answering.wait().await;
        while users.has_running() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let _ = tokio::time::timeout(door.config.shutdown_time, by_themselves).await;
    users.end_runs().await;
    let _ = tokio::time::timeout(LAST_ANSWERS, users.answering.wait()).await;
    users.end().await;
    let _ = tokio::time::timeout(LAST_ANSWERS, connections.shutdown()).await;
}
