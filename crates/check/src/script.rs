use std::sync::Arc;
use std::time::Duration;

/// A script to check.
#[derive(Debug, Clone)]
pub struct Script {
    /// The script as one module with its types.
    pub text: String,
    /// Lines of `text` before the author's first line.
    pub line_offset: u32,
    /// True if only unknown names and wrong uses of tools are to stop the script.
    pub is_javascript: bool,
    /// Declarations of the tools and of the types they use.
    pub declarations: Arc<str>,
    /// The same tools as values of type `any`.
    pub untyped: Arc<str>,
    /// Time limit, without the start of a process.
    pub time: Duration,
}
