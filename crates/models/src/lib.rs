//! Internal crate of Callgate: embeddings and small models over OpenAI- and
//! Anthropic-compatible endpoints. It knows no MCP and no tools.
//!
//! An [`Embedder`] makes vectors of texts; a [`Model`] answers one prompt. What an endpoint answers
//! is untrusted: its size, its time and its form are bounded, and no redirect is followed. A
//! key is in no `Debug` form, no error and no log line of this crate.

mod embed;
mod endpoint;
mod error;
mod model;

pub use embed::Embedder;
pub use endpoint::{Api, Endpoint};
pub use error::ModelError;
pub use model::{Model, Prompt, Said};
