//! A server's process. It has only the configured environment, leads a process group, and ends with
//! the host.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use callgate_auth::Redact;
use callgate_process::{MachineLimit, Signal};
use parking_lot::Mutex;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::failure::Reason;
use crate::server_log::FloodGate;
use crate::spec;
use crate::stderr::KEPT_LINES;
use crate::stdio::Lines;

/// Bytes of a line of stderr; longer lines are dropped.
const MAX_STDERR_LINE: usize = 8 << 10;
/// Bytes of a script's first line, which names its interpreter.
const MAX_SHEBANG: u64 = 256;
/// The time to exit after the end of the input, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);
/// The wait for the end of stderr after a server has ended. A process that left the group may hold
/// the stream open.
const STDERR_GRACE: Duration = Duration::from_millis(100);

/// A running process. Dropping it ends the process group.
#[derive(Debug)]
pub(crate) struct Child {
    /// Ends the process group.
    stop: CancellationToken,
    _stop: DropGuard,
    exit: watch::Receiver<Option<ExitStatus>>,
    stderr: Arc<Mutex<VecDeque<String>>>,
}

impl Child {
    /// Starts the process, and returns it with its input and output. `processes` has a task for as
    /// long as the process runs.
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
        let failed = |error: io::Error| start_error(stdio, env, &error);
        let spawned = callgate_process::spawn(command(stdio, env), None).await;
        let mut process = spawned.map_err(failed)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (
            process.stdin.take(),
            process.stdout.take(),
            process.stderr.take(),
        ) else {
            return Err(failed(io::Error::other("the process has no streams")));
        };
        let tail = Arc::<Mutex<VecDeque<String>>>::default();
        let flood = FloodGate::new(Arc::clone(server));
        let stderr = read_stderr(stderr, Arc::clone(&tail), flood, redact.clone());
        let stderr = tokio::spawn(stderr);
        let (on_exit, exit) = watch::channel(None);
        let stop = CancellationToken::new();
        processes.spawn(follow(process, stop.clone(), stderr, on_exit));
        let child = Self {
            _stop: stop.clone().drop_guard(),
            stop,
            exit,
            stderr: tail,
        };
        Ok((child, stdin, stdout))
    }

    /// The last lines of stderr.
    pub(crate) fn stderr_tail(&self) -> String {
        self.stderr.lock().make_contiguous().join("\n")
    }

    /// Waits for the end of the process.
    pub(crate) fn exited(&self) -> impl Future<Output = ()> + use<> {
        let mut exit = self.exit.clone();
        async move {
            // An error means that waiting for the process failed.
            let _ = exit.wait_for(Option::is_some).await;
        }
    }

    /// The exit status in words, such as `exit code 3`, if the process ends within this time.
    pub(crate) async fn ended(&self, within: Duration) -> Option<String> {
        let mut exit = self.exit.clone();
        let ended = timeout(within, exit.wait_for(Option::is_some)).await;
        match ended {
            Ok(Ok(status)) => status.map(callgate_process::exit_text),
            _ => None,
        }
    }

    /// Ends the process after its input was closed: waits, then sends SIGTERM, then SIGKILL to the
    /// whole group.
    pub(crate) async fn shut_down(&self) {
        if self.ended(GRACE).await.is_none() {
            self.stop.cancel();
            self.ended(2 * GRACE).await;
        }
    }
}

/// Why a program did not start.
fn start_error(stdio: &spec::Stdio, env: &BTreeMap<String, String>, error: &io::Error) -> Reason {
    let program = stdio.command.as_str();
    let unstarted = |why: &str| format!("command {program:?} could not be started: {why}");
    if let Some(limit) = MachineLimit::of_start(error) {
        return Reason::advise(&unstarted(limit.problem()), limit.advice());
    }
    if error.kind() != io::ErrorKind::NotFound {
        return unstarted(&error.to_string()).into();
    }
    if let Some(file) = file_of(stdio, env) {
        let (why, advice) = missing_interpreter(&file);
        return Reason::advise(&unstarted(&why), advice);
    }
    // Some configurations have a whole shell line there.
    let advice = if program.trim().contains(char::is_whitespace) {
        "name the program alone there, and put its arguments under `args`".to_owned()
    } else {
        format!("install {}, or give its full path", package_of(program))
    };
    Reason::advise(&format!("command {program:?} was not found"), &advice)
}

/// The file of a program, if there is one.
fn file_of(stdio: &spec::Stdio, env: &BTreeMap<String, String>) -> Option<PathBuf> {
    let program = &stdio.command;
    if program.contains('/') {
        let folder = stdio.cwd.clone().unwrap_or_default();
        return Some(folder.join(program)).filter(|file| file.is_file());
    }
    let path = env.get("PATH").map(OsString::from);
    let path = path.or_else(|| std::env::var_os("PATH"))?;
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(program));
    files.find(|file| file.is_file())
}

/// Why the system finds no program for a file that exists, and what to do.
fn missing_interpreter(file: &Path) -> (String, &'static str) {
    let mut start = Vec::new();
    let _ = File::open(file).and_then(|file| file.take(MAX_SHEBANG).read_to_end(&mut start));
    let start = String::from_utf8_lossy(&start);
    let line = start.strip_prefix("#!");
    let line = line.and_then(|rest| rest.split('\n').next());
    let line = line.map(|line| line.trim_start_matches([' ', '\t']));
    let interpreter = line.and_then(|line| line.split([' ', '\t']).next());
    match interpreter {
        Some(interpreter) if interpreter.ends_with('\r') => (
            format!(
                "its first line ends with a carriage return (CRLF), so its interpreter would be \
                 {interpreter:?}"
            ),
            "write the file with LF line ends",
        ),
        Some(interpreter) if !Path::new(interpreter).exists() => (
            format!("its first line names the interpreter {interpreter:?}, which does not exist"),
            "install the interpreter, or install the program again if its folder was moved",
        ),
        _ => (
            "its file is there, but what the system needs to run it is missing".to_owned(),
            "install a build of it for this system",
        ),
    }
}

/// The package of a program that often runs servers.
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

/// The environment variable with the number of nested Callgates around a server.
const DEPTH: &str = "CALLGATE_DEPTH";

/// The number of nested Callgates around this process.
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
    // Set last, so that the configuration cannot lower the count.
    command.env(DEPTH, nesting().saturating_add(1).to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(cwd) = &stdio.cwd {
        command.current_dir(cwd);
    }
    command
}

/// Ends a process group. SIGTERM comes first, because npx, killed while it installs, leaves a lock
/// that delays its next starts by a minute.
async fn end(process: &mut callgate_process::Child) -> io::Result<ExitStatus> {
    process.signal_group(Signal::Terminate);
    if let Ok(status) = timeout(GRACE, process.wait()).await {
        return status;
    }
    process.signal_group(Signal::Kill);
    process.wait().await
}

/// Waits for the process, or ends it. Then ends the rest of its group, which would hold its output
/// open.
async fn follow(
    mut process: callgate_process::Child,
    stop: CancellationToken,
    stderr: JoinHandle<()>,
    on_exit: watch::Sender<Option<ExitStatus>>,
) {
    let status = tokio::select! {
        status = process.wait() => status,
        () = stop.cancelled() => end(&mut process).await,
    };
    process.signal_group(Signal::Kill);
    let _ = timeout(STDERR_GRACE, stderr).await;
    match status {
        Ok(status) => drop(on_exit.send_replace(Some(status))),
        Err(error) => tracing::warn!(%error, "cannot wait for a server's process"),
    }
}

/// Logs the lines of stderr, and keeps the last ones.
async fn read_stderr(
    stderr: ChildStderr,
    tail: Arc<Mutex<VecDeque<String>>>,
    flood: FloodGate,
    redact: Redact,
) {
    let mut lines = Lines::new(stderr, MAX_STDERR_LINE);
    while let Ok(Some(line)) = lines.next().await {
        // A secret in a cut line would not be recognised.
        let text = String::from_utf8_lossy(&line.text);
        let text = text.trim_end();
        if !line.is_cut && !text.is_empty() {
            flood.log_stderr(text, &redact);
            let mut tail = tail.lock();
            if tail.len() == KEPT_LINES {
                tail.pop_front();
            }
            tail.push_back(text.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Why a program does not start with this `PATH`.
    async fn fault(command: &str, path: &str) -> String {
        let stdio = spec::Stdio {
            command: command.to_owned(),
            ..spec::Stdio::default()
        };
        let env = BTreeMap::from([("PATH".to_owned(), path.to_owned())]);
        let (redact, processes) = (Redact::default(), TaskTracker::new());
        let started = Child::start(&stdio, &env, &"x".into(), &redact, &processes).await;
        started.expect_err("it does not start").to_string()
    }

    #[tokio::test]
    async fn missing_interpreter_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text, expected) in [
            (
                "moved",
                "#!/opt/gone/.venv/bin/python3 -E\n",
                "\"/opt/gone/.venv/bin/python3\"",
            ),
            (
                "spaced",
                "#! /usr/local/none/ruby\nputs 1\n",
                "\"/usr/local/none/ruby\"",
            ),
            ("crlf", "#!/bin/sh\r\nexit 0\r\n", "carriage return (CRLF)"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&path, executable).expect("a program");
            for command in [&*path.to_string_lossy(), name] {
                let fault = fault(command, &folder.path().to_string_lossy()).await;
                assert!(fault.contains(expected), "{fault}");
            }
        }
    }

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
            let fault = fault(command, "/nowhere").await;
            let begins = format!("command {command:?} was not found; {advice}");
            assert!(fault.starts_with(&begins), "{fault}");
        }
    }
}
