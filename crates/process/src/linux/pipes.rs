//! A child's three streams, both ends of each.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use crate::Stream;

/// The streams before the child has them.
pub(super) struct Pipes {
    inner: [OwnedFd; 3],
    outer: [Option<OwnedFd>; 3],
}

impl Pipes {
    /// Opens them; no other program that is started meanwhile gets any.
    pub(super) fn open(streams: [Stream; 3]) -> io::Result<Self> {
        let [input, output, error] = streams;
        let (stdin, to_stdin) = match input {
            Stream::Null => (File::open("/dev/null")?.into(), None),
            Stream::Piped => {
                let (reader, writer) = io::pipe()?;
                (reader.into(), Some(writer.into()))
            }
        };
        let out = |stream| -> io::Result<(OwnedFd, Option<OwnedFd>)> {
            Ok(match stream {
                Stream::Null => (File::options().write(true).open("/dev/null")?.into(), None),
                Stream::Piped => {
                    let (reader, writer) = io::pipe()?;
                    (writer.into(), Some(reader.into()))
                }
            })
        };
        let ((stdout, from_stdout), (stderr, from_stderr)) = (out(output)?, out(error)?);
        Ok(Self {
            inner: [apart(stdin)?, apart(stdout)?, apart(stderr)?],
            outer: [to_stdin, from_stdout, from_stderr],
        })
    }

    /// The child's ends.
    pub(super) fn inner(&self) -> [RawFd; 3] {
        self.inner.each_ref().map(OwnedFd::as_raw_fd)
    }

    /// The host's ends; the child's are closed.
    pub(super) fn into_outer(
        self,
    ) -> io::Result<(Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>)> {
        let [stdin, stdout, stderr] = self.outer;
        Ok((
            stdin
                .map(|end| ChildStdin::from_std(end.into()))
                .transpose()?,
            stdout
                .map(|end| ChildStdout::from_std(end.into()))
                .transpose()?,
            stderr
                .map(|end| ChildStderr::from_std(end.into()))
                .transpose()?,
        ))
    }
}

/// The same, but not where the child's streams go: a host may have closed its own.
fn apart(end: OwnedFd) -> io::Result<OwnedFd> {
    if end.as_raw_fd() > libc::STDERR_FILENO {
        return Ok(end);
    }
    // SAFETY: fcntl with these arguments reads no memory of ours.
    let copy = unsafe { libc::fcntl(end.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was just made, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}
