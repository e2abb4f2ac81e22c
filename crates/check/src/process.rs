//! The process of the native TypeScript: an empty environment, a bounded
//! memory, confined by the kernel, and gone when the host is.

use std::path::Path;

use callgate_process::{Child, Command, Stream};

use crate::{Confinement, Unavailable};

/// Memory that it may take for its data: a script can make a type as large as
/// it likes.
pub(crate) const MAX_MEMORY: u64 = 512 << 20;

/// Settings of the Go runtime. It collects less often while little is used,
/// because a check is over before most of what it made is garbage; and more
/// often when it comes near the limit, so that it does not reach the limit
/// with garbage.
const ENVIRONMENT: &[(&str, &str)] = &[("GOGC", "400"), ("GOMEMLIMIT", "384MiB")];

/// Starts the program with piped streams. Dropping the child kills it.
pub(crate) async fn start(
    program: &Path,
    args: &[&str],
    confinement: Confinement,
) -> Result<Child, Unavailable> {
    let command = Command::new(program)
        .args(args)
        .environment(ENVIRONMENT.iter().copied())
        .folder("/")
        .streams(Stream::Piped, Stream::Piped, Stream::Null);
    #[cfg(target_os = "linux")]
    let command = {
        let mut confined = crate::confine::Confined::prepare(confinement, program)?;
        // SAFETY: `enter` makes system calls only and allocates nothing.
        unsafe { command.before_exec(move || confined.enter()) }
    };
    #[cfg(not(target_os = "linux"))]
    let _ = confinement;
    callgate_process::spawn(command)
        .await
        .map_err(|error| Unavailable::Start(format!("{}: {error}", program.display())))
}
