//! `GET /v1/openapi.json`: the description of REST (OpenAPI 3.1), from `openapi.json`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use callgate::settings::Limits;
use serde_json::{Map, Value, json};

use super::etag::tagged;
use crate::http::door::Door;
use crate::http::refusal::HttpRefusal;
use crate::http::users::Lease;
use crate::runs;

/// Answers with the document of this user, with the user's limits.
pub(super) async fn answer(
    State(door): State<Arc<Door>>,
    Extension(lease): Extension<Arc<Lease>>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let gate = lease.user.listed_gate().await?;
    let mut document = document(gate.limits(), door.auth.is_open());
    if door.auth.has_operators() {
        add_admin(&mut document);
    }
    Ok(tagged(&document, request.headers()))
}

/// The document. A server without authentication has no security scheme.
fn document(limits: &Limits, is_open: bool) -> Value {
    let text = include_str!("openapi.json");
    let mut document: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
    if is_open {
        document.shift_remove("security");
    }
    let mut document = Value::Object(document);
    document["info"]["version"] = env!("CARGO_PKG_VERSION").into();
    document["components"]["schemas"]["Script"] = Value::Object(runs::report_schema(limits));
    if is_open && let Some(components) = document["components"].as_object_mut() {
        components.shift_remove("securitySchemes");
    }
    document
}

/// Adds the paths for operators, from `admin.json`, with their schemas.
fn add_admin(document: &mut Value) {
    let mut admin: Value = serde_json::from_str(include_str!("admin.json")).unwrap_or_default();
    for place in ["/paths", "/components/schemas"] {
        if let Some(Value::Object(all)) = document.pointer_mut(place)
            && let Some(Value::Object(more)) = admin.pointer_mut(place)
        {
            all.append(more);
        }
    }
    document["components"]["securitySchemes"]["operator"] =
        json!({ "type": "http", "scheme": "bearer" });
}
