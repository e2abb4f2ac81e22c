//! The file of one server: who it is of, when it was written, a seal, and the list
//! as the server wrote it.

use std::fmt;
use std::io;
use std::time::Duration;

use callgate_broker::{ServerInfo, ToolList};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

use super::identity::Key;

/// The most bytes of a file. What would be longer is not kept.
pub(super) const MAX_FILE: u64 = 64 << 20;
/// The most tools that are taken from a file; a server's list is cut there, too.
const MAX_TOOLS: usize = 10_000;
/// The form of the file.
const FORM: u32 = 1;

/// What a file says.
pub(super) struct Entry {
    pub(super) ready: ToolList,
    /// In milliseconds since 1970.
    pub(super) written_ms: u64,
}

/// Why a file is passed over.
#[derive(Debug)]
pub(super) enum Unfit {
    Io(String),
    /// It is no JSON, or other JSON.
    Form(&'static str),
    /// It is of another version, another server, or was not written here.
    Foreign(&'static str),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(reason) => f.write_str(reason),
            Self::Form(reason) => write!(f, "it is damaged: {reason}"),
            Self::Foreign(reason) => f.write_str(reason),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    form: u32,
    identity: &'a str,
    written_ms: u64,
    /// Over the time and the list.
    seal: &'a str,
    #[serde(borrow)]
    list: &'a RawValue,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct List<T> {
    tools: Vec<T>,
    protocol_version: String,
    server_info: Option<Info>,
    instructions: Option<String>,
    warnings: Vec<String>,
    fresh_for: Option<Duration>,
    ttl: Option<Duration>,
    login: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Info {
    name: String,
    title: Option<String>,
    version: String,
}

/// Reads a file of this server.
pub(super) fn read(bytes: &[u8], identity: &str, key: &Key) -> Result<Entry, Unfit> {
    // What a parser says of a text can quote it; only the kind is passed on.
    let damaged = |error: serde_json::Error| {
        Unfit::Form(match error.classify() {
            Category::Eof => "it ends too early",
            Category::Data => "it has not the form of a list",
            Category::Syntax | Category::Io => "it is no JSON",
        })
    };
    let text = str::from_utf8(bytes).map_err(|_| Unfit::Form("it is no text"))?;
    let file: File<'_> = serde_json::from_str(text).map_err(damaged)?;
    if file.form != FORM {
        return Err(Unfit::Foreign("it is of another version"));
    }
    if file.identity != identity {
        return Err(Unfit::Foreign("it is another server's"));
    }
    if file.seal != seal(file.written_ms, file.list.get(), key) {
        return Err(Unfit::Foreign("it is not as it was written"));
    }
    let list: List<&RawValue> = serde_json::from_str(file.list.get()).map_err(damaged)?;
    // Each on its own, as it comes from a server: none takes another one down.
    let tools = list.tools.into_iter().take(MAX_TOOLS);
    let tools: Vec<Value> = tools
        .filter_map(|tool| serde_json::from_str(tool.get()).ok())
        .collect();
    Ok(Entry {
        ready: ToolList {
            tools,
            protocol_version: list.protocol_version,
            server_info: list.server_info.map(|info| ServerInfo {
                name: info.name,
                title: info.title,
                version: info.version,
            }),
            instructions: list.instructions,
            warnings: list.warnings,
            fresh_for: list.fresh_for,
            ttl: list.ttl,
            login: list.login.map(Into::into),
        },
        written_ms: file.written_ms,
    })
}

/// The text of a file.
pub(super) fn write(
    ready: &ToolList,
    written_ms: u64,
    identity: &str,
    key: &Key,
) -> io::Result<Vec<u8>> {
    let list = List {
        tools: ready.tools.iter().collect(),
        protocol_version: ready.protocol_version.clone(),
        server_info: ready.server_info.as_ref().map(|info| Info {
            name: info.name.clone(),
            title: info.title.clone(),
            version: info.version.clone(),
        }),
        instructions: ready.instructions.clone(),
        warnings: ready.warnings.clone(),
        fresh_for: ready.fresh_for,
        ttl: ready.ttl,
        login: ready.login.as_deref().map(str::to_owned),
    };
    let list = serde_json::value::to_raw_value(&list)?;
    let text = serde_json::to_vec(&File {
        form: FORM,
        identity,
        written_ms,
        seal: &seal(written_ms, list.get(), key),
        list: &list,
    })?;
    Ok(text)
}

fn seal(written_ms: u64, list: &str, key: &Key) -> String {
    key.seal(&format!("{written_ms} {list}"))
}
