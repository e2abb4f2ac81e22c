//! Internal crate of Callgate: JSON Schema to TypeScript declarations.
