//! What a server says of itself in the handshake, read leniently: a server with
//! an odd greeting may have good tools.

use rmcp::model::ProtocolVersion;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::broker::ServerInfo;
use crate::misfit;
use crate::object::{MAX_VALUE_BYTES, object};
use crate::session::{Abilities, Agreed};

/// The newest revision's key for who a server is.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// A `DiscoverResult`.
#[derive(Debug)]
pub(crate) struct Discovered {
    pub(crate) versions: Vec<ProtocolVersion>,
    server_info: Option<ServerInfo>,
    instructions: Option<String>,
    abilities: Abilities,
}

impl Discovered {
    /// The agreement on one of the versions.
    pub(crate) fn agreed(self, version: ProtocolVersion) -> Agreed {
        Agreed {
            version,
            server_info: self.server_info,
            instructions: self.instructions,
            abilities: self.abilities,
        }
    }
}

/// Reads a `DiscoverResult`.
pub(crate) fn discovered(result: &RawValue) -> Result<Discovered, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wire {
        supported_versions: Vec<ProtocolVersion>,
        #[serde(default)]
        capabilities: Value,
        #[serde(default)]
        instructions: Value,
        #[serde(default, rename = "_meta")]
        meta: Value,
        #[serde(default)]
        result_type: Option<String>,
    }
    let wire: Wire = greeting(result)?;
    if wire.result_type.is_some_and(|kind| kind != "complete") {
        return Err("its resultType is none of such a request".to_owned());
    }
    Ok(Discovered {
        versions: wire.supported_versions,
        server_info: server_info(wire.meta.get(SERVER_INFO)),
        instructions: text(Some(&wire.instructions)),
        abilities: abilities(&wire.capabilities),
    })
}

/// Reads an `InitializeResult`.
pub(crate) fn initialized(result: &RawValue) -> Result<Agreed, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wire {
        protocol_version: ProtocolVersion,
        #[serde(default)]
        capabilities: Value,
        #[serde(default)]
        server_info: Value,
        #[serde(default)]
        instructions: Value,
    }
    let wire: Wire = greeting(result)?;
    Ok(Agreed {
        version: wire.protocol_version,
        server_info: server_info(Some(&wire.server_info)),
        instructions: text(Some(&wire.instructions)),
        abilities: abilities(&wire.capabilities),
    })
}

/// Reads a result that is not too long for values of any shape.
fn greeting<'a, T: Deserialize<'a>>(result: &'a RawValue) -> Result<T, String> {
    let bytes = result.get().len();
    if bytes > MAX_VALUE_BYTES {
        return Err(format!(
            "it has {bytes} bytes, and {MAX_VALUE_BYTES} are the most"
        ));
    }
    object(result.get()).map_err(|error| misfit::describe(&error))
}

/// The revisions in the data of an `UnsupportedProtocolVersionError`.
pub(crate) fn supported(data: Option<&Value>) -> Vec<ProtocolVersion> {
    let supported = data.and_then(|data| data.get("supported"));
    supported
        .and_then(|supported| serde_json::from_value(supported.clone()).ok())
        .unwrap_or_default()
}

fn abilities(capabilities: &Value) -> Abilities {
    let is_there = |pointer| {
        capabilities
            .pointer(pointer)
            .is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
    };
    Abilities {
        tools: is_there("/tools"),
        tools_changes: is_there("/tools/listChanged"),
        logging: is_there("/logging"),
        tasks: is_there("/tasks/requests/tools/call"),
        cancels_tasks: is_there("/tasks/cancel"),
    }
}

fn server_info(info: Option<&Value>) -> Option<ServerInfo> {
    let info = info?;
    Some(ServerInfo {
        name: text(info.get("name"))?,
        title: text(info.get("title")),
        version: text(info.get("version")).unwrap_or_default(),
    })
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn odd_greetings() {
        let raw = |value: Value| serde_json::value::to_raw_value(&value).expect("JSON");
        let agreed = initialized(&raw(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": null, "logging": {}, "tasks": { "requests": 7 } },
            "serverInfo": { "name": "a", "version": 3 },
            "instructions": ["no text"],
        })));
        let expected = Agreed {
            version: ProtocolVersion::V_2025_11_25,
            server_info: Some(ServerInfo {
                name: "a".to_owned(),
                title: None,
                version: String::new(),
            }),
            instructions: None,
            abilities: Abilities {
                logging: true,
                ..Abilities::default()
            },
        };
        assert_eq!(agreed, Ok(expected));
        assert!(initialized(&raw(json!({ "protocolVersion": 7 }))).is_err());
        assert!(discovered(&raw(json!({}))).is_err());
        let of_type =
            |kind: &str| discovered(&raw(json!({ "supportedVersions": [], "resultType": kind })));
        assert!(of_type("complete").is_ok());
        assert!(of_type("input_required").is_err());
        assert_eq!(supported(Some(&json!({ "supported": 7 }))), []);

        let long =
            |text: usize| raw(json!({ "protocolVersion": "2025-11-25", "x": "x".repeat(text) }));
        let around = long(0).get().len();
        assert!(initialized(&long(MAX_VALUE_BYTES - around)).is_ok());
        let fault = initialized(&long(MAX_VALUE_BYTES - around + 1));
        let expected = "it has 1048577 bytes, and 1048576 are the most";
        assert_eq!(fault.expect_err("it is too long"), expected);
        assert_eq!(
            discovered(&long(MAX_VALUE_BYTES - around + 1)).expect_err("too"),
            expected
        );
    }
}
