//! Settings in YAML, and settings with a list of servers in place of an object.

use serde_json::{Map, Value, json};

use super::error::ForeignError;

/// Parses YAML, as Continue has it.
pub(super) fn yaml(text: &str) -> Result<Value, ForeignError> {
    if text.trim().is_empty() {
        return Ok(json!({}));
    }
    let parsed: Result<Value, _> = serde_saphyr::from_str(text);
    let settings = parsed.map_err(|error| {
        let said = error.to_string();
        // Further lines may quote the file.
        let first = said.lines().next().unwrap_or_default();
        ForeignError(first.trim_start_matches("error: ").to_owned())
    })?;
    Ok(if settings.is_null() {
        json!({})
    } else {
        settings
    })
}

/// The settings with an object in place of a list of servers: the names of the servers become its
/// keys. A server without a name of its own gets its number.
pub(super) fn named(mut settings: Value) -> Value {
    for key in ["mcpServers", "mcp_servers"] {
        let Some(place) = settings.get_mut(key) else {
            continue;
        };
        if let Value::Array(list) = place {
            *place = servers(std::mem::take(list)).into();
        }
    }
    settings
}

fn servers(list: Vec<Value>) -> Map<String, Value> {
    let mut servers = Map::new();
    for (index, mut server) in list.into_iter().enumerate() {
        let entry = server.as_object_mut();
        let name = entry.and_then(|entry| entry.remove("name"));
        let name = name.as_ref().and_then(Value::as_str).map(str::to_owned);
        let mut name = name.unwrap_or_else(|| (index + 1).to_string());
        while servers.contains_key(&name) {
            name += "-2";
        }
        servers.insert(name, server);
    }
    servers
}
