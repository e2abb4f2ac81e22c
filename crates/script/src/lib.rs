//! Internal crate of Callgate: Parses a TypeScript script, normalises its form and strips its types.
