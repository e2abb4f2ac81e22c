//! Endpoints on loopback that answer well, badly, late and never.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod embeddings;
mod models;
mod support;
mod trouble;
mod urls;
