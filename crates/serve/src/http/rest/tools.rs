//! `GET /v1/tools` and `GET /v1/tools/{name}`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request};
use axum::http::StatusCode;
use axum::response::Response;
use callgate::settings::Detail;
use callgate::{Gate, SearchRequest, SearchResults, ToolInfo};
use serde_json::{Map, Value, json};

use super::etag::tagged;
use super::query::{ListLevel, ListQuery};
use crate::http::refusal::HttpRefusal;
use crate::http::users::{Lease, User};

/// Answers with a list of tools.
pub(super) async fn list(
    Extension(lease): Extension<Arc<Lease>>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let query = ListQuery::read(request.uri())?;
    let gate = lease.user.listed_gate().await?;
    if let Some(server) = &query.server {
        let known = gate.server(server);
        known.map_err(|unknown| HttpRefusal::bad(unknown.to_string()))?;
    }
    let listed = if let Some(words) = &query.query {
        let mut request = SearchRequest::new(words.as_str());
        request.server.clone_from(&query.server);
        request.limit = query.limit();
        let found = gate.search(&request).await;
        let found = found.map_err(|error| HttpRefusal::bad(error.to_string()))?;
        hits(&gate, &query, &found)
    } else {
        gate.refresh().await;
        all(&gate, &query)
    };
    Ok(tagged(&listed, request.headers()))
}

/// Answers with the details of a tool.
pub(super) async fn one(
    Extension(lease): Extension<Arc<Lease>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let wrong = |_| HttpRefusal::bad("the name in the path is not UTF-8");
    let Path(name) = name.map_err(wrong)?;
    let details = details(&lease.user, &name).await?;
    Ok(tagged(&details, request.headers()))
}

fn all(gate: &Gate, query: &ListQuery) -> Value {
    let (tools, server) = (gate.tools(), query.server.as_ref());
    let listed = tools
        .iter()
        .filter(|tool| server.is_none_or(|server| *server == tool.server));
    let tools: Vec<Value> = listed
        .map(|tool| entry(gate, tool, query.level).into())
        .collect();
    json!({ "tools": tools, "unavailable": unavailable(gate) })
}

fn hits(gate: &Gate, query: &ListQuery, found: &SearchResults) -> Value {
    let tools = gate.tools();
    let hits = found.hits.iter().filter_map(|hit| {
        let tool = tools.iter().find(|tool| tool.function == hit.function)?;
        let mut entry = entry(gate, tool, query.level);
        entry.insert("score".to_owned(), hit.score.into());
        Some(Value::Object(entry))
    });
    let hits: Vec<Value> = hits.collect();
    json!({
        "tools": hits,
        "unavailable": unavailable(gate),
        "searched": found.searched,
        "notes": found.notes,
    })
}

fn entry(gate: &Gate, tool: &ToolInfo, level: ListLevel) -> Map<String, Value> {
    let mut entry = Map::new();
    let mut put = |key: &str, value: Value| drop(entry.insert(key.to_owned(), value));
    put("function", tool.function.as_str().into());
    put("server", tool.server.as_str().into());
    if let Some(rule) = gate.view().denial(&tool.function) {
        put("denied", rule.into());
    }
    if level == ListLevel::Summaries {
        put("tool", tool.tool.as_str().into());
        put("summary", tool.summary.as_deref().into());
    }
    entry
}

/// The servers that are unavailable now.
fn unavailable(gate: &Gate) -> Vec<String> {
    let servers = gate.unavailable().into_iter();
    servers.map(|server| server.server).collect()
}

async fn details(user: &User, name: &str) -> Result<Value, HttpRefusal> {
    let gate = user.listed_gate().await?;
    gate.refresh().await;
    let tools = gate.tools();
    let known = gate.view().tool_entry(name).and_then(|entry| {
        let tool = tools.iter().find(|tool| entry["name"] == *tool.function)?;
        Some((tool, entry))
    });
    let Some((tool, entry)) = known else {
        return Err(match gate.view().unavailable_server_of(name) {
            Some(server) => {
                let message = format!("{name} is not available now: {}", server.reason);
                HttpRefusal::unavailable(message, 10)
            }
            None => HttpRefusal::new(
                StatusCode::NOT_FOUND,
                gate.view().unknown_tool_message(name),
            ),
        });
    };
    let of_server = |key: &str| entry.get(key).cloned().unwrap_or_default();
    Ok(json!({
        "function": tool.function,
        "server": tool.server,
        "tool": tool.tool,
        "denied": gate.view().denial(name),
        "title": of_server("title"),
        "description": of_server("description"),
        "inputSchema": of_server("inputSchema"),
        "outputSchema": of_server("outputSchema"),
        "annotations": of_server("annotations"),
        "typescript": gate.view().declarations_of(Detail::Full, &[name]),
    }))
}
