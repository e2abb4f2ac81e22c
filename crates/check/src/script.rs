//! A script to check.

use std::sync::Arc;
use std::time::Duration;

/// The language that a script says it is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// TypeScript: type errors stop the script.
    #[default]
    TypeScript,
    /// JavaScript: only unknown names and wrong uses of tools stop it.
    JavaScript,
}

/// A script to check.
#[derive(Debug, Clone)]
pub struct Script {
    /// The script as one module, types and all.
    pub text: String,
    /// Lines of `text` that stand before the author's first line.
    pub line_offset: u32,
    /// The language it is written in.
    pub language: Language,
    /// Declarations of the tools and of the types they use.
    pub declarations: Arc<str>,
    /// The same tools as values of any type.
    pub untyped: Arc<str>,
    /// Time for the check of this script, the start of a process not counted.
    pub time: Duration,
}
