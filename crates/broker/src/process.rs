//! A child process: started with the environment it was given and no more, in
//! a process group of its own, and gone when the broker is.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use callgate_process::{Child, Command, Stream};
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::StartErrorKind;
use crate::spec::Stdio;
use crate::stderr::Log;
use callgate_auth::Redact;

/// How much of the end of stderr is kept.
const KEPT_STDERR: usize = 16 << 10;
/// How many lines of it a message shows.
const SHOWN_STDERR_LINES: usize = 10;
/// How long a server has to exit after the end of its input, and again after
/// SIGTERM.
const GRACE: Duration = Duration::from_secs(1);
/// How long the end of stderr is waited for once a server has ended. What it wrote is
/// there by then; a process that left its group may hold the stream open.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// A started process and its two streams.
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

/// A handle to a running process. Dropping it kills the process group.
#[derive(Debug)]
pub(crate) struct Process {
    group: i32,
    /// Whether it has been waited for: its id may be another's then.
    waited_for: Arc<AtomicBool>,
    exit: watch::Receiver<Option<ExitStatus>>,
    stderr: Arc<Tail>,
}

impl Process {
    /// Starts the process.
    pub(crate) async fn start(
        stdio: &Stdio,
        server: &Arc<str>,
        secrets: &Redact,
    ) -> Result<Started, StartErrorKind> {
        if let Some(cwd) = &stdio.cwd
            && !cwd.is_dir()
        {
            return Err(StartErrorKind::NoWorkingDirectory {
                cwd: cwd.display().to_string(),
            });
        }
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => StartErrorKind::CommandNotFound {
                command: stdio.command.clone(),
            },
            _ => StartErrorKind::Spawn {
                command: stdio.command.clone(),
                reason: error.to_string(),
            },
        };
        let mut child = callgate_process::spawn(command(stdio))
            .await
            .map_err(failed)?;
        let (Some(stdin), Some(stdout), Some(stderr), Some(pid)) = (
            child.stdin.take(),
            child.stdout.take(),
            child.stderr.take(),
            child.id(),
        ) else {
            return Err(failed(io::Error::other(
                "the process came without its streams",
            )));
        };
        let group = i32::try_from(pid).map_err(|error| failed(io::Error::other(error)))?;
        let tail = Arc::new(Tail::default());
        let log = Log::new(Arc::clone(server), secrets.clone());
        let words = tokio::spawn(keep_tail(stderr, Arc::clone(&tail), log));
        let (told, exit) = watch::channel(None);
        let waited_for = Arc::new(AtomicBool::new(false));
        let ending = Ending {
            group,
            waited_for: Arc::clone(&waited_for),
            words,
            told,
        };
        tokio::spawn(ending.follow(child));
        let process = Self {
            group,
            waited_for,
            exit,
            stderr: tail,
        };
        Ok(Started {
            process,
            stdin,
            stdout,
        })
    }

    /// The end of what it wrote to stderr: whole lines, at most ten.
    pub(crate) fn stderr_tail(&self) -> String {
        self.stderr.last_lines(SHOWN_STDERR_LINES)
    }

    /// Its status, once it has ended and its last words are in.
    pub(crate) fn watch_exit(&self) -> watch::Receiver<Option<ExitStatus>> {
        self.exit.clone()
    }

    /// How it ended, if it has; waits up to `patience` for that.
    pub(crate) async fn ended(&self, patience: Duration) -> Option<String> {
        let mut exit = self.exit.clone();
        let ended = tokio::time::timeout(patience, exit.wait_for(Option::is_some)).await;
        match ended {
            Ok(Ok(status)) => status.map(describe),
            _ => None,
        }
    }

    /// Waits for it to exit of itself, its input being closed; asks it with
    /// SIGTERM, then kills it and its whole group.
    pub(crate) async fn shut_down(&self) {
        if self.ended(GRACE).await.is_some() {
            return;
        }
        self.signal(libc::SIGTERM);
        if self.ended(GRACE).await.is_some() {
            return;
        }
        self.signal(libc::SIGKILL);
        self.ended(GRACE).await;
    }

    fn signal(&self, signal: i32) {
        if !self.waited_for.load(Ordering::Acquire) {
            signal_group(self.group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
    }
}

fn command(stdio: &Stdio) -> Command {
    let inherited = ["PATH", "HOME"].into_iter().filter_map(|name| {
        let value = std::env::var_os(name)?;
        Some((OsString::from(name), value))
    });
    let set = stdio.env.iter();
    let set = set.map(|(name, value)| (name.into(), value.into()));
    let command = Command::new(&stdio.command)
        .args(&stdio.args)
        .environment(inherited.chain(set))
        .streams(Stream::Piped, Stream::Piped, Stream::Piped);
    match &stdio.cwd {
        Some(cwd) => command.folder(cwd),
        None => command,
    }
}

/// What becomes of a process at its end.
struct Ending {
    group: i32,
    waited_for: Arc<AtomicBool>,
    /// Reads its stderr to the end.
    words: JoinHandle<()>,
    told: watch::Sender<Option<ExitStatus>>,
}

impl Ending {
    /// Waits for the process, then ends what is left of its group: nobody speaks
    /// for the server any more, and an orphan would hold its output open.
    async fn follow(self, mut child: Child) {
        let status = child.wait().await;
        self.waited_for.store(true, Ordering::Release);
        signal_group(self.group, libc::SIGKILL);
        // Whoever hears of the end asks for the last words.
        let _late = tokio::time::timeout(LAST_WORDS, self.words).await;
        match status {
            Ok(status) => {
                self.told.send_replace(Some(status));
            }
            Err(error) => {
                let group = self.group;
                tracing::warn!(%error, group, "cannot wait for a server's process");
            }
        }
    }
}

/// Sends a signal to a process group that was made here.
pub(crate) fn signal_group(group: i32, signal: i32) {
    // SAFETY: killpg takes two numbers. The group is one this crate made, so
    // it is neither 0 nor 1.
    unsafe {
        libc::killpg(group, signal);
    }
}

/// Such as `exit code 3` or `signal 9`.
pub(crate) fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;

    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    }
}

async fn keep_tail(mut stderr: ChildStderr, tail: Arc<Tail>, mut log: Log) {
    let mut chunk = vec![0; 4 << 10];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        let chunk = chunk.get(..read).unwrap_or_default();
        tail.push(chunk);
        log.take(chunk);
    }
    log.end();
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
struct Tail {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    /// Whether there was more before them.
    is_cut: bool,
}

impl Tail {
    fn push(&self, chunk: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes.extend(chunk);
        let surplus = kept.bytes.len().saturating_sub(KEPT_STDERR);
        kept.bytes.drain(..surplus);
        kept.is_cut |= surplus > 0;
    }

    fn last_lines(&self, count: usize) -> String {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_cut = kept.is_cut;
        let text = String::from_utf8_lossy(kept.bytes.make_contiguous()).into_owned();
        drop(kept);
        // A secret that the cut went through would not be found in what is left of it.
        let whole = match text.split_once('\n') {
            Some((_, rest)) if is_cut => rest,
            None if is_cut => "",
            _ => &text,
        };
        let lines: Vec<_> = whole
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
            .collect();
        lines
            .get(lines.len().saturating_sub(count)..)
            .unwrap_or_default()
            .join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_bounded() {
        let tail = Tail::default();
        for n in 0..5_000 {
            tail.push(format!("line {n}\n\n").as_bytes());
        }
        assert_eq!(tail.last_lines(2), "line 4998\nline 4999");
        assert!(tail.last_lines(usize::MAX).len() <= KEPT_STDERR);
    }

    #[test]
    fn a_line_that_was_cut_is_not_in_the_tail() {
        let tail = Tail::default();
        tail.push(&[b'x'; KEPT_STDERR]);
        assert_eq!(tail.last_lines(1), "x".repeat(KEPT_STDERR));
        tail.push(b"x");
        assert_eq!(tail.last_lines(1), "");
        tail.push(b"\nlast words");
        assert_eq!(tail.last_lines(2), "last words");
    }
}
