//! Exit codes, besides those of a run's status.

/// The exit code of usage and configuration errors, also in clap.
pub const USAGE: u8 = 2;

/// The exit code of a command that a signal such as Ctrl-C ended; also of a cancelled run.
pub const INTERRUPTED: u8 = 130;
