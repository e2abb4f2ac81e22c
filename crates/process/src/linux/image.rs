//! All that a child does between its beginning and its program, made ready by the
//! host: the child shares the host's memory until then, and must neither allocate
//! nor call anything that may take a lock.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString, c_int, c_void};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, Ordering};

use super::running::reap;
use crate::Command;

/// What the child's own part needs at most, and a good deal more.
const STACK_BYTES: usize = 64 << 10;
/// Where programs are looked for if the environment does not say.
const USUAL_PATH: &str = "/bin:/usr/bin";
/// What executes a text that does not say by what it is to be executed.
const SHELL: &std::ffi::CStr = c"/bin/sh";

/// What the child becomes.
pub(super) struct Image {
    host: libc::pid_t,
    /// Where its program may be, each to be tried.
    programs: Vec<CString>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    folder: Option<CString>,
    streams: [RawFd; 3],
    limits: Vec<(libc::__rlimit_resource_t, libc::rlimit)>,
    no_new_privileges: bool,
}

/// The same as the child reads it.
struct Plan<'a> {
    image: &'a Image,
    /// Ends with null, as the next does. The first element is for the shell.
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
    /// Why it is no program, once the child is over.
    error: AtomicI32,
}

impl Image {
    /// What a command is to become; `streams` are open while it is started.
    pub(super) fn of(command: &Command, streams: [RawFd; 3]) -> io::Result<Self> {
        let inherited;
        let variables = match &command.environment {
            Some(variables) => variables,
            None => {
                inherited = std::env::vars_os().collect();
                &inherited
            }
        };
        let environment = variables.iter().map(|(name, value)| {
            let mut variable = name.clone().into_vec();
            variable.push(b'=');
            variable.extend_from_slice(value.as_bytes());
            Ok(CString::new(variable)?)
        });
        let mut arguments = vec![text(&command.program)?];
        for argument in &command.arguments {
            arguments.push(text(argument)?);
        }
        let limits = command.limits.iter().map(|(resource, most)| {
            let limit = libc::rlimit {
                rlim_cur: *most,
                rlim_max: *most,
            };
            (*resource, limit)
        });
        Ok(Self {
            // SAFETY: getpid reads no memory of ours.
            host: unsafe { libc::getpid() },
            programs: programs(&command.program, variables)?,
            arguments,
            environment: environment.collect::<io::Result<_>>()?,
            folder: command
                .folder
                .as_deref()
                .map(|folder| text(folder.as_os_str()))
                .transpose()?,
            streams,
            limits: limits.collect(),
            no_new_privileges: command.no_new_privileges,
        })
    }

    /// Starts it, and returns when it is its program; it is to be waited for then.
    pub(super) fn start(&self) -> io::Result<libc::pid_t> {
        let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).collect();
        let mut arguments: Vec<_> = pointers(&self.arguments);
        arguments.insert(0, SHELL.as_ptr());
        arguments.push(null());
        let mut environment: Vec<_> = pointers(&self.environment);
        environment.push(null());
        let mut plan = Plan {
            image: self,
            arguments,
            environment,
            error: AtomicI32::new(0),
        };
        let mut stack = vec![0_u8; STACK_BYTES];
        let pid = {
            // No handler of the host's may run in the child, on the host's memory.
            let _signals = SignalsBlocked::new();
            let end = stack.as_mut_ptr_range().end;
            // SAFETY: `become_program` takes a plan and, sharing this memory, does not
            // return before it is over or something else; CLONE_VFORK has this thread
            // wait for that, so that plan and stack outlive their use. The stack grows
            // downwards from its end, which is aligned as that must be.
            unsafe {
                libc::clone(
                    become_program,
                    end.sub(end.addr() % 16).cast(),
                    libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
                    (&raw mut plan).cast(),
                )
            }
        };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        match plan.error.load(Ordering::Acquire) {
            0 => Ok(pid),
            error => {
                reap(pid);
                Err(io::Error::from_raw_os_error(error))
            }
        }
    }
}

/// Where a program may be: where it says, or in each folder of the `PATH` that it is
/// to have.
fn programs(program: &OsStr, variables: &BTreeMap<OsString, OsString>) -> io::Result<Vec<CString>> {
    if program.is_empty() {
        return Err(io::Error::from_raw_os_error(libc::ENOENT));
    }
    if program.as_bytes().contains(&b'/') {
        return Ok(vec![text(program)?]);
    }
    let path = variables.get(OsStr::new("PATH"));
    let path = path.map_or(OsStr::new(USUAL_PATH), OsString::as_os_str);
    let folders = path.as_bytes().split(|byte| *byte == b':');
    folders
        .map(|folder| {
            // An empty one is the folder in which the program starts.
            let folder = if folder.is_empty() { b"." } else { folder };
            text(OsStr::from_bytes(
                &[folder, b"/", program.as_bytes()].concat(),
            ))
        })
        .collect()
}

fn text(text: &OsStr) -> io::Result<CString> {
    // The error says that there is a zero in it.
    Ok(CString::new(text.as_bytes())?)
}

/// The child.
extern "C" fn become_program(plan: *mut c_void) -> c_int {
    // SAFETY: it is the plan that `start` gives, which nobody changes meanwhile but
    // this.
    let plan = unsafe { &mut *plan.cast::<Plan<'_>>() };
    // SAFETY: this is the child.
    let error = match unsafe { plan.prepare().and_then(|()| plan.execute()) } {
        Ok(never) => match never {},
        Err(Failed) => errno(),
    };
    plan.error.store(error, Ordering::Release);
    // SAFETY: it ends the child, without anything that the host would do at its end.
    unsafe { libc::_exit(127) }
}

/// A system call failed, and errno says why.
struct Failed;

/// That a system call did not fail.
fn done(returned: c_int) -> Result<(), Failed> {
    if returned < 0 { Err(Failed) } else { Ok(()) }
}

fn errno() -> c_int {
    // SAFETY: it is this thread's own; the child has the host's thread's, which waits.
    unsafe { *libc::__errno_location() }
}

fn set_errno(error: c_int) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = error }
}

enum Never {}

impl Plan<'_> {
    /// Makes the process what it is to be before it has its program.
    ///
    /// # Safety
    ///
    /// To be called in the child only. Makes only system calls that may be made
    /// there, with pointers to what outlives them.
    unsafe fn prepare(&self) -> Result<(), Failed> {
        let image = self.image;
        // SAFETY: as the caller promises.
        unsafe {
            // The kernel kills it when the thread ends that started it.
            done(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
            // The host may have died before that.
            if libc::getppid() != image.host {
                set_errno(libc::ESRCH);
                return Err(Failed);
            }
            done(libc::setpgid(0, 0))?;
            for (stream, place) in image.streams.iter().zip(0..) {
                done(libc::dup2(*stream, place))?;
            }
            // What else is open in the host is none of its business. Where the kernel
            // does not know the call, the host's code has to mind its descriptors.
            libc::syscall(
                libc::SYS_close_range,
                3,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            );
            if let Some(folder) = &image.folder {
                done(libc::chdir(folder.as_ptr()))?;
            }
            for (resource, limit) in &image.limits {
                done(libc::setrlimit(*resource, limit))?;
            }
            if image.no_new_privileges {
                done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            }
            default_signals();
        }
        Ok(())
    }

    /// Executes the first program that is there.
    ///
    /// # Safety
    ///
    /// As for [`Plan::prepare`].
    unsafe fn execute(&mut self) -> Result<Never, Failed> {
        let image = self.image;
        let environment = self.environment.as_ptr();
        let mut refused = false;
        for program in &image.programs {
            let arguments = self.arguments.as_ptr();
            // SAFETY: all are texts and lists that end with null. The second list has
            // its first element, which is the shell's, before the arguments.
            unsafe {
                libc::execve(program.as_ptr(), arguments.add(1), environment);
            }
            match errno() {
                // It is there, and is no program: as every shell does, and execvp.
                libc::ENOEXEC => {
                    if let Some(script) = self.arguments.get_mut(1) {
                        *script = program.as_ptr();
                    }
                    // SAFETY: as above.
                    unsafe {
                        libc::execve(SHELL.as_ptr(), self.arguments.as_ptr(), environment);
                    }
                    return Err(Failed);
                }
                // There may be another that may be executed.
                libc::EACCES => refused = true,
                libc::ENOENT | libc::ENOTDIR | libc::ESTALE | libc::ENODEV | libc::ETIMEDOUT => {}
                _ => return Err(Failed),
            }
        }
        if refused {
            set_errno(libc::EACCES);
        }
        Err(Failed)
    }
}

/// Gives every signal back what it does by itself, unless the host ignores it, and
/// lets it through.
///
/// # Safety
///
/// To be called in the child only: the host has handlers of its own, which must not
/// run in the child, and are gone before a signal can come.
unsafe fn default_signals() {
    // SAFETY: these calls read and write the structs that the pointers are to; one
    // with zeros only is an action, and a set of no signals.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        for signal in 1..=libc::SIGRTMAX() {
            let mut known = default;
            libc::sigaction(signal, null(), &raw mut known);
            // The Rust runtime ignores this one, which no program expects.
            if known.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE {
                libc::sigaction(signal, &raw const default, null_mut());
            }
        }
        let none: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, null_mut());
    }
}

/// No signal reaches this thread while this lives.
struct SignalsBlocked {
    before: libc::sigset_t,
}

impl SignalsBlocked {
    fn new() -> Self {
        // SAFETY: the calls write and read the sets that the pointers are to; of zeros
        // only, one is a set of no signals.
        unsafe {
            let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
                (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
            Self { before }
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: the call reads the set that the pointer is to.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, null_mut());
        }
    }
}
