//! Internal crate of Callgate: embeddings and small models over OpenAI- and
//! Anthropic-compatible endpoints. It knows no MCP and no tools.
//!
//! An [`Embedder`] computes vectors of texts; a [`Model`] answers one prompt. Answers of an endpoint
//! are untrusted: size, time and form are bounded, and no redirect is followed. A key is in no `Debug`
//! form, no error and no log line of this crate.

mod embed;
mod endpoint;
mod error;
mod model;

pub use embed::Embedder;
pub use endpoint::{Api, Endpoint};
pub use error::ModelError;
pub use model::{Model, ModelAnswer, Prompt};
