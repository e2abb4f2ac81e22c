//! Set-up, demo, tests, benchmarks: cargo xtask.
fn main() {}
