//! The callgate binary: argument parsing and printing.
fn main() {}
