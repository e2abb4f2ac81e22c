//! Warnings about the entries that servers list.

use std::fmt;

use callgate_typegen::Degradation;
use callgate_typegen::names::{self, Collision};

/// Something about the tools of a catalog that a person may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// An entry of a list is not a tool and is dropped.
    Malformed(Malformed),
    /// A member of a tool has the wrong form; the tool goes without it.
    Ignored {
        /// The server's name in the configuration.
        server: String,
        /// The tool as the server calls it.
        tool: String,
        /// The member of the definition.
        member: &'static str,
        /// The reason.
        fault: String,
    },
    /// A server lists a name a second time; the later tool is dropped.
    Duplicate {
        /// The server's name in the configuration.
        server: String,
        /// The name it lists twice.
        tool: String,
    },
    /// Several tools want one function name; each gets a different one.
    Collision(Collision),
    /// A declaration says less than its schema.
    Degraded(Degradation),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(malformed) => malformed.fmt(f),
            Self::Ignored {
                server,
                tool,
                member,
                fault,
            } => write!(
                f,
                "server {}: `{member}` of the tool {} is ignored: it {fault}",
                quoted(server),
                quoted(tool)
            ),
            Self::Duplicate { server, tool } => write!(
                f,
                "server {}: the tool {} is listed more than once; the first one counts",
                quoted(server),
                quoted(tool)
            ),
            Self::Collision(collision) => {
                let why = match collision.members.as_slice() {
                    // Of a different tool, or with the prefix of a different server.
                    [_one] => "a name that is, or may be, of a different tool:",
                    _ => "more than one tool would be",
                };
                write!(f, "{why} {}; use ", collision.name)?;
                for (index, member) in collision.members.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(
                        f,
                        "{comma}{} for {} of {}",
                        member.function,
                        quoted(&member.tool),
                        quoted(&member.server)
                    )?;
                }
                Ok(())
            }
            Self::Degraded(degradation) if !degradation.widens() => write!(
                f,
                "server {}: the declaration of the tool {} says less than its schema: {} at {}",
                quoted(&degradation.server),
                quoted(&degradation.tool),
                degradation.reason,
                quoted(&degradation.pointer)
            ),
            Self::Degraded(degradation) => write!(
                f,
                "server {}: the types of the tool {} are wider than its schema: {} at {}",
                quoted(&degradation.server),
                quoted(&degradation.tool),
                degradation.reason,
                quoted(&degradation.pointer)
            ),
        }
    }
}

impl From<Malformed> for Warning {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// An entry that is not a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("server {}: {} is dropped: {reason}", quoted(server), what(tool.as_deref()))]
pub struct Malformed {
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's name, if it has one; cut at 256 bytes.
    pub tool: Option<String>,
    /// The reason.
    pub reason: MalformedReason,
}

/// Why an entry is not a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MalformedReason {
    /// The entry is not a JSON object.
    #[error("the entry is not an object")]
    NotAnObject,
    /// The entry has no `name`.
    #[error("it has no `name`")]
    NoName,
    /// `name` is not a string.
    #[error("`name` is not a string")]
    NameNotAString,
    /// `name` is empty.
    #[error("`name` is empty")]
    NameEmpty,
    /// `name` is too long to be one.
    #[error("`name` has {bytes} bytes; the limit is {limit}")]
    NameTooLong {
        /// Its length, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// `name` has control characters in it.
    #[error("`name` holds control characters")]
    NameNotText,
    /// The entry has no `inputSchema`.
    #[error("it has no `inputSchema`")]
    NoInputSchema,
    /// `inputSchema` is not the schema of an object.
    #[error("`inputSchema` {0}")]
    InputSchema(SchemaFault),
    /// It can be called only as a task of MCP 2025-11-25.
    #[error(
        "it can be called only as a task of MCP 2025-11-25 (`execution.taskSupport`), which \
         Callgate does not support"
    )]
    TaskOnly,
}

/// Why a schema of a tool cannot be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaFault {
    /// It is not a JSON object.
    NotAnObject,
    /// It is a schema of arguments, and its `type` is not `object`.
    NotOfObjects,
    /// It is nested deeper than any schema.
    TooDeep {
        /// The limit, in levels.
        limit: usize,
    },
}

impl fmt::Display for SchemaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => write!(f, "is not an object"),
            Self::NotOfObjects => write!(f, "does not have the `type` \"object\""),
            Self::TooDeep { limit } => write!(f, "is nested deeper than {limit} levels"),
        }
    }
}

impl Malformed {
    /// True if the tool would have this function name without other tools.
    pub fn is_named(&self, function: &str) -> bool {
        let Some(tool) = &self.tool else { return false };
        let names = names::assign([(self.server.as_str(), tool.as_str())]);
        names.function(&self.server, tool) == Some(function)
    }
}

fn what(tool: Option<&str>) -> String {
    match tool {
        Some(tool) => format!("the tool {}", quoted(tool)),
        None => "a tool".to_owned(),
    }
}

/// Bytes of a name out of a server that a message repeats.
const MAX_QUOTED: usize = 80;

/// Quotes, escapes and cuts a string from a server for a message.
fn quoted(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_QUOTED);
    let more = if end < text.len() { "…" } else { "" };
    format!("{:?}{more}", text.get(..end).unwrap_or_default())
}
