//! Internal crate of Callgate: JSON Schema to TypeScript declarations.
//!
//! Pure: tools' schemas in, text out. A schema is hostile input: any JSON is accepted, a part that
//! cannot be expressed is `unknown` and reported as a [`Degradation`], and sizes are bounded tool by
//! tool, so that one tool does not affect the declarations of others.

mod declarations;
mod degradation;
mod deprecated;
mod detail;
mod empty;
mod inline;
mod ir;
mod lower;
pub mod names;
mod naming;
mod print;
mod reserved;
mod text;

pub use declarations::{Declarations, ToolSchema, generate};
pub use degradation::{Degradation, Reason};
pub use deprecated::deprecation;
pub use detail::{Detail, UnknownDetail};

/// Declarations of a script's environment besides its tools: the call beneath every function and
/// the errors a call can throw. The text is the same for every catalog.
pub fn ambient() -> &'static str {
    include_str!("ambient.d.ts")
}
