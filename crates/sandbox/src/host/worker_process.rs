//! Worker processes: how they are started, watched and ended.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use callgate_process::start_failure;
use tokio::sync::oneshot;

use crate::wire::Ready;
use crate::wire::{STOP_SIGNAL, Settings, WORKER_NAME};

/// Bytes of address space that a worker may reserve and not use: for the heaps of glibc's threads.
#[cfg(target_os = "linux")]
const RESERVED_BYTES: u64 = 512 << 20;

/// Bytes that are read of a dead worker's standard error.
const STDERR_BYTES: usize = 16 << 10;

/// The program of a worker. It must be of the same build as the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerProgram {
    /// `callgate-worker` in the folder of this process's executable.
    Installed,
    /// The executable of this process, which calls `worker_main_if_requested` of `callgate-worker`
    /// first in its `main`.
    CurrentExe,
    /// Such an executable, or `callgate-worker`. The file is opened once, so that an update does not
    /// change the workers of a running host.
    Path(PathBuf),
}

impl<P: AsRef<Path>> From<P> for WorkerProgram {
    fn from(path: P) -> Self {
        Self::Path(path.as_ref().to_owned())
    }
}

/// Starts workers on a dedicated thread.
///
/// Linux ties a child's death signal to the thread that started it, not to the process: a worker
/// started from a thread of an async runtime would die with that thread.
#[derive(Debug)]
pub(super) struct Spawner {
    orders: mpsc::Sender<Order>,
    /// Why its thread did not start, if so.
    failure: Option<String>,
}

enum Order {
    Start(Settings, oneshot::Sender<Result<Worker, String>>),
    Stop,
}

impl Spawner {
    pub(super) fn new(program: WorkerProgram) -> Self {
        let program = Executable::open(program);
        let (orders, inbox) = mpsc::channel();
        let started = std::thread::Builder::new()
            .name("callgate-spawner".to_owned())
            .spawn(move || {
                while let Ok(Order::Start(settings, sender)) = inbox.recv() {
                    // A run that was dropped meanwhile drops the worker too.
                    let _ = sender.send(start(&program, settings));
                }
            });
        let failure = started.err().map(|error| start_failure(&error));
        Self { orders, failure }
    }

    pub(super) async fn spawn(&self, settings: Settings) -> Result<Worker, String> {
        let (sender, receiver) = oneshot::channel();
        let _ = self.orders.send(Order::Start(settings, sender));
        receiver.await.unwrap_or_else(|_| {
            let reason = self.failure.as_deref().unwrap_or("it is gone");
            Err(format!("no thread can start workers: {reason}"))
        })
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        // Its thread ends, and with it every worker that is left.
        let _ = self.orders.send(Order::Stop);
    }
}

/// A running worker. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Worker {
    settings: Settings,
    socket: Option<UnixStream>,
    child: Option<Child>,
    /// Bytes of private writable memory, and of address space, when the worker was ready.
    data_bytes: u64,
    space_bytes: u64,
    cpu_clock: Option<libc::clockid_t>,
    /// `/proc/PID/schedstat`, where the kernel has it.
    schedule: Option<File>,
}

impl Worker {
    /// A second descriptor for the host's end of the socket.
    pub(super) fn clone_socket(&self) -> Option<UnixStream> {
        self.socket.as_ref()?.try_clone().ok()
    }

    /// The host's end of the socket; `None` after the first call.
    pub(super) fn take_socket(&mut self) -> Option<UnixStream> {
        self.socket.take()
    }

    pub(super) fn settings(&self) -> Settings {
        self.settings
    }

    /// True if the process has not ended yet.
    pub(super) fn is_alive(&mut self) -> bool {
        match self.child.as_mut().map(Child::try_wait) {
            Some(Ok(None)) => true,
            Some(Ok(Some(_))) => {
                // Its exit status is taken, so its id may belong to another process by now.
                self.child = None;
                false
            }
            Some(Err(_)) | None => false,
        }
    }

    /// The process id; 0 once the process is dead.
    pub(super) fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Records the worker's memory before it has a script.
    pub(super) fn set_memory(&mut self, ready: &Ready) {
        self.data_bytes = ready.data_bytes;
        self.space_bytes = ready.space_bytes;
    }

    /// Bounds the memory of the process to this number of bytes on top of its memory when it was
    /// ready, however the memory is allocated. Only Linux has such limits.
    ///
    /// The limit on private writable memory does not count memory that is no longer writable; the
    /// limit on address space does, and bounds the kernel's page tables.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(unused_variables, clippy::unnecessary_wraps)
    )]
    pub(super) fn limit_memory(&self, bytes: u64) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            let pid = libc::pid_t::try_from(self.id()).map_err(io::Error::other)?;
            let space_bytes = self.space_bytes.saturating_add(RESERVED_BYTES);
            for (resource, before) in [
                (libc::RLIMIT_DATA, self.data_bytes),
                (libc::RLIMIT_AS, space_bytes),
            ] {
                let mut limit = libc::rlimit {
                    rlim_cur: 0,
                    rlim_max: 0,
                };
                // SAFETY: reads and writes one live value. The process was not waited for, so its id
                // is not another's.
                let set = unsafe {
                    libc::prlimit(pid, resource, std::ptr::null(), &raw mut limit) == 0 && {
                        limit.rlim_cur = before.saturating_add(bytes).min(limit.rlim_max);
                        libc::prlimit(pid, resource, &raw const limit, std::ptr::null_mut()) == 0
                    }
                };
                set.then_some(()).ok_or_else(io::Error::last_os_error)?;
            }
        }
        Ok(())
    }

    /// Processor time of all threads of the process; `None` once it is dead.
    pub(super) fn cpu_time(&self) -> Option<Duration> {
        // After a wait for the process, its id could be another's.
        self.child.as_ref()?;
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: writes to one live value.
        if unsafe { libc::clock_gettime(self.cpu_clock?, &raw mut time) } != 0 {
            return None;
        }
        let seconds = u64::try_from(time.tv_sec).ok()?;
        let nanoseconds = u32::try_from(time.tv_nsec).ok()?;
        Some(Duration::new(seconds, nanoseconds))
    }

    /// Time in which the main thread has run or waited for a processor; `None` where the kernel does
    /// not report it.
    pub(super) fn main_thread_time(&self) -> Option<Duration> {
        let mut line = [0; 64];
        let read = self.schedule.as_ref()?.read_at(&mut line, 0).ok()?;
        let line = str::from_utf8(line.get(..read)?).ok()?;
        let mut numbers = line.split(' ').map(str::parse::<u64>);
        let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Duration::from_nanos(ran.saturating_add(waited)))
    }

    /// Asks the worker to stop its script, to send its remaining output, and to end.
    pub(super) fn ask_to_stop(&self) {
        if let Some(child) = &self.child
            && let Ok(pid) = libc::pid_t::try_from(child.id())
        {
            // SAFETY: a system call with numbers. The process was not waited for, so its id is not
            // another's.
            unsafe {
                libc::kill(pid, STOP_SIGNAL);
            }
        }
    }

    /// Kills the process, and returns how it ended: by itself, if it was faster.
    pub(super) async fn end(mut self) -> Death {
        self.kill().await.unwrap_or_default()
    }

    /// Kills the process. A new thread waits for it, so that it does not stay behind as a zombie, and
    /// sends how it ended.
    fn kill(&mut self) -> oneshot::Receiver<Death> {
        let (sender, receiver) = oneshot::channel();
        let Some(child) = self.child.take() else {
            return receiver;
        };
        if let Ok(pid) = libc::pid_t::try_from(child.id()) {
            // SAFETY: system calls with numbers. The process was not waited for, so its id is not
            // another's. It is also the id of its group, once it has a session of its own.
            unsafe {
                libc::kill(-pid, libc::SIGKILL);
                // It may have no group of its own yet.
                libc::kill(pid, libc::SIGKILL);
            }
        }
        let (dead, received) = mpsc::channel();
        let reaper = std::thread::Builder::new().name("callgate-reaper".to_owned());
        let started = reaper.spawn(move || {
            if let Ok((child, sender)) = received.recv() {
                reap_and_send(child, sender);
            }
        });
        match started {
            Ok(_) => drop(dead.send((child, sender))),
            // The machine has no thread left. The process was killed, so the wait is short.
            Err(_) => reap_and_send(child, sender),
        }
        receiver
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.kill());
    }
}

/// The end of a worker's process.
#[derive(Debug, Default)]
pub(super) struct Death {
    /// The exit status, if the host could read it.
    pub(super) status: Option<ExitStatus>,
    /// The last part of standard error, to which only V8 and Rust's panics write.
    pub(super) stderr: String,
}

impl Death {
    /// The exit code, if the process ended by itself.
    pub(super) fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    /// The signal that ended the process, unless it was SIGKILL, which the host sends.
    pub(super) fn signal(&self) -> Option<i32> {
        let signal = self.status.and_then(|status| status.signal());
        signal.filter(|signal| *signal != libc::SIGKILL)
    }
}

fn reap_and_send(child: Child, sender: oneshot::Sender<Death>) {
    let _ = sender.send(reap(child));
}

fn reap(mut child: Child) -> Death {
    let status = child.wait().ok();
    let stderr = child.stderr.take().map(read_rest).unwrap_or_default();
    Death { status, stderr }
}

/// The rest of the text in the pipe of a dead process.
fn read_rest(mut stderr: ChildStderr) -> String {
    use std::io::Read;
    let mut bytes = vec![0; STDERR_BYTES];
    // Does not block: a child of the dead process may still hold the other end of the pipe.
    let mut never_waits: libc::c_int = 1;
    // SAFETY: reads one live value.
    if unsafe { libc::ioctl(stderr.as_raw_fd(), libc::FIONBIO, &raw mut never_waits) } != 0 {
        return String::new();
    }
    let read = stderr.read(&mut bytes).unwrap_or(0);
    bytes.truncate(read);
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// The file that workers are started from.
struct Executable {
    path: PathBuf,
    /// The path in messages.
    shown: PathBuf,
    /// Keeps the descriptor open that `path` names.
    _file: Option<File>,
}

impl Executable {
    fn open(program: WorkerProgram) -> Result<Self, String> {
        let current = |error| format!("the path of this program is not known: {error}");
        let (path, advice) = match program {
            // The kernel keeps the file of a running program.
            WorkerProgram::CurrentExe if cfg!(target_os = "linux") => {
                return Ok(Self::at(PathBuf::from("/proc/self/exe")));
            }
            WorkerProgram::CurrentExe => (std::env::current_exe().map_err(current)?, ""),
            WorkerProgram::Installed => {
                let program = std::env::current_exe().map_err(current)?;
                (
                    program.with_file_name(WORKER_NAME),
                    "; install Callgate again",
                )
            }
            WorkerProgram::Path(path) => (path, ""),
        };
        if !cfg!(target_os = "linux") {
            return Ok(Self::at(path));
        }
        let opened = File::open(&path).map_err(|error| {
            format!(
                "the worker {} cannot be started: {error}{advice}",
                path.display()
            )
        })?;
        let mut magic = [0; 2];
        if opened.read_exact_at(&mut magic, 0).is_ok() && magic == *b"#!" {
            // The interpreter opens it by its path.
            return Ok(Self::at(path));
        }
        Ok(Self {
            path: PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())),
            shown: path,
            _file: Some(opened),
        })
    }

    fn at(path: PathBuf) -> Self {
        Self {
            shown: path.clone(),
            path,
            _file: None,
        }
    }
}

fn start(program: &Result<Executable, String>, settings: Settings) -> Result<Worker, String> {
    let program = program.as_ref().map_err(Clone::clone)?;
    let shown = program.shown.display();
    let fail = |error: io::Error| {
        let why = start_failure(&error);
        format!("the worker {shown} cannot be started: {why}")
    };
    let (ours, theirs) = UnixStream::pair().map_err(fail)?;
    ours.set_nonblocking(true).map_err(fail)?;
    // No code runs between fork and exec, so the process is started by vfork, which is fast whatever
    // the size of this one. All descriptors of Rust are close-on-exec; the worker first closes those
    // of other libraries.
    let child = Command::new(&program.path)
        .arg0(WORKER_NAME)
        .args(settings.to_arguments())
        .env_clear()
        .env("TZ", "UTC")
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(fail)?;
    Ok(Worker {
        settings,
        socket: Some(ours),
        cpu_clock: cpu_clock(&child),
        schedule: File::open(format!("/proc/{}/schedstat", child.id())).ok(),
        child: Some(child),
        data_bytes: 0,
        space_bytes: 0,
    })
}

#[cfg(target_os = "linux")]
fn cpu_clock(child: &Child) -> Option<libc::clockid_t> {
    let pid = libc::pid_t::try_from(child.id()).ok()?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: writes to one live value. The process is a child that was not waited for, so its id is
    // not another's.
    (unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } == 0).then_some(clock)
}

/// Other systems have no such clock; wall time counts instead.
#[cfg(not(target_os = "linux"))]
fn cpu_clock(_child: &Child) -> Option<libc::clockid_t> {
    None
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::path::Path;

    use super::*;
    use crate::wire::Jit;

    /// A program in place of a worker.
    fn worker(mut program: Command) -> Worker {
        let child = program.stderr(Stdio::piped()).spawn().expect("it starts");
        let settings = Settings {
            heap_bytes: 0,
            jit: Jit::Off,
            layers: 0,
        };
        Worker {
            settings,
            socket: None,
            cpu_clock: cpu_clock(&child),
            schedule: None,
            child: Some(child),
            data_bytes: 0,
            space_bytes: 0,
        }
    }

    async fn in_time<T>(what: impl Future<Output = T>) -> T {
        let limit = Duration::from_secs(20);
        tokio::time::timeout(limit, what).await.expect("it hangs")
    }

    /// A child in the test's own process group has no group of its own.
    #[tokio::test]
    async fn worker_outside_its_group_is_killed_and_reaped() {
        let mut program = Command::new("tail");
        program.args(["-f", "/dev/null"]);
        let left = worker(program);
        let pid = left.child.as_ref().expect("a child").id();
        let death = in_time(left.end()).await;
        let signal = death.status.and_then(|status| status.signal());
        assert_eq!(signal, Some(libc::SIGKILL));
        // SIGKILL comes from the host and is not counted as the worker's signal.
        assert_eq!(death.signal(), None);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[tokio::test]
    async fn processes_in_worker_group_are_killed() {
        let mut program = Command::new("sh");
        program.args(["-c", "tail -f /dev/null & echo $! >&2; wait"]);
        program.process_group(0);
        let mut worker = worker(program);
        let stderr = worker.child.as_mut().and_then(|child| child.stderr.take());
        let mut line = String::new();
        BufReader::new(stderr.expect("it is piped"))
            .read_line(&mut line)
            .expect("a line");
        let death = in_time(worker.end()).await;
        let signal = death.status.and_then(|status| status.signal());
        assert_eq!(signal, Some(libc::SIGKILL));
        // It is not a child of this process, and its parent may wait for it late.
        let stat = format!("/proc/{}/stat", line.trim());
        in_time(async {
            while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}
