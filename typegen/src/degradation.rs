//! What a schema said and a declaration does not: reported, never an error.

use std::fmt;

/// One place of one tool where the declaration says less than the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Degradation {
    /// The server as it is configured.
    pub server: String,
    /// The tool as the server calls it.
    pub tool: String,
    /// JSON pointer into the tool's definition, such as
    /// `/inputSchema/properties/when`; cut when it is very long.
    pub pointer: String,
    /// What could not be said.
    pub reason: Reason,
}

impl Degradation {
    /// True if the declared type is wider for it; else only a comment is shorter.
    pub fn widens(&self) -> bool {
        !matches!(self.reason, Reason::Shortened { .. })
    }
}

impl fmt::Display for Degradation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "tool {:?} of server {:?}: {} at {}",
            self.tool, self.server, self.reason, self.pointer
        )
    }
}

/// Why a place says less than its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A schema is neither an object nor a boolean.
    NotASchema,
    /// A keyword's value has the wrong form, so the keyword is ignored.
    Malformed {
        /// The keyword.
        keyword: &'static str,
    },
    /// `type` names a type JSON does not have.
    UnknownType {
        /// The name, cut when it is long.
        name: String,
    },
    /// A keyword restricts instances in a way the types here cannot.
    Inexpressible {
        /// The keyword.
        keyword: &'static str,
    },
    /// Keywords for one kind of value stand without a `type` that says so.
    MissingType {
        /// The first such keyword.
        keyword: &'static str,
    },
    /// A reference leads out of the schema, or nowhere in it.
    UnresolvedReference {
        /// The reference, cut when it is long.
        reference: String,
    },
    /// A definition is only itself, by way of references.
    EmptyRecursion,
    /// An optional property has the name of a member every object inherits, so
    /// only an unknown type leaves room for its absence.
    InheritedName,
    /// Schemas are nested deeper than the limit.
    TooDeep {
        /// The limit, in schemas.
        limit: usize,
    },
    /// The tool's schemas hold more parts than the limit.
    TooLarge {
        /// The limit, in schemas and literals.
        limit: usize,
    },
    /// The tool's declarations would be longer than the limit.
    TooLong {
        /// The limit, in bytes of text.
        limit: usize,
    },
    /// An enumeration or a tuple has more members than the limit.
    TooMany {
        /// The keyword.
        keyword: &'static str,
        /// The limit, in members.
        limit: usize,
    },
    /// Choices that hold together allow more combinations than the limit.
    TooManyCombinations {
        /// The limit, in combinations.
        limit: usize,
    },
    /// What a comment says of a keyword is cut; the type is no wider for it.
    Shortened {
        /// The keyword.
        keyword: &'static str,
    },
    /// Further degradations of the tool are not listed.
    MoreNotListed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotASchema => write!(f, "the schema is neither an object nor a boolean"),
            Self::Malformed { keyword } => {
                write!(
                    f,
                    "the value of `{keyword}` has the wrong form and is ignored"
                )
            }
            Self::UnknownType { name } => {
                write!(f, "`type` names {name:?}, which JSON does not have")
            }
            Self::Inexpressible { keyword } => {
                write!(f, "`{keyword}` cannot be expressed and is ignored")
            }
            Self::MissingType { keyword } => {
                write!(
                    f,
                    "`{keyword}` stands without a `type` and restricts nothing"
                )
            }
            Self::UnresolvedReference { reference } => {
                write!(
                    f,
                    "the reference {reference:?} does not lead to a part of this schema"
                )
            }
            Self::EmptyRecursion => write!(f, "the definition refers only to itself"),
            Self::InheritedName => {
                write!(f, "the property's name is one every object inherits")
            }
            Self::TooDeep { limit } => write!(f, "schemas are nested deeper than {limit}"),
            Self::TooLarge { limit } => {
                write!(f, "the tool's schemas have more than {limit} parts")
            }
            Self::TooLong { limit } => {
                write!(f, "the tool's declarations are longer than {limit} bytes")
            }
            Self::TooMany { keyword, limit } => {
                write!(f, "`{keyword}` has more than {limit} members")
            }
            Self::TooManyCombinations { limit } => {
                write!(
                    f,
                    "choices that hold together allow more than {limit} combinations"
                )
            }
            Self::Shortened { keyword } => write!(f, "the text of `{keyword}` is shortened"),
            Self::MoreNotListed => write!(f, "further degradations of this tool are not listed"),
        }
    }
}
