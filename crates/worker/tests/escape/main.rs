//! Attacks on the jail from inside: a worker with native code makes the system calls that could get it
//! out. `cargo xtask escape` runs this and prints the table.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]
#![expect(clippy::print_stdout, reason = "the table is for a person")]

mod probes;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use callgate_sandbox::{
    CallHandler, End, Ended, JailLayer, JailOptions, Job, Launcher, LauncherOptions, Limits,
    Returned, ScriptCall, ScriptInput, Thrown, WorkerProgram,
};
use futures::future::BoxFuture;
use futures::{StreamExt as _, stream};
use probes::{Arg, Outcome, PROBES, Probe};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

struct NoCalls;

impl CallHandler for NoCalls {
    fn call(&self, _: ScriptCall) -> BoxFuture<'static, Result<Box<RawValue>, Thrown>> {
        unreachable!("native code makes no calls")
    }
}

/// A launcher of workers that run native code, with these layers.
fn launcher(layers: &[JailLayer]) -> Launcher {
    let mut options = LauncherOptions {
        spares: 0,
        jail: JailOptions::process_only(),
        ..LauncherOptions::default()
    };
    options.jail.layers = layers.to_vec();
    let program = WorkerProgram::Path(env!("CARGO_BIN_EXE_native-worker").into());
    Launcher::new(program, options)
}

async fn run(launcher: &Launcher, order: &str) -> Ended {
    let job = Job {
        source_name: "native".to_owned(),
        code: order.to_owned(),
        source_map: Vec::new(),
        functions: Vec::new(),
        input: ScriptInput::default(),
        limits: Limits::default(),
    };
    match launcher.take(&job.limits).await {
        Ok(worker) => {
            worker
                .run(job, Arc::new(NoCalls), CancellationToken::new())
                .await
        }
        Err(error) => Ended::without_script(End::NotStarted {
            reason: error.to_string(),
        }),
    }
}

/// The answer to an order, or the end of the worker.
async fn answer(launcher: &Launcher, order: &str) -> String {
    match run(launcher, order).await.end {
        End::Returned(Returned::Json(json)) => json.get().to_owned(),
        End::SystemCall { name } => format!("killed: {}", name.as_deref().unwrap_or("?")),
        other => format!("{other:?}"),
    }
}

/// The layers that this kernel has. A test that needs a missing one prints that and passes.
async fn layers_of_the_kernel() -> Vec<JailLayer> {
    let jail = run(&launcher(&JailLayer::ALL), "call 39")
        .await
        .jail
        .unwrap();
    let mut layers = Vec::new();
    for (layer, is_there) in [
        (JailLayer::Landlock, jail.landlock.is_some()),
        (JailLayer::Seccomp, jail.seccomp),
        (JailLayer::Namespaces, !jail.namespaces.is_empty()),
    ] {
        if is_there {
            layers.push(layer);
        } else {
            println!("skipped: the kernel has no {}", layer.name());
        }
    }
    layers
}

/// A folder with a file and a folder in it, which any user may write to.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("callgate-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("sub")).unwrap();
        fs::write(path.join("file"), "content").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn order(probe: &Probe, folder: &Path) -> String {
    let host = std::process::id();
    let mut order = format!("call {}", probe.call);
    for argument in probe.arguments {
        let _ = match argument {
            Arg::N(number) => write!(order, " n{number}"),
            Arg::Text(text) => write!(order, " t{text}"),
            Arg::Memory(offset) => write!(order, " m{offset}"),
            Arg::Host => write!(order, " n{host}"),
            Arg::OfHost(path) => write!(order, " t/proc/{host}/{path}"),
            Arg::Own(path) => write!(order, " t{}/{path}", folder.display()),
        };
    }
    order
}

async fn outcome(launcher: &Launcher, probe: &Probe, folder: &Path) -> Result<Outcome, String> {
    let answer = answer(launcher, &order(probe, folder)).await;
    if let Some(name) = answer.strip_prefix("killed: ") {
        let expected = syscalls::Sysno::new(usize::try_from(probe.call).unwrap());
        let expected =
            expected.map_or_else(|| probe.call.to_string(), |call| call.name().to_owned());
        return if name == expected {
            Ok(Outcome::Killed)
        } else {
            Err(format!("killed for {name}"))
        };
    }
    match answer.parse::<i32>() {
        Ok(error) if error < 0 => Ok(Outcome::Error(-error)),
        Ok(_) => Ok(Outcome::Works),
        Err(_) => Err(answer),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn system_calls_of_native_code_are_refused() {
    let there = layers_of_the_kernel().await;
    let (landlock, seccomp) = (
        there.contains(&JailLayer::Landlock),
        there.contains(&JailLayer::Seccomp),
    );
    let folder = Folder::new("escape");
    let all = launcher(&JailLayer::ALL);
    let without_landlock = launcher(&[JailLayer::Seccomp]);
    let without_seccomp = launcher(&[JailLayer::Landlock]);
    let rows = stream::iter(PROBES).map(|probe| {
        let (all, without_landlock, without_seccomp) = (&all, &without_landlock, &without_seccomp);
        let folder = folder.0.as_path();
        async move {
            let mut wrong = Vec::new();
            let mut seen = Vec::new();
            for (jail, is_tried, name) in [
                (all, seccomp, "all layers"),
                (without_landlock, seccomp, "without Landlock"),
                (
                    without_seccomp,
                    landlock && probe.landlock,
                    "without seccomp",
                ),
            ] {
                if !is_tried {
                    seen.push("-".to_owned());
                    continue;
                }
                let got = outcome(jail, probe, folder).await;
                let is_right = match &got {
                    Ok(got) if name == "without seccomp" => matches!(got, Outcome::Error(_)),
                    Ok(got) => *got == probe.jailed,
                    Err(_) => false,
                };
                if !is_right {
                    wrong.push(format!(
                        "{} {name}: {got:?}, not {:?}",
                        probe.name, probe.jailed
                    ));
                }
                seen.push(got.map_or_else(|error| error, |got| format!("{got:?}")));
            }
            let line = format!(
                "{:32} {:12} {:16} {:12} {}",
                probe.name, seen[0], seen[1], seen[2], probe.why
            );
            (line, wrong)
        }
    });
    let rows: Vec<_> = rows.buffered(4).collect().await;
    println!(
        "{:32} {:12} {:16} {:12} what native code would gain",
        "call", "jailed", "no Landlock", "no seccomp"
    );
    for (line, _) in &rows {
        println!("{line}");
    }
    let landlock_too = PROBES.iter().filter(|probe| probe.landlock).count();
    let harmless = PROBES
        .iter()
        .filter(|probe| probe.jailed == Outcome::Works)
        .count();
    println!(
        "{} calls: {harmless} work and are harmless; seccomp alone stops the rest; Landlock alone \
         stops {landlock_too}",
        PROBES.len()
    );
    let wrong: Vec<_> = rows.into_iter().flat_map(|(_, wrong)| wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(
        fs::read_to_string(folder.0.join("file")).unwrap(),
        "content"
    );
}

#[tokio::test]
async fn compromised_worker_cannot_escape_the_jail() {
    let there = layers_of_the_kernel().await;
    if !there.contains(&JailLayer::Seccomp) || !there.contains(&JailLayer::Landlock) {
        return;
    }
    let jail = launcher(&JailLayer::ALL);
    let other_worker = jail.take(&Limits::default()).await.unwrap();
    let mut victim = Command::new("sleep")
        .arg("600")
        .env("SERVER_SECRET", "hunter2")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let secret = "hunter2 of the host".to_owned();
    let host = std::process::id();
    let server = victim.id();
    let read = format!("read-memory {host} {}", secret.as_ptr().addr());
    let environment = format!("call 257 n-100 t/proc/{server}/environ n0");
    let end = |process: u32| format!("call 62 n{process} n9");
    for (attack, order, expected) in [
        (
            "reads the host's memory",
            &*read,
            "killed: process_vm_readv",
        ),
        ("reads a server's environment", &environment, "-13"),
        (
            "ends another worker",
            &end(other_worker.id()),
            "killed: kill",
        ),
        ("ends a server", &end(server), "killed: kill"),
        ("opens the terminal", "call 257 n-100 t/dev/tty n2", "-13"),
        (
            "handles the signal of refused calls",
            "survive-sigsys",
            "killed: socket",
        ),
        (
            "blocks the signal of refused calls",
            "block-sigsys",
            "killed: ?",
        ),
        ("makes 32-bit calls", "call-of-i386", "killed: ?"),
    ] {
        assert_eq!(answer(&jail, order).await, expected, "{attack}");
    }
    let taken: u64 = answer(&jail, "take-memory").await.parse().unwrap();
    let limits = Limits::default();
    let bound = 2 * limits.heap_bytes + limits.buffer_bytes + limits.reply_bytes + (512 << 20);
    assert!(taken << 20 <= bound, "{taken} MiB of memory");
    victim.kill().unwrap();
    victim.wait().unwrap();
}

/// A number in a worker's `/proc/PID/status`, in KiB for memory.
fn count(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let mut words = line.unwrap().trim_start_matches(':').split_whitespace();
    words.next().unwrap().parse().unwrap()
}

/// The kernel's counts of memory and threads, before an attack and after it.
async fn counts(launcher: &Launcher, limits: &Limits, attack: &str) -> [String; 2] {
    let worker = launcher.take(limits).await.unwrap();
    let status = format!("/proc/{}/status", worker.id());
    let before = fs::read_to_string(&status).unwrap();
    let job = Job {
        source_name: "native".to_owned(),
        code: format!("and-stop {attack}"),
        source_map: Vec::new(),
        functions: Vec::new(),
        input: ScriptInput::default(),
        limits: limits.clone(),
    };
    let run = worker.run(job, Arc::new(NoCalls), CancellationToken::new());
    let stopped = async {
        loop {
            let status = fs::read_to_string(&status).unwrap_or_default();
            if status.contains("\nState:\tT") {
                return status;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        after = stopped => [before, after],
        ended = run => panic!("{attack}: {:?}", ended.end),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn native_code_has_bounded_memory_and_threads() {
    let there = layers_of_the_kernel().await;
    if !there.contains(&JailLayer::Seccomp) {
        return;
    }
    let jail = launcher(&there);
    let limits = Limits {
        script_time: Duration::from_secs(60),
        heap_bytes: 16 << 20,
        buffer_bytes: 16 << 20,
        reply_bytes: 16 << 20,
        ..Limits::default()
    };
    // The sum of `data_bytes` in host/endings.rs and pages of files; then the reserved space.
    let data = (4 * 16 + 256 + 64) << 10;
    let reserved = 512 << 10;
    println!(
        "{:16} {:>12} {:>12} {:>8}",
        "attack", "VmRSS", "VmPTE", "Threads"
    );
    for (attack, resident) in [
        ("every-flag", data),
        ("tables", data),
        ("once-writable", data + reserved),
        ("threads", data),
    ] {
        let [before, after] = counts(&jail, &limits, attack).await;
        let [rss, tables, threads] = ["VmRSS", "VmPTE", "Threads"].map(|name| count(&after, name));
        println!("{attack:16} {rss:>8} KiB {tables:>8} KiB {threads:>8}");
        let size = count(&before, "VmSize");
        assert!(
            size < 2 << 20,
            "V8 reserves {size} KiB, which native code could use"
        );
        assert!(
            rss <= count(&before, "VmRSS") + resident,
            "{attack}: {after}"
        );
        assert!(tables <= 16 << 10, "{attack}: {after}");
        assert_eq!(threads, count(&before, "Threads"), "{attack}");
    }
}

#[tokio::test]
async fn the_kernel_ends_workers_first() {
    let limits = Limits::default();
    let worker = launcher(&layers_of_the_kernel().await).take(&limits).await;
    let score = format!("/proc/{}/oom_score_adj", worker.as_ref().unwrap().id());
    assert_eq!(fs::read_to_string(score).unwrap(), "1000\n");
}

/// A process of the same user attaches to a worker before its first instruction.
#[tokio::test(flavor = "multi_thread")]
async fn a_traced_worker_gets_no_script() {
    let folder = Folder::new("traced");
    let (program, id) = (folder.0.join("worker"), folder.0.join("id"));
    let script = format!(
        "#!/bin/bash\necho $$ > '{}'\nuntil mapfile -t status < /proc/$$/status && \
         [[ \"${{status[*]}}\" == *TracerPid:$'\\t'[1-9]* ]]; do :; done\n\
         exec -a callgate-worker '{}' \"$@\"\n",
        id.display(),
        env!("CARGO_BIN_EXE_native-worker")
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let (ended, end) = std::sync::mpsc::channel::<()>();
    let tracer = std::thread::spawn(move || {
        let worker: libc::pid_t = loop {
            let id = fs::read_to_string(&id).unwrap_or_default();
            if let Ok(id) = id.trim().parse() {
                break id;
            }
        };
        // SAFETY: attaches to a process of this test, which goes on.
        let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, worker, 0, 0) };
        assert_eq!(seized, 0, "{}", std::io::Error::last_os_error());
        // The process is traced for as long as this thread lives.
        let _ended = end.recv();
    });
    let options = LauncherOptions {
        spares: 0,
        jail: JailOptions::process_only(),
        ..LauncherOptions::default()
    };
    let launcher = Launcher::new(WorkerProgram::Path(program), options);
    let refused = launcher.take(&Limits::default()).await.unwrap_err();
    let refused = refused.to_string();
    drop(ended);
    tracer.join().unwrap();
    assert!(refused.contains("another process traces it"), "{refused}");
}

#[tokio::test]
async fn all_threads_are_filtered_without_a_terminal() {
    let options = LauncherOptions {
        spares: 1,
        ..LauncherOptions::default()
    };
    let program = WorkerProgram::Path(env!("CARGO_BIN_EXE_native-worker").into());
    let launcher = Launcher::new(program, options);
    let Ok(worker) = launcher.take(&Limits::default()).await else {
        println!("skipped: the kernel lacks a required layer");
        return;
    };
    let threads = fs::read_dir(format!("/proc/{}/task", worker.id())).unwrap();
    let threads: Vec<_> = threads.map(|thread| thread.unwrap().path()).collect();
    assert!(threads.len() > 1, "{threads:?}");
    for thread in threads {
        let status = fs::read_to_string(thread.join("status")).unwrap();
        assert!(status.contains("\nSeccomp:\t2\n"), "{status}");
        assert!(status.contains("\nNoNewPrivs:\t1\n"), "{status}");
    }
    let stat = fs::read_to_string(format!("/proc/{}/stat", worker.id())).unwrap();
    // State, parent, group, session and terminal follow the name (proc_pid_stat(5)).
    let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    assert_eq!(fields[3], worker.id().to_string(), "session");
    assert_eq!(fields[4], "0", "terminal");
}
