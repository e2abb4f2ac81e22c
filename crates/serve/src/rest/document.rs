//! `GET /v1/openapi.json`: what there is, for programs (OpenAPI 3.1).

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::response::Response;
use callgate::Limits;
use serde_json::{Map, Value, json};

use super::asked::{MOST, USUAL};
use super::kept::Kept;
use super::{Caller, RESOURCES};
use crate::http::door::{Admitted, Door};
use crate::http::refusal::Refusal;
use crate::http::users::User;
use crate::runs::Runs;

/// Answers with the document of this user, whose limits are in it.
pub(super) async fn answer(
    State(door): State<Arc<Door>>,
    Extension(Admitted(lease)): Caller,
    request: Request,
) -> Response {
    match made(&door, &lease.user).await {
        Ok(kept) => kept.answer(request.headers()),
        Err(refused) => refused.problem(),
    }
}

async fn made(door: &Door, user: &User) -> Result<Kept, Refusal> {
    let gate = user.made_gate().await?;
    let is_open = door.auth.is_open();
    Kept::made(move || Ok(document(gate.limits(), is_open))).await
}

fn document(limits: &Limits, is_open: bool) -> Value {
    let paths = RESOURCES.iter();
    let paths: Map<String, Value> = paths
        .map(|resource| (resource.path.to_owned(), (resource.described)()))
        .collect();
    let mut components = json!({
        "schemas": schemas(limits),
        "responses": { "Problem": {
            "description": "Why not, and what to do (RFC 9457)",
            "content": { "application/problem+json": { "schema": schema("Problem") } },
        } },
    });
    let mut document = json!({
        "openapi": "3.1.1",
        "info": {
            "title": "Callgate",
            "description": "The tools that scripts may call, and runs of scripts.",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "paths": paths,
    });
    if !is_open {
        components["securitySchemes"] = json!({ "token": { "type": "http", "scheme": "bearer" } });
        document["security"] = json!([{ "token": [] }]);
    }
    document["components"] = components;
    document
}

/// Describes `/v1/tools`.
pub(super) fn list() -> Value {
    let parameter = |name: &str, what: &str, schema: Value| json!({ "name": name, "in": "query", "description": what, "schema": schema });
    let limit = json!({ "type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL });
    let level = json!({ "enum": ["summaries", "names"], "default": "summaries" });
    let text = || json!({ "type": "string" });
    json!({ "get": {
        "operationId": "listTools",
        "summary": "List the tools there are, or look for some of them",
        "parameters": [
            parameter("level", "how much is said of a tool", level),
            parameter("server", "only tools of this server", text()),
            parameter("query", "what to look for, in a few words; the best come first", text()),
            parameter("limit", "the most tools that are found", limit),
            if_none_match(),
        ],
        "responses": kept("ToolList", &[]),
    } })
}

/// Describes `/v1/tools/{name}`.
pub(super) fn one() -> Value {
    let name = json!({
        "name": "name",
        "in": "path",
        "required": true,
        "description": "the name of its function",
        "schema": { "type": "string" },
    });
    json!({ "get": {
        "operationId": "getTool",
        "summary": "All that is known of a tool",
        "parameters": [name, if_none_match()],
        "responses": kept("Tool", &["404"]),
    } })
}

/// Describes `/v1/run`.
pub(super) fn run() -> Value {
    json!({ "post": {
        "operationId": "runScript",
        "summary": "Run a script, and get the report of the run",
        "description": "The answer comes when the run has ended, however it ended; a client that \
                        goes away cancels it. Nobody is asked: calls that would need an answer \
                        are denied.",
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": schema("Script") } },
        },
        "responses": responses(
            json!({ "description": "A run took place", "content": json_of("Report") }),
            &["408", "413", "415", "500"],
        ),
    } })
}

/// Describes `/v1/openapi.json`.
pub(super) fn itself() -> Value {
    json!({ "get": {
        "operationId": "getDocument",
        "summary": "This document",
        "parameters": [if_none_match()],
        "responses": kept("Document", &[]),
    } })
}

fn schemas(limits: &Limits) -> Value {
    let text = json!({ "type": "string" });
    let maybe_text = json!({ "type": ["string", "null"] });
    let maybe_object = json!({ "type": ["object", "null"] });
    let object = json!({ "type": "object" });
    let objects = json!({ "type": "array", "items": object });
    let texts = |what: &str| json!({ "type": "array", "items": text, "description": what });
    let count = json!({ "type": "integer", "minimum": 0 });
    let status = [
        "completed",
        "failed",
        "denied",
        "dryRun",
        "limit",
        "missingServer",
        "cancelled",
    ];
    json!({
        "ToolList": object_of(json!({
            "tools": { "type": "array", "items": schema("ToolSummary") },
            "unavailable": texts("servers that cannot be had now"),
            "searched": { "description": "of a search: among how many tools", "type": "integer" },
            "notes": texts("of a search: what else to know"),
        }), &["tools", "unavailable"]),
        "ToolSummary": object_of(json!({
            "function": { "description": "what scripts call it", "type": "string" },
            "server": text,
            "tool": { "description": "the server's name for it", "type": "string" },
            "summary": maybe_text,
            "score": { "description": "of a search: more is better", "type": "number" },
        }), &["function", "server"]),
        "Tool": object_of(json!({
            "function": text,
            "server": text,
            "tool": text,
            "title": maybe_text,
            "description": maybe_text,
            "inputSchema": { "description": "JSON Schema" },
            "outputSchema": { "description": "JSON Schema, or null" },
            "annotations": maybe_object,
            "typescript": { "description": "its declaration, and the types it uses", "type": "string" },
        }), &["function", "server", "tool", "inputSchema", "typescript"]),
        "Script": Runs::report_schema(limits),
        "Report": object_of(json!({
            "version": { "const": 1 },
            "script": text,
            "status": { "enum": status },
            "error": maybe_object,
            "output": object_of(json!({ "text": text, "bytes": count, "cutBytes": count }), &["text", "bytes", "cutBytes"]),
            "value": maybe_object,
            "emitted": objects,
            "run": maybe_text,
            "calls": objects,
            "lookups": count,
            "denials": objects,
            "dryRun": { "type": ["array", "null"] },
            "check": maybe_object,
            "unavailable": objects,
            "scriptMs": count,
            "totalMs": count,
        }), &["version", "script", "status", "output", "calls", "scriptMs", "totalMs"]),
        "Problem": object_of(json!({
            "type": text, "title": text, "status": { "type": "integer" }, "detail": text,
        }), &["type", "title", "status", "detail"]),
        "Document": { "type": "object", "required": ["openapi", "info", "paths"] },
    })
}

fn object_of(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

fn schema(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn json_of(name: &str) -> Value {
    json!({ "application/json": { "schema": schema(name) } })
}

fn if_none_match() -> Value {
    json!({
        "name": "If-None-Match",
        "in": "header",
        "description": "the ETag of what the client has",
        "schema": { "type": "string" },
    })
}

/// The responses of what can be kept.
fn kept(name: &str, more: &[&str]) -> Value {
    let tag = json!({ "ETag": { "schema": { "type": "string" } } });
    let ok = json!({ "description": "It", "headers": tag, "content": json_of(name) });
    let mut responses = responses(ok, more);
    responses["304"] = json!({ "description": "The client has it", "headers": tag });
    responses
}

/// This answer, and those that everything may have.
fn responses(ok: Value, more: &[&str]) -> Value {
    let mut responses = json!({ "200": ok });
    for status in ["400", "401", "403", "429", "503"].iter().chain(more) {
        responses[*status] = json!({ "$ref": "#/components/responses/Problem" });
    }
    responses
}
