//! Runs of a host with few rights, as in a container: a different user, no new privileges, no
//! namespaces, a restricted `/proc`.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use callgate_tests::{Ran, Workbench, odd};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use serde_json::{Value, json};

/// The user id of a host without rights, for a test that runs as root.
const NOBODY: u32 = 65534;

#[test]
fn a_run_needs_no_privilege_and_no_namespace() {
    let contained = run(|command| {
        let filters = container_filters();
        // SAFETY: system calls with numbers, and filters that were made before.
        unsafe { command.pre_exec(move || drop_rights(&filters)) };
    });
    expect_jail(contained);
}

/// With `hidepid=2`, a process sees no process that it may not trace, such as a worker.
#[test]
fn run_works_with_workers_hidden_in_proc() {
    let contained = run(|command| {
        let filters = container_filters();
        // SAFETY: as above.
        unsafe {
            command.pre_exec(move || {
                mount_proc_with_hidden_processes().and_then(|()| drop_rights(&filters))
            })
        };
    });
    expect_jail(contained);
}

/// The kernel gives `/proc/PID` to root where a process is not dumpable: a worker of the same user
/// that was taken over could not open the host's memory even without a jail.
#[test]
#[expect(clippy::print_stdout, reason = "the test says why it is skipped")]
fn unprivileged_host_process_is_not_dumpable() {
    // SAFETY: it takes nothing.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root can start a host as another user");
        return;
    }
    let bench = Workbench::new(json!({}));
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bench.path(), permissions).expect("a folder of this user");
    let mut command = bench.command(&["--config", "callgate.json", "serve"]);
    let filters = container_filters();
    // SAFETY: as above.
    unsafe { command.pre_exec(move || drop_rights(&filters)) };
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut host = match command.spawn() {
        Ok(host) => host,
        Err(error) => {
            println!("skipped: callgate cannot be started so here: {error}");
            return;
        }
    };
    let stderr = BufReader::new(host.stderr.take().expect("a pipe"));
    let jail = stderr.lines().find_map(|line| {
        let line = line.expect("text");
        line.strip_prefix("sandbox: ").map(str::to_owned)
    });
    let process = std::fs::metadata(format!("/proc/{}/environ", host.id()));
    host.kill().expect("it runs");
    host.wait().expect("it ends");
    assert!(jail.expect("a start-up line").contains("seccomp"));
    assert_eq!(process.expect("it is there").uid(), 0);
}

/// The report of a checked script that calls a tool, in a process set up by `prepare`. `None` if
/// the machine forbids the set-up, or the program is not accessible to users without rights.
#[expect(clippy::print_stdout, reason = "the test says why it is skipped")]
fn run(prepare: impl FnOnce(&mut Command)) -> Option<Value> {
    let bench = Workbench::new(json!({ "odd": odd("flaky") }));
    for (folder, mode) in [(bench.path(), 0o755), (bench.cache(), 0o777)] {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder, mode).expect("a folder of this user");
    }
    bench.write("script.ts", "return await odd_echo({ n: 1 });");
    // The acceptance of the file is this user's.
    let mut command = bench.command(&["--config", "callgate.json", "run", "script.ts", "--json"]);
    prepare(&mut command);
    match command.output() {
        Ok(output) => Some(Ran::from(output).json()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            println!("skipped: callgate cannot be started so here: {error}");
            None
        }
        Err(error) => panic!("callgate cannot be started: {error}"),
    }
}

/// Expects the run to be as one outside of a container, but for namespaces.
fn expect_jail(contained: Option<Value>) {
    let Some(contained) = contained else {
        return;
    };
    let free = run(|_| {}).expect("a run");
    for report in [&contained, &free] {
        assert_eq!(report["value"]["json"], json!({ "n": 1 }), "{report:#}");
        assert_eq!(report["check"]["status"], "passed", "{report:#}");
    }
    let mut expected = free["sandbox"].clone();
    expected["namespaces"] = json!([]);
    assert_eq!(contained["sandbox"], expected);
}

/// Filters like those of container engines: EPERM, and ENOSYS for `clone3`, because a filter cannot
/// see its flags.
fn container_filters() -> [BpfProgram; 2] {
    let user = u64::from(libc::CLONE_NEWUSER.cast_unsigned());
    let is_set = SeccompCmpOp::MaskedEq(user);
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Qword, is_set, user);
    let rule = SeccompRule::new(vec![condition.expect("an argument")]).expect("a condition");
    let refused = [
        (libc::SYS_unshare, Vec::new()),
        (libc::SYS_setns, Vec::new()),
        (libc::SYS_mount, Vec::new()),
        (libc::SYS_clone, vec![rule]),
    ];
    let absent = [(libc::SYS_clone3, Vec::new())];
    [filter(refused, libc::EPERM), filter(absent, libc::ENOSYS)]
}

fn filter(calls: impl Into<BTreeMap<i64, Vec<SeccompRule>>>, errno: i32) -> BpfProgram {
    let refuse = SeccompAction::Errno(errno.cast_unsigned());
    let here = std::env::consts::ARCH
        .try_into()
        .expect("a known processor");
    let filter = SeccompFilter::new(calls.into(), SeccompAction::Allow, refuse, here);
    let filter = filter.expect("two different actions");
    filter.try_into().expect("a short program")
}

/// Becomes a user without rights, if this is root, and applies the filters with `no_new_privs`.
fn drop_rights(filters: &[BpfProgram]) -> io::Result<()> {
    // SAFETY: system calls with numbers.
    unsafe {
        if libc::geteuid() == 0 {
            done(libc::setgroups(0, std::ptr::null()))?;
            done(libc::setresgid(NOBODY, NOBODY, NOBODY))?;
            done(libc::setresuid(NOBODY, NOBODY, NOBODY))?;
        }
    }
    // `apply_filter` also sets `no_new_privs`.
    let mut filters = filters.iter().map(|filter| apply_filter(filter));
    filters.try_for_each(|applied| applied.map_err(|_| io::Error::last_os_error()))
}

fn mount_proc_with_hidden_processes() -> io::Result<()> {
    let [none, root, proc] = [c"none", c"/", c"/proc"].map(std::ffi::CStr::as_ptr);
    // SAFETY: system calls with numbers and texts that are constant.
    unsafe {
        done(libc::unshare(libc::CLONE_NEWNS))?;
        let private = libc::MS_REC | libc::MS_PRIVATE;
        done(libc::mount(
            none,
            root,
            std::ptr::null(),
            private,
            std::ptr::null(),
        ))?;
        let kind = c"proc".as_ptr();
        done(libc::mount(
            kind,
            proc,
            kind,
            0,
            c"hidepid=2".as_ptr().cast(),
        ))
    }
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
