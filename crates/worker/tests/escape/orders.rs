//! The orders of a worker that runs native code.
//!
//! The code of a "script" is an order, as words: `call NUMBER ARGUMENT...` makes one system call and
//! answers with its return value; the other orders are attacks of several steps.

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
        ["and-stop", attack] => {
            match *attack {
                "every-flag" => take_by_every_flag(),
                "tables" => take_tables(),
                "once-writable" => take_once_writable(),
                _ => take_threads(),
            }
            // SAFETY: a system call with a number; the host looks at this process, and ends it.
            unsafe { libc::raise(libc::SIGSTOP) };
            String::new()
        }
        other => panic!("no such order: {other:?}"),
    }
}

fn parse(word: &str) -> i64 {
    word.parse().expect("a number")
}

/// Zeroed memory that calls may write to.
#[repr(align(64))]
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
    // SAFETY: the calls write only to `MEMORY`; their other effects are the subject of the test.
    let returned = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if returned < 0 {
        i64::from(-std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    } else {
        0.max(returned.min(1))
    }
}

/// Tries to continue after a refused call with its own handler.
fn survive_sigsys() -> String {
    extern "C" fn go_on(_: libc::c_int) {}
    // SAFETY: the handler does nothing.
    let set = unsafe { libc::signal(libc::SIGSYS, go_on as *const () as libc::sighandler_t) };
    assert_eq!(set, libc::SIG_ERR, "the handler is the jail's");
    call(libc::SYS_socket, &["n2", "n1", "n0"]).to_string()
}

/// Tries to continue after a refused call by blocking the signal.
fn block_sigsys() -> String {
    // SAFETY: zeros are an empty set of signals, which lives through the calls.
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut signals, libc::SIGSYS);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut());
    }
    call(libc::SYS_socket, &["n2", "n1", "n0"]).to_string()
}

/// Makes a system call through the 32-bit gate, which has different numbers: 20 is `getpid`.
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

/// Takes private memory until there is no more; returns the number of MiB.
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

/// A new private mapping, if there is memory for it.
fn map(bytes: usize, rights: libc::c_int, flags: libc::c_int) -> Option<*mut u8> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let mapped = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0) };
    (mapped != libc::MAP_FAILED).then_some(mapped.cast())
}

const PAGE: usize = 4 << 10;
const WRITABLE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

fn write_all(memory: *mut u8, bytes: usize) {
    for at in (0..bytes).step_by(PAGE) {
        // SAFETY: within the mapping, which is writable.
        unsafe { memory.byte_add(at).write_volatile(1) };
    }
}

/// Takes a GiB under each flag of `mmap`.
fn take_by_every_flag() {
    for flag in (0..31).map(|bit| 1 << bit) {
        // Not at address 0, and no pages that the kernel would fill at once, or waits for.
        if [
            libc::MAP_FIXED,
            libc::MAP_FIXED_NOREPLACE,
            libc::MAP_POPULATE,
        ]
        .contains(&flag)
        {
            continue;
        }
        let bytes = 1 << 30;
        if let Some(memory) = map(bytes, WRITABLE, flag) {
            write_all(memory, bytes);
        }
    }
}

/// Reads a byte of each 2 MiB of the largest possible mappings: the kernel makes a page table for each.
fn take_tables() {
    for bits in (24..=44).rev() {
        while let Some(memory) = map(1 << bits, libc::PROT_READ, libc::MAP_NORESERVE) {
            for at in (0..1 << bits).step_by(2 << 20) {
                // SAFETY: within the mapping, which is readable.
                unsafe { memory.byte_add(at).read_volatile() };
            }
        }
    }
}

/// Takes writable memory, which is counted, and makes it read-only, so that it is not.
fn take_once_writable() {
    const BYTES: usize = 16 << 20;
    while let Some(memory) = map(BYTES, WRITABLE, 0) {
        write_all(memory, BYTES);
        // SAFETY: the mapping is no longer used.
        unsafe { libc::mprotect(memory.cast(), BYTES, libc::PROT_NONE) };
    }
}

/// Makes threads until there are no more.
fn take_threads() {
    let make = || {
        std::thread::Builder::new().spawn(|| {
            loop {
                std::thread::park()
            }
        })
    };
    while make().is_ok() {}
}
