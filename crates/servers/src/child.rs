//! A server's process: its environment is the configured one, it leads a process group, and it
//! ends with the host.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use callgate_auth::Redact;
use callgate_process::Signal;
use parking_lot::Mutex;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::failure::Reason;
use crate::server_log::{FloodGate, StderrLog};
use crate::spec;
use crate::stdio::Lines;

/// The longest line of stderr that is read, in bytes.
const MAX_STDERR_LINE: usize = 8 << 10;
/// The lines of it that a message shows.
const SHOWN_STDERR_LINES: usize = 10;
/// The time a server has to exit after the end of its input, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);
/// The wait for the end of stderr after a server has ended; a process that left the group may hold
/// the stream open.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The last lines of a stderr, the newest first.
type Tail = Mutex<VecDeque<String>>;

/// A running process. Dropping it ends the process group.
#[derive(Debug)]
pub(crate) struct Child {
    /// Sends signals to the process group. Without this end of the channel, it is ended.
    signals: mpsc::UnboundedSender<Signal>,
    exit: watch::Receiver<Option<ExitStatus>>,
    stderr: Arc<Tail>,
}

impl Child {
    /// Starts the process and returns its input and its output with it. `processes` has a task for
    /// as long as the process runs.
    pub(crate) async fn start(
        stdio: &spec::Stdio,
        env: &BTreeMap<String, String>,
        server: &Arc<str>,
        redact: &Redact,
        processes: &TaskTracker,
    ) -> Result<(Self, ChildStdin, ChildStdout), Reason> {
        if let Some(cwd) = &stdio.cwd
            && !cwd.is_dir()
        {
            let cwd = cwd.display().to_string();
            return Err(Reason::advise(
                &format!("working directory {cwd:?} does not exist"),
                "create it, or change `cwd`",
            ));
        }
        let line = &stdio.command;
        let failed = |error: io::Error| {
            if error.kind() != io::ErrorKind::NotFound {
                return format!("command {line:?} could not be started: {error}").into();
            }
            // Some configurations have a whole shell line there.
            let advice = if line.trim().contains(char::is_whitespace) {
                "name the program alone there, and put its arguments under `args`".to_owned()
            } else {
                format!("install {}, or give its full path", package_of(line))
            };
            Reason::advise(&format!("command {line:?} was not found"), &advice)
        };
        let spawned = callgate_process::spawn(command(stdio, env), None).await;
        let mut process = spawned.map_err(failed)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (
            process.stdin.take(),
            process.stdout.take(),
            process.stderr.take(),
        ) else {
            let error = io::Error::other("the process came without its streams");
            return Err(failed(error));
        };
        let tail = Arc::new(Tail::default());
        let log = StderrLog {
            flood: FloodGate::new(Arc::clone(server)),
            redact: redact.clone(),
        };
        let stderr = tokio::spawn(read_stderr(stderr, Arc::clone(&tail), log));
        let (tell, exit) = watch::channel(None);
        let (signals, sent) = mpsc::unbounded_channel();
        processes.spawn(follow(process, sent, stderr, tell));
        let child = Self {
            signals,
            exit,
            stderr: tail,
        };
        Ok((child, stdin, stdout))
    }

    /// The end of its stderr: whole lines, at most ten.
    pub(crate) fn stderr_tail(&self) -> String {
        let lines: Vec<_> = self.stderr.lock().iter().rev().cloned().collect();
        lines.join("\n")
    }

    /// Waits for the end of the process.
    pub(crate) fn exited(&self) -> impl Future<Output = ()> + use<> {
        let mut exit = self.exit.clone();
        async move {
            // An error means that it cannot be waited for.
            let _ = exit.wait_for(Option::is_some).await;
        }
    }

    /// Its status in words, such as `exit code 3`, if it ends within this time.
    pub(crate) async fn ended(&self, within: Duration) -> Option<String> {
        let mut exit = self.exit.clone();
        let ended = timeout(within, exit.wait_for(Option::is_some)).await;
        match ended {
            Ok(Ok(status)) => status.map(callgate_process::exit_text),
            _ => None,
        }
    }

    /// Waits for it to exit by itself, its input being closed; then sends SIGTERM, then SIGKILL to
    /// its whole group.
    pub(crate) async fn shut_down(&self) {
        for signal in [Signal::Terminate, Signal::Kill] {
            if self.ended(GRACE).await.is_some() {
                return;
            }
            let _ = self.signals.send(signal);
        }
        self.ended(GRACE).await;
    }
}

/// The package that has a program which servers are often started with.
fn package_of(program: &str) -> &'static str {
    match program {
        "node" | "npm" | "npx" => "Node.js with npm (packages `nodejs` and `npm`, or nodejs.org)",
        "bun" | "bunx" => "Bun (`npm install -g bun`, or bun.sh)",
        "deno" => "Deno (`npm install -g deno`, or deno.com)",
        "uv" | "uvx" => "uv (`pipx install uv`, or docs.astral.sh/uv)",
        "pipx" => "pipx (package `pipx`)",
        "python" => "Python 3 (package `python-is-python3`; or name python3)",
        "python3" => "Python 3 (package `python3`)",
        "docker" => "Docker (package `docker.io`, or docs.docker.com)",
        "podman" => "Podman (package `podman`)",
        _ => "it",
    }
}

/// The variable in which a server finds how many Callgates there are around it.
const DEPTH: &str = "CALLGATE_DEPTH";

/// The number of Callgates that this process was started by, one within the other.
pub fn nesting() -> u32 {
    let depth = std::env::var(DEPTH).ok();
    depth.and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

fn command(stdio: &spec::Stdio, env: &BTreeMap<String, String>) -> Command {
    let mut command = Command::new(&stdio.command);
    command.args(&stdio.args).env_clear();
    let inherited = ["PATH", "HOME"].into_iter();
    command.envs(inherited.filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(env).stdin(Stdio::piped());
    // After the entry's own variables: it cannot lower the count.
    command.env(DEPTH, nesting().saturating_add(1).to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(cwd) = &stdio.cwd {
        command.current_dir(cwd);
    }
    command
}

/// Ends a process. SIGTERM comes first: npx, ended by SIGKILL while it installs, would leave a lock
/// that holds up its next starts for a minute.
async fn end(process: &mut callgate_process::Child) -> io::Result<ExitStatus> {
    process.signal_group(Signal::Terminate);
    if let Ok(status) = timeout(GRACE, process.wait()).await {
        return status;
    }
    process.signal_group(Signal::Kill);
    process.wait().await
}

/// Waits for the process, then ends the rest of its group, which would hold its output open.
async fn follow(
    mut process: callgate_process::Child,
    mut signals: mpsc::UnboundedReceiver<Signal>,
    stderr: JoinHandle<()>,
    tell: watch::Sender<Option<ExitStatus>>,
) {
    let status = loop {
        tokio::select! {
            status = process.wait() => break status,
            signal = signals.recv() => match signal {
                Some(signal) => process.signal_group(signal),
                None => break end(&mut process).await,
            },
        }
    };
    process.signal_group(Signal::Kill);
    let _ = timeout(LAST_WORDS, stderr).await;
    match status {
        Ok(status) => drop(tell.send_replace(Some(status))),
        Err(error) => tracing::warn!(%error, "cannot wait for a server's process"),
    }
}

/// Logs the lines of a stderr, and keeps the last ones.
async fn read_stderr(stderr: ChildStderr, tail: Arc<Tail>, log: StderrLog) {
    let mut lines = Lines::new(stderr, MAX_STDERR_LINE);
    while let Ok(Some(line)) = lines.next().await {
        // A secret that is cut would not be recognised.
        let text = String::from_utf8_lossy(&line.text);
        let text = text.trim_end();
        if !line.is_cut && !text.is_empty() {
            log.line(text);
            let mut tail = tail.lock();
            tail.truncate(SHOWN_STDERR_LINES - 1);
            tail.push_front(text.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn missing_program_error_names_its_package() {
        for (command, advice) in [
            (
                "node",
                "install Node.js with npm (packages `nodejs` and `npm`",
            ),
            ("npx", "install Node.js with npm"),
            ("uvx", "install uv (`pipx install uv`"),
            ("docker", "install Docker (package `docker.io`"),
            ("python3", "install Python 3 (package `python3`)"),
            ("mcp-server-x", "install it, or give its full path"),
            ("/nowhere/npx", "install it, or give its full path"),
        ] {
            let stdio = spec::Stdio {
                command: command.to_owned(),
                ..spec::Stdio::default()
            };
            let env = BTreeMap::from([("PATH".to_owned(), "/nowhere".to_owned())]);
            let (redact, processes) = (Redact::default(), TaskTracker::new());
            let started = Child::start(&stdio, &env, &"x".into(), &redact, &processes).await;
            let Err(error) = started else {
                panic!("{command} is there");
            };
            let begins = format!("command {command:?} was not found; {advice}");
            assert!(error.to_string().starts_with(&begins), "{error}");
        }
    }
}
