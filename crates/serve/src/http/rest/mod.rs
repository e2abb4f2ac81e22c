//! `/v1`: tools and runs for clients that speak HTTP without MCP.
//!
//! A request passes the same door and has the same users as MCP; those below `/v1/admin` are for
//! operators.

mod admin;
mod etag;
mod openapi;
mod query;
mod run;
mod tools;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use super::door::Door;

/// The routes behind the door. `openapi.json` describes them.
pub(super) fn routes() -> Router<Arc<Door>> {
    Router::new()
        .route("/v1/tools", get(tools::list))
        .route("/v1/tools/{name}", get(tools::one))
        .route("/v1/run", post(run::answer))
        .route("/v1/openapi.json", get(openapi::answer))
}

/// The routes for operators. `admin.json` describes them.
pub(super) fn admin_routes() -> Router<Arc<Door>> {
    Router::new()
        .route("/v1/admin/questions", get(admin::questions))
        .route("/v1/admin/questions/{id}", get(admin::question))
        .route("/v1/admin/questions/{id}/answer", post(admin::answer))
        .route("/v1/admin/runs", get(admin::runs))
        .route("/v1/admin/runs/{id}", get(admin::run))
}
