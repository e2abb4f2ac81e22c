//! Levels of detail for the declarations of tools.

use std::fmt;
use std::str::FromStr;

/// The level of detail in a text of declarations, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Detail {
    /// The name of the function, one a line.
    Name,
    /// The name and the first line of the description: `name: description`.
    Summary,
    /// One line a function, which stands alone: arguments, result and short facts, such as
    /// `fs_head({ path: string, lines?: number /* default 10 */ }): { content: string }`.
    Signature,
    /// Declarations with comments: TypeScript, all that a script needs.
    #[default]
    Full,
    /// Full detail for a reader who writes a script: the type of an input that nothing else uses
    /// stands in place of its name, and an integer of an input is a `number`.
    Read,
    /// Full detail for a caller with JSON: `fs_head({ path: string }): { content: string }`.
    Call,
}

impl Detail {
    /// Every level of declarations for scripts, least first.
    pub const ALL: [Self; 4] = [Self::Name, Self::Summary, Self::Signature, Self::Full];

    /// The level's name in settings and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Summary => "summary",
            Self::Signature => "signature",
            Self::Full => "full",
            Self::Read => "read",
            Self::Call => "call",
        }
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Detail {
    type Err = UnknownDetail;

    fn from_str(text: &str) -> Result<Self, UnknownDetail> {
        let found = Self::ALL.into_iter().find(|level| level.as_str() == text);
        found.ok_or(UnknownDetail)
    }
}

/// The error about a word that is not a [`Detail`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the detail must be one of name, summary, signature and full")]
pub struct UnknownDetail;
