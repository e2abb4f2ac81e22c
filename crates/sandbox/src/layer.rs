//! The kernel layers around a worker.

use schemars::JsonSchema;
use serde::Deserialize;

/// A kernel layer that can be required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum JailLayer {
    /// Landlock: no files.
    Landlock,
    /// The seccomp filters: no system calls but those that V8 needs.
    Seccomp,
    /// Namespaces: no sight of the machine's network, IPC objects and users.
    Namespaces,
}

impl JailLayer {
    pub const ALL: [Self; 3] = [Self::Landlock, Self::Seccomp, Self::Namespaces];

    /// The layer's name in configurations and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::Namespaces => "namespaces",
        }
    }

    /// The bit of the layer in a worker's settings.
    #[doc(hidden)]
    pub fn bit(self) -> u8 {
        1 << self as u8
    }
}
