//! `POST /v1/run`: one script and its report.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};

use crate::http::body;
use crate::http::door::Door;
use crate::http::refusal::HttpRefusal;
use crate::http::users::Lease;
use crate::runs::NoRun;

/// Seconds after which there may be room for a run.
const RETRY_SECONDS: u64 = 1;

/// Answers with the report. If the client disconnects, this future is dropped, which cancels the
/// run.
pub(super) async fn answer(
    State(door): State<Arc<Door>>,
    Extension(lease): Extension<Arc<Lease>>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let (parts, body) = request.into_parts();
    let memory = &lease.user.memory;
    let (bytes, _taken) = body::read(&door.config, memory, &parts.headers, body).await?;
    let arguments = body::object(&bytes)?;
    let gate = lease.user.listed_gate().await?;
    let report = lease.user.service.runs.report(gate, &arguments).await;
    Ok(Json(report.map_err(refused)?).into_response())
}

fn refused(none: NoRun) -> HttpRefusal {
    let status = match none {
        NoRun::Wrong(_) => StatusCode::BAD_REQUEST,
        NoRun::Full => StatusCode::TOO_MANY_REQUESTS,
        NoRun::Lost => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let refused = HttpRefusal::new(status, none.to_string());
    match none {
        NoRun::Full => refused.with(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS)),
        _ => refused,
    }
}
