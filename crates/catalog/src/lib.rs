//! Internal crate of Callgate: tool definitions and their function names.
//!
//! A [`Catalog`] is built from the entries that servers list, and maps each function name to one
//! tool of one server. An entry that is not a tool, a second tool of the same name, or a schema that
//! cannot be expressed costs itself at most, and leaves a warning, a sentence for a person.

mod catalog;
mod definition;
mod meant;
pub mod search;
mod tool;
mod warning;

pub use callgate_typegen::Detail;
pub use catalog::Catalog;
pub use definition::ToolDefinition;
pub use meant::Meant;
pub use tool::Tool;
pub use warning::Malformed;
