//! What is to be started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// A program, and all it is started with. It gets a process group of its own, and
/// no descriptors but its three streams.
#[derive(Debug, Clone)]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Option<BTreeMap<OsString, OsString>>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) streams: [Stream; 3],
    #[cfg(target_os = "linux")]
    pub(crate) limits: Vec<(libc::__rlimit_resource_t, u64)>,
    #[cfg(target_os = "linux")]
    pub(crate) no_new_privileges: bool,
}

/// One of its standard streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// `/dev/null`.
    Null,
    /// A pipe, the other end of which the child's handle has.
    Piped,
}

impl Command {
    /// A program, which is looked for in the `PATH` of the environment that it is to
    /// have unless its name has a slash in it. It inherits environment and folder,
    /// and its streams are `/dev/null`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: None,
            folder: None,
            streams: [Stream::Null; 3],
            #[cfg(target_os = "linux")]
            limits: Vec::new(),
            #[cfg(target_os = "linux")]
            no_new_privileges: false,
        }
    }

    /// Its arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Its whole environment. Of two values of one name, the last counts.
    #[must_use]
    pub fn environment<K: Into<OsString>, V: Into<OsString>>(
        mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let all = variables
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        self.environment = Some(all);
        self
    }

    /// Where it starts. A program that is named by a relative path is looked for
    /// from there.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Its standard input, output and error.
    #[must_use]
    pub fn streams(mut self, input: Stream, output: Stream, error: Stream) -> Self {
        self.streams = [input, output, error];
        self
    }

    /// Has the kernel bound a resource of it, such as [`libc::RLIMIT_DATA`].
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn limit(mut self, resource: libc::__rlimit_resource_t, most: u64) -> Self {
        self.limits.push((resource, most));
        self
    }

    /// Keeps it, and what it starts, from gaining privileges by what it executes.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn no_new_privileges(mut self) -> Self {
        self.no_new_privileges = true;
        self
    }
}
