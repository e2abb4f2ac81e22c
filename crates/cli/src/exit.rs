//! Exit codes besides those of a run's status.

/// Usage and configuration errors; clap uses the same code.
pub const USAGE: u8 = 2;

/// A command that Ctrl-C or another signal ended, as shells count it. A cancelled run has the
/// same code.
pub const INTERRUPTED: u8 = 130;
