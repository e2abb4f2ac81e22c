//! Data of one server that was found in arguments for a different one.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::tool_name::ToolName;

/// The minimum number of letters, digits and characters beyond ASCII of a piece: rulers and brackets
/// are not data.
const MIN_LETTERS: usize = 10;

/// The minimum number of different characters among them.
const MIN_DIFFERENT: u32 = 4;

/// A tool that data comes from or goes to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// The generated function name.
    pub function: String,
    /// As [`ToolName::aliases`].
    #[serde(skip)]
    pub aliases: Vec<String>,
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
}

impl Side {
    /// A tool without aliases, by its generated name, its server's and its own.
    pub fn new(function: &str, server: &str, tool: &str) -> Self {
        Self::from(ToolName {
            function,
            aliases: &[],
            server,
            tool,
        })
    }

    pub(super) fn name(&self) -> ToolName<'_> {
        ToolName {
            function: &self.function,
            aliases: &self.aliases,
            server: &self.server,
            tool: &self.tool,
        }
    }
}

impl From<ToolName<'_>> for Side {
    fn from(name: ToolName<'_>) -> Self {
        Self {
            function: name.function.to_owned(),
            aliases: name.aliases.to_vec(),
            server: name.server.to_owned(),
            tool: name.tool.to_owned(),
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.server, self.tool)
    }
}

/// Data of one server on its way to a different one.
///
/// Its `Display` is one line without the data, such as
/// `120 bytes of crm.get_customer (call 3) go to mail.send`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Where it came from. It is shared: many calls that wait may carry data of many tools.
    pub from: Arc<Side>,
    /// Where it would go.
    pub to: Arc<Side>,
    /// The data that was found.
    pub seen: Seen,
}

/// The data that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Seen {
    /// Pieces of results are in the arguments.
    Copied(Copied),
    /// Results could not be compared, for this reason.
    NotCompared(&'static str),
}

/// Pieces of a tool's results that arguments have.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Copied {
    /// The ordinal of the call whose result had the longest piece first.
    pub ordinal: usize,
    /// The size of the pieces in bytes, with escapes undone and white space collapsed.
    pub bytes: usize,
    /// The longest piece as the arguments have it, escapes undone; at most
    /// [`MAX_PIECE`] bytes of it. Data of a server: show it to a person, and
    /// write it nowhere.
    pub piece: String,
    /// The form of that piece in the arguments.
    pub encoding: Encoding,
}

/// The maximum number of bytes of a piece that a finding keeps.
pub const MAX_PIECE: usize = 240;

/// The form of a piece in arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Encoding {
    /// As text: as it was, or with escapes of JSON or of a URL.
    #[default]
    Text,
    /// In base64, of either alphabet.
    Base64,
    /// As a number of its own.
    Number,
}

impl Finding {
    /// Data of `from` on its way to `to`.
    pub fn new(from: Arc<Side>, to: Arc<Side>, seen: Seen) -> Self {
        Self { from, to, seen }
    }

    /// The size of the data in bytes; `None` if results could not be compared.
    pub fn bytes(&self) -> Option<usize> {
        self.copied().map(|copied| copied.bytes)
    }

    fn copied(&self) -> Option<&Copied> {
        match &self.seen {
            Seen::Copied(copied) => Some(copied),
            Seen::NotCompared(_) => None,
        }
    }

    /// The finding without the data, for the ledger.
    pub fn record(&self) -> FlowRecord {
        let copied = self.copied();
        FlowRecord {
            from: self.from.function.clone(),
            to: self.to.function.clone(),
            ordinal: copied.map(|copied| copied.ordinal),
            bytes: copied.map(|copied| copied.bytes),
            encoding: copied.map(|copied| copied.encoding),
            sha256: copied.and_then(Copied::sha256),
        }
    }
}

impl Copied {
    /// The SHA-256 of the piece, lower case letters for upper case ones, in
    /// hexadecimal. `None` for a number: it could be guessed from its hash.
    pub fn sha256(&self) -> Option<String> {
        if self.encoding == Encoding::Number {
            return None;
        }
        Some(hex::encode(Sha256::digest(self.piece.to_ascii_lowercase())))
    }
}

/// True if a piece has enough letters and digits to be data.
pub(super) fn is_data(piece: &[u8]) -> bool {
    let mut letters = piece
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    let mut seen = 0_u128;
    let mut count = 0;
    // The first letters are usually enough, but a table may begin with a ruler.
    letters.any(|letter| {
        count += 1;
        seen |= 1 << (letter.to_ascii_lowercase() & 127);
        count >= MIN_LETTERS && seen.count_ones() >= MIN_DIFFERENT
    })
}

/// A flow as a ledger has it: everything but the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FlowRecord {
    /// The function whose result it came from.
    pub from: String,
    /// The function it was to go to.
    pub to: String,
    /// The ordinal of the call whose result had it; absent if results could not be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<usize>,
    /// The size of the data in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// The form of its longest piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[doc(hidden)]
    pub encoding: Option<Encoding>,
    /// SHA-256 of the longest piece, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.seen {
            Seen::Copied(copied) => write!(
                f,
                "{} bytes of {} (call {}) go to {}",
                copied.bytes, self.from, copied.ordinal, self.to
            ),
            Seen::NotCompared(reason) => {
                let (from, to) = (&self.from, &self.to);
                write!(f, "results of {from} may go to {to}: {reason}")
            }
        }
    }
}

impl fmt::Debug for Copied {
    // Data of servers belongs in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Copied")
            .field("ordinal", &self.ordinal)
            .field("bytes", &self.bytes)
            .field("encoding", &self.encoding)
            .finish_non_exhaustive()
    }
}
