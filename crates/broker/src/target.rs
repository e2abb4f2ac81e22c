//! The tool that a call goes to.

/// The tool a call goes to, as the catalog has it. Never taken from a script.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Target {
    /// The generated function name, which rules match.
    pub function: String,
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
    /// The tool's `readOnlyHint`.
    pub read_only_hint: bool,
    /// The tool's `idempotentHint`.
    pub idempotent_hint: bool,
    /// Whether the tool has an `outputSchema`: text is then read as JSON.
    pub has_output_schema: bool,
}
