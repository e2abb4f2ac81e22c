//! The sections of `callgate.json` as serde structs, and how their texts are read.
//!
//! No struct takes an unknown key. In a file that other clients share, keys that only those
//! know are warned about ([`OTHER_CLIENTS`]).

use callgate_sandbox::JailLayer;
use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny};

use super::units::{parse_bytes, parse_memory};
use super::{CacheConfig, CheckConfig, ExtractLimits, LedgerConfig, LimitsConfig, ModelsConfig};
use super::{SearchBy, serve};

/// The file. Its other sections are read by the modules of their names.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct File {
    #[serde(rename = "$schema")]
    _schema: IgnoredAny,
    #[serde(rename = "mcpServers")]
    _mcp_servers: IgnoredAny,
    #[serde(rename = "servers")]
    _servers: IgnoredAny,
    #[serde(rename = "permissions")]
    _permissions: IgnoredAny,
    pub(super) limits: LimitsConfig,
    pub(super) sandbox: Sandbox,
    pub(super) check: CheckConfig,
    pub(super) ledger: Option<LedgerConfig>,
    pub(super) cache: CacheConfig,
    pub(super) models: ModelsConfig,
    pub(super) search: Search,
    #[serde(with = "Extract")]
    pub(super) extract: ExtractLimits,
    pub(super) roots: Vec<String>,
    pub(super) serve: serve::Section,
    #[serde(rename = "flows")]
    _flows: IgnoredAny,
    #[serde(rename = "toolLabels")]
    _tool_labels: IgnoredAny,
    #[serde(rename = "tools")]
    _tools: IgnoredAny,
}

/// `extract`: the limits of `mcp.extract`.
#[derive(Deserialize)]
#[serde(
    remote = "ExtractLimits",
    rename_all = "camelCase",
    deny_unknown_fields,
    default = "ExtractLimits::default"
)]
struct Extract {
    calls: u64,
    same_schema: u64,
    #[serde(rename = "input", deserialize_with = "size")]
    input_bytes: u64,
    #[serde(rename = "output", deserialize_with = "size")]
    output_bytes: u64,
}

/// `sandbox`: the kernel layers around the workers that run scripts.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Sandbox {
    pub(super) level: Level,
    #[serde(deserialize_with = "layers")]
    pub(super) require: Option<Vec<JailLayer>>,
}

/// `level` of `sandbox`.
#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    #[default]
    Kernel,
    Process,
}

fn layers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<JailLayer>>, D::Error> {
    let layer = |name: &String| {
        JailLayer::ALL
            .into_iter()
            .find(|layer| layer.name() == name)
    };
    let names = Vec::<String>::deserialize(deserializer)?;
    let layers: Option<Vec<JailLayer>> = names.iter().map(layer).collect();
    let unknown = || D::Error::custom("lists \"landlock\", \"seccomp\" and \"namespaces\"");
    layers.ok_or_else(unknown).map(Some)
}

/// `search`: how tools are searched where a request does not say it.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Search {
    pub(super) by: SearchBy,
}

/// Reads a string whose `${…}` are not replaced; `wanted` describes it.
pub(super) fn plain<'de, D>(deserializer: D, wanted: &str) -> Result<String, D::Error>
where
    D: Deserializer<'de>,
{
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::String(text) => Ok(text),
        _ => Err(D::Error::custom(format_args!("must be {wanted}"))),
    }
}

/// A string whose `${…}` are not replaced.
#[derive(Deserialize)]
struct Plain(#[serde(deserialize_with = "plain_text")] String);

fn plain_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    plain(deserializer, "a string")
}

/// Reads texts whose `${…}` are not replaced.
pub(super) fn plain_texts<'de, D>(deserializer: D) -> Result<Vec<String>, D::Error>
where
    D: Deserializer<'de>,
{
    let texts = Vec::<Plain>::deserialize(deserializer)?;
    Ok(texts.into_iter().map(|text| text.0).collect())
}

/// Reads an array of texts with `parse`.
pub(super) fn each<'de, D: Deserializer<'de>>(
    deserializer: D,
    parse: impl Fn(&str) -> Result<String, String>,
) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let parsed: Result<Vec<String>, String> = texts.iter().map(|text| parse(text)).collect();
    parsed.map_err(|error| D::Error::custom(format_args!(": {error}")))
}

/// Reads a number of bytes.
pub(super) fn size<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: From<u64>,
{
    let text = plain(deserializer, "a string such as \"1MiB\"")?;
    let size = parse_bytes(&text).map(T::from);
    size.map_err(|error| D::Error::custom(format_args!(": {error}")))
}

/// Reads the size of a script's memory.
pub(super) fn memory<'de, D>(deserializer: D) -> Result<Option<u64>, D::Error>
where
    D: Deserializer<'de>,
{
    let text = plain(deserializer, "a string such as \"128MiB\"")?;
    let size = parse_memory(&text).map(Some);
    size.map_err(|error| D::Error::custom(format_args!(": {error}")))
}

/// Leaves the default: the value is read from the tree, once the rest is known.
pub(super) fn later<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default,
{
    IgnoredAny::deserialize(deserializer).map(|_| T::default())
}

/// Keys of other clients: a key of ours in the same object, and for each key of theirs there
/// the advice.
pub(super) const OTHER_CLIENTS: &[(&str, &[(&str, &str)])] = &[
    (
        "mcpServers",
        &[(
            "inputs",
            "put the values into environment variables and write \"${NAME}\"",
        )],
    ),
    (
        "callTimeout",
        &[
            ("alwaysAllow", ALLOW),
            ("authProviderType", "write an \"Authorization\" header"),
            ("autoApprove", ALLOW),
            (
                "dev",
                "Callgate restarts servers that end, not those whose files change",
            ),
            ("envFile", "write the variables under \"env\""),
            (
                "excludeTools",
                "write the tools under \"permissions\", \"deny\"",
            ),
            ("gallery", "it is a note of VS Code"),
            ("icon", "it is a picture for other clients"),
            ("includeTools", ALLOW),
            ("name", "the server's key is its name"),
            ("sandboxEnabled", "servers run with the rights of this user"),
            ("timeout", "write \"callTimeout\", such as \"60s\""),
            ("tools", "write the tools under \"permissions\""),
            ("trust", "write \"trusted\""),
            ("version", "it is a note of VS Code"),
        ],
    ),
    (
        "redirectPort",
        &[
            ("authServerMetadataUrl", "it is found out from the server"),
            ("callbackPort", "write \"redirectPort\""),
        ],
    ),
    (
        "allowedHosts",
        &[
            ("port", "write \"address\", such as \"127.0.0.1:8080\""),
            ("tls", "put a proxy with TLS before it; see docs/http.md"),
        ],
    ),
    (
        "audience",
        &[(
            "clientId",
            "clients bring tokens; Callgate does not log in here",
        )],
    ),
];
const ALLOW: &str = "write the tools under \"permissions\", \"allow\"";

/// Keys of other programs for something that has a key here, too different to be found by
/// likeness.
pub(super) const SYNONYMS: &[(&str, &str)] = &[
    ("cmd", "command"),
    ("environment", "env"),
    ("httpUrl", "url"),
    ("serverUrl", "url"),
    ("transport", "type"),
    ("transportType", "type"),
    ("user", "account"),
    ("username", "account"),
    ("workingDirectory", "cwd"),
];
