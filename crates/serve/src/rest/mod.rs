//! `/v1`: tools and runs for clients that speak HTTP and no MCP.
//!
//! A request comes through the same [`door`](crate::http::door) as those for
//! MCP, to the same user. [`RESOURCES`] is all there is: the routes are made of
//! it, and so is the document that describes them.

mod asked;
mod document;
mod kept;
mod run;
mod tools;

use std::sync::Arc;

use axum::routing::{MethodRouter, get, post};
use axum::{Extension, Router};
use serde_json::Value;

use crate::http::door::{Admitted, Door};

/// What there is at one path.
struct Resource {
    path: &'static str,
    route: fn() -> MethodRouter<Arc<Door>>,
    /// Its path item (OpenAPI 3.1, "Path Item Object").
    described: fn() -> Value,
}

const RESOURCES: [Resource; 4] = [
    Resource {
        path: "/v1/tools",
        route: || get(tools::list),
        described: document::list,
    },
    Resource {
        path: "/v1/tools/{name}",
        route: || get(tools::one),
        described: document::one,
    },
    Resource {
        path: "/v1/run",
        route: || post(run::answer),
        described: document::run,
    },
    Resource {
        path: "/v1/openapi.json",
        route: || get(document::answer),
        described: document::itself,
    },
];

/// The routes, for those who are let in.
pub(crate) fn routes() -> Router<Arc<Door>> {
    let add = |router: Router<Arc<Door>>, resource: &Resource| {
        router.route(resource.path, (resource.route)())
    };
    RESOURCES.iter().fold(Router::new(), add)
}

/// Whoever asks.
type Caller = Extension<Admitted>;
