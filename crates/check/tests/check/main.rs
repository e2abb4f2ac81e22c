//! The checker against a real TypeScript, and against programs that only pretend to be one.

mod bombs;
mod diagnostics;
mod finding;
mod isolation;
mod pretenders;
mod strictness;
mod support;
