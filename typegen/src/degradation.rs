//! Places where a declaration says less than its schema: reported, never an error.

/// One place of one tool where the declaration says less than the schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tool {tool:?} of server {server:?}: {reason} at {pointer}")]
pub struct Degradation {
    /// The server's configured name.
    pub server: String,
    /// The tool's name on its server.
    pub tool: String,
    /// JSON pointer into the tool's definition, such as
    /// `/inputSchema/properties/when`; cut when it is very long.
    pub pointer: String,
    /// The reason for the loss.
    pub reason: Reason,
}

impl Degradation {
    /// True if the loss widens the declared type; otherwise it only shortens a comment.
    pub fn widens(&self) -> bool {
        !matches!(self.reason, Reason::Shortened { .. })
    }
}

/// A reason why a declaration says less than its schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    #[error("the schema is neither an object nor a boolean")]
    NotASchema,
    #[error("the value of `{keyword}` has the wrong form and is ignored")]
    Malformed { keyword: &'static str },
    #[error("`type` names {name:?}, which JSON does not have")]
    UnknownType { name: String },
    #[error("`{keyword}` cannot be expressed and is ignored")]
    Inexpressible { keyword: &'static str },
    #[error("`{keyword}` stands without a `type` and restricts nothing")]
    MissingType { keyword: &'static str },
    #[error("the reference {reference:?} does not lead to a part of this schema")]
    UnresolvedReference { reference: String },
    #[error("the definition refers only to itself")]
    EmptyRecursion,
    /// Only an unknown type leaves room for the absence of an optional property of this name.
    #[error("the property's name is one every object inherits")]
    InheritedName,
    #[error("schemas are nested deeper than {limit}")]
    TooDeep { limit: usize },
    #[error("the tool's schemas have more than {limit} parts")]
    TooLarge { limit: usize },
    #[error("the tool's declarations are longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error("`{keyword}` has more than {limit} members")]
    TooMany { keyword: &'static str, limit: usize },
    #[error("choices that hold together allow more than {limit} combinations")]
    TooManyCombinations { limit: usize },
    #[error("the text of `{keyword}` is shortened")]
    Shortened { keyword: &'static str },
    #[error("further degradations of this tool are not listed")]
    MoreNotListed,
}
