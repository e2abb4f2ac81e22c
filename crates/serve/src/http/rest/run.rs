//! `POST /v1/run`: one script and its report.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};

use crate::http::body;
use crate::http::door::{Admitted, Door};
use crate::http::refusal::Refusal;
use crate::http::users::User;
use crate::runs::NoRun;

/// Seconds after which there may be room for a run.
const RETRY_SECONDS: u64 = 1;

/// Answers with the report. A client that goes away drops this future, which cancels the run.
pub(super) async fn answer(
    State(door): State<Arc<Door>>,
    Extension(Admitted(lease)): Extension<Admitted>,
    request: Request,
) -> Response {
    match report(&door, &lease.user, request).await {
        Ok(report) => {
            let kind = HeaderValue::from_static("application/json");
            ([(CONTENT_TYPE, kind)], Body::from(report)).into_response()
        }
        Err(refused) => refused.problem(),
    }
}

async fn report(door: &Door, user: &User, request: Request) -> Result<Vec<u8>, Refusal> {
    let (parts, body) = request.into_parts();
    let bytes = body::read(&door.config, &parts.headers, body).await?;
    let arguments = body::object(&bytes)?;
    let gate = user.made_gate().await?;
    let report = user.service.runs.report(gate, &arguments).await;
    serde_json::to_vec(&report.map_err(refused)?).map_err(|error| {
        tracing::error!(%error, "a report could not be written");
        refused(NoRun::Lost)
    })
}

fn refused(none: NoRun) -> Refusal {
    let status = match none {
        NoRun::Wrong(_) => StatusCode::BAD_REQUEST,
        NoRun::Full => StatusCode::TOO_MANY_REQUESTS,
        NoRun::Lost => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let refused = Refusal::new(status, none.to_string());
    match none {
        NoRun::Full => refused.with(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS)),
        _ => refused,
    }
}
