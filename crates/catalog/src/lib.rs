//! Internal crate of Callgate: Tool definitions and their generated names.
//!
//! What servers list comes in entry by entry; out comes a [`Catalog`], the one
//! place that knows which function stands for which tool of which server. An
//! entry that is no tool, a second tool of the same name, a schema that cannot
//! be expressed: each costs itself at most, and leaves a [`Warning`].

mod catalog;
mod definition;
pub mod search;
mod warning;

pub use callgate_typegen::Detail;
pub use catalog::{Catalog, CatalogTool};
pub use definition::{Annotations, Malformed, MalformedReason, SchemaFault, ToolDefinition};
pub use warning::Warning;

/// Bytes of a name out of a server that a message repeats.
const MAX_QUOTED: usize = 80;

/// A hostile string as a message shows it: quoted, escaped, and cut when long.
fn quoted(text: &str) -> String {
    let mut end = MAX_QUOTED.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let more = if end < text.len() { "…" } else { "" };
    format!("{:?}{more}", text.get(..end).unwrap_or_default())
}
