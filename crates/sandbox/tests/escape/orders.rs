//! The orders of a worker that runs native code.
//!
//! The code of a "script" is an order, as words: `call NUMBER ARGUMENT...` makes one system call and
//! answers with what it returned; the other orders are attacks of several steps.

use std::cell::UnsafeCell;
use std::ffi::CString;

pub(crate) fn obey(order: &str) -> String {
    let words: Vec<&str> = order.split(' ').collect();
    match words.as_slice() {
        ["call", number, arguments @ ..] => call(parse(number), arguments).to_string(),
        ["survive-sigsys"] => survive_sigsys(),
        ["block-sigsys"] => block_sigsys(),
        ["call-of-i386"] => call_of_i386(),
        ["read-memory", pid, address] => read_memory(parse(pid), parse(address)).to_string(),
        ["take-memory"] => take_memory().to_string(),
        ["thread"] => {
            let thread = std::thread::spawn(|| call(libc::SYS_getpid, &[]));
            (thread.join().expect("a thread that works") > 0).to_string()
        }
        other => panic!("no such order: {other:?}"),
    }
}

fn parse(word: &str) -> i64 {
    word.parse().expect("a number")
}

/// Zeroed memory that calls may write to.
struct Memory(UnsafeCell<[u8; 8192]>);

// SAFETY: one thread uses it.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; 8192]));

/// Arguments are `n` and a number, `m` and an offset in the memory, or `t` and a text.
fn call(number: i64, arguments: &[&str]) -> i64 {
    let mut texts = Vec::new();
    let mut values = [0_i64; 6];
    for (value, argument) in values.iter_mut().zip(arguments) {
        let (kind, rest) = argument.split_at(1);
        *value = match kind {
            "n" => parse(rest),
            "m" => MEMORY.0.get().addr() as i64 + parse(rest),
            _ => {
                let text = CString::new(rest).expect("no zero in it");
                let address = text.as_ptr().addr() as i64;
                texts.push(text);
                address
            }
        };
    }
    let [a, b, c, d, e, f] = values;
    // SAFETY: none of the calls writes to memory but `MEMORY`; what else they do is what is tested.
    let returned = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if returned < 0 {
        i64::from(-std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    } else {
        0.max(returned.min(1))
    }
}

/// Tries to go on after a refused call by a handler of its own.
fn survive_sigsys() -> String {
    extern "C" fn go_on(_: libc::c_int) {}
    // SAFETY: the handler does nothing.
    let set = unsafe { libc::signal(libc::SIGSYS, go_on as *const () as libc::sighandler_t) };
    assert_eq!(set, libc::SIG_ERR, "the handler is the jail's");
    call(libc::SYS_socket, &["n2", "n1", "n0"]).to_string()
}

/// Tries to go on after a refused call by blocking the signal.
fn block_sigsys() -> String {
    // SAFETY: zeros are an empty set of signals, which lives through the calls.
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut signals, libc::SIGSYS);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut());
    }
    call(libc::SYS_socket, &["n2", "n1", "n0"]).to_string()
}

/// Makes a system call by the 32-bit gate, where other numbers hold: 20 is `getpid`.
#[cfg(target_arch = "x86_64")]
fn call_of_i386() -> String {
    let returned: i64;
    // SAFETY: `getpid` of the 32-bit ABI touches no memory; the gate may clobber r8 to r11.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("rax") 20_i64 => returned,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    returned.to_string()
}

#[cfg(not(target_arch = "x86_64"))]
fn call_of_i386() -> String {
    // SAFETY: it ends the process, as a refused call does.
    unsafe { libc::raise(libc::SIGSYS) };
    String::new()
}

/// Reads a byte of another process, by `process_vm_readv`.
fn read_memory(pid: i64, address: i64) -> i64 {
    let mut byte = 0_u8;
    let local = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(address as usize),
        iov_len: 1,
    };
    // SAFETY: writes at most one byte to one live byte.
    unsafe { libc::process_vm_readv(pid as libc::pid_t, &local, 1, &remote, 1, 0) as i64 }
}

/// Takes private memory until there is no more; says how many MiB that were.
fn take_memory() -> usize {
    const MIB: usize = 1 << 20;
    // SAFETY: new mappings at addresses of the kernel's choice.
    (0..16 << 10)
        .take_while(|_| unsafe {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), MIB, rights, flags, -1, 0) != libc::MAP_FAILED
        })
        .count()
}
