//! Data of one server that was found in arguments for another.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::name_pattern::matches;
use crate::other_names::OtherNames;

/// The fewest letters, digits and characters beyond ASCII of a piece: rulers and brackets are no
/// data.
const MIN_LETTERS: usize = 10;

/// The fewest different ones among them.
const MIN_DIFFERENT: u32 = 4;

/// A tool that data comes from or goes to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// The generated function name.
    pub function: String,
    /// As [`crate::CallFacts::other_names`].
    #[serde(skip)]
    pub other_names: Option<Arc<OtherNames>>,
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
}

impl Side {
    /// A tool by its generated name, its server's and its own.
    pub fn new(function: &str, server: &str, tool: &str) -> Self {
        Self {
            function: function.to_owned(),
            other_names: None,
            server: server.to_owned(),
            tool: tool.to_owned(),
        }
    }

    /// The same tool with these other names.
    #[must_use]
    pub fn or_named(mut self, other_names: Option<&Arc<OtherNames>>) -> Self {
        self.other_names = other_names.cloned();
        self
    }

    /// True if a pattern over names matches one of these names of it.
    pub(super) fn is_named(&self, by: Names, pattern: &str) -> bool {
        let others = |names: &Arc<OtherNames>| match by {
            Names::Function => names.long_matches(pattern),
            Names::All => names.any_matches_text(pattern),
        };
        matches(pattern, &self.function) || self.other_names.as_ref().is_some_and(others)
    }
}

/// The names of a tool that rules and labels match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// The function's name and long name, for rules that let data pass.
    Function,
    /// The other names too, for rules that hold data up.
    All,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.server, self.tool)
    }
}

/// Data of one server on its way to another.
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
#[derive(Clone, PartialEq, Eq)]
pub struct Copied {
    /// The ordinal of the call whose result had the longest piece first.
    pub ordinal: usize,
    /// The size of the pieces in bytes, with escapes undone and white space collapsed.
    pub bytes: usize,
    /// The number of pieces.
    pub pieces: usize,
    /// The longest piece as the arguments have it, escapes undone; at most
    /// [`MAX_PIECE`] bytes of it. Data of a server: show it to a person, and
    /// write it nowhere.
    pub piece: String,
    /// The form of that piece in the arguments.
    pub encoding: Encoding,
}

/// The most bytes of a piece that a finding keeps.
pub const MAX_PIECE: usize = 240;

/// The form of a piece in arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Encoding {
    /// As text: as it was, or with escapes of JSON or of a URL.
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
        let hash = Sha256::digest(self.piece.to_ascii_lowercase());
        Some(hash.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// True if a piece has enough letters and digits to be data.
pub(super) fn is_data(piece: &[u8]) -> bool {
    let mut letters = piece
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    let mut seen = 0_u128;
    let mut count = 0;
    // Mostly the beginning tells, but a table may begin with a ruler.
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
    /// The ordinal of the call whose result had it; absent where it could not
    /// be told whether there is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<usize>,
    /// The size of the data in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// The form of its longest piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// [`Copied::sha256`].
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
            .field("pieces", &self.pieces)
            .field("encoding", &self.encoding)
            .finish_non_exhaustive()
    }
}
