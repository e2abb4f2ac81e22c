//! MCP over streamable HTTP, own over reqwest: sessions and streams of the
//! revisions up to 2025-11-25, and the stateless requests of 2026-07-28.
//!
//! Whatever a server answers is hostile input: bodies, events and numbers of
//! attempts are bounded, redirects stay within the origin, nothing that a body
//! holds is dereferenced, and what is said of a failure shows neither bodies
//! nor the secret parts of a URL. Time limits are the session's, but for what nobody
//! waits for.

mod body;
mod endpoint;
mod events;
mod link;
mod mirror;
mod posts;
mod reading;
mod streams;
#[cfg(test)]
mod tests;

pub(crate) use self::endpoint::Endpoint;
pub(crate) use self::link::HttpLink;
pub(crate) use self::mirror::Mirror;
pub(crate) use self::streams::is_for_good;
