//! `POST /v1/run`: one script, and its report.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use super::Caller;
use crate::http::body;
use crate::http::door::{Admitted, Door};
use crate::http::refusal::Refusal;
use crate::http::users::User;
use crate::runs::{NoReport, NoRun};

/// Seconds after which there may be room for one more run.
const LATER: u64 = 1;

/// Answers with the report of a run. When the client goes away, this is dropped,
/// and the run is cancelled.
pub(super) async fn answer(
    State(door): State<Arc<Door>>,
    Extension(Admitted(lease)): Caller,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    match ran(&door, &lease.user, &parts, body).await {
        Ok(report) => {
            let mut response = Response::new(Body::from(report));
            let kind = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        Err(refused) => refused.problem(),
    }
}

async fn ran(door: &Door, user: &User, parts: &Parts, body: Body) -> Result<Vec<u8>, Refusal> {
    body::json_wanted(&parts.headers)?;
    let (most, time) = (door.config.max_body, door.config.request_time);
    let bytes = body::read(&parts.headers, body, most, time).await?;
    let arguments = body::object(&bytes)?;
    let gate = user.made_gate().await?;
    let report = user.service.runs.report(gate, &arguments).await;
    let report = report.map_err(refused)?;
    serde_json::to_vec(&report).map_err(|error| {
        tracing::error!(%error, "a report could not be written");
        failed()
    })
}

fn refused(none: NoReport) -> Refusal {
    match none {
        NoReport::Wrong(wrong) => Refusal::bad(wrong.to_string()),
        NoReport::NotBegun(none) => match none {
            NoRun::Full(full) => Refusal::new(StatusCode::TOO_MANY_REQUESTS, full.to_string())
                .with(RETRY_AFTER, HeaderValue::from(LATER)),
            NoRun::Failed => Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, none.to_string()),
        },
        NoReport::Lost => failed(),
    }
}

fn failed() -> Refusal {
    Refusal::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the run has no report, though it may have made calls; whoever runs this server can read \
         why",
    )
}
