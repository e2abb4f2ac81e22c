//! The end of a run: reported by its worker, or derived from how the worker's process ended.

use crate::wire::{Done, ReturnValue, ScriptException};
use callgate_process::MachineLimit;
use parking_lot::Mutex;
use serde_json::value::RawValue;

use super::worker_process::Death;
use crate::ended::{End, Returned, WhichLimit};
use crate::job::Limits;
use crate::wire::REFUSED_CALL;

/// Bytes of an exception's name. An honest worker cuts it sooner.
const EXCEPTION_NAME_BYTES: usize = 1 << 10;

/// Bytes of an exception's message, and of its stack. An honest worker cuts both sooner.
const EXCEPTION_TEXT_BYTES: usize = 64 << 10;

/// Entries that V8 can hold in one array, and about as many in a table. A script that makes a larger
/// one at once, such as with `split`, ends its process.
const ENTRIES: u64 = 1 << 27;

/// Bytes of memory for V8 and the worker, besides the parts that have a limit of their own.
const OTHER_MEMORY: u64 = 256 << 20;

/// Bytes of memory that the whole process of a worker may take: twice the heap, for collections that
/// copy; the buffers; one whole result; and [`OTHER_MEMORY`].
pub(super) fn data_bytes(limits: &Limits) -> u64 {
    let heap = limits.heap_bytes.saturating_mul(2);
    let with_buffers = heap.saturating_add(limits.buffer_bytes);
    with_buffers
        .saturating_add(limits.reply_bytes)
        .saturating_add(OTHER_MEMORY)
}

/// The end that the worker reports, checked.
pub(super) fn reported(done: Done, limits: &Limits) -> End {
    match done {
        Done::Returned(value) => match returned(value, limits) {
            Ok(value) => End::Returned(value),
            Err(fault) => End::Crashed {
                reason: format!("the worker breaks the protocol: its result {fault}"),
            },
        },
        Done::Threw(exception) => End::Threw(ScriptException {
            name: cut(exception.name, EXCEPTION_NAME_BYTES),
            message: cut(exception.message, EXCEPTION_TEXT_BYTES),
            stack: cut(exception.stack, EXCEPTION_TEXT_BYTES),
            ..exception
        }),
        Done::NeverSettled => End::NeverSettled,
        Done::Terminated => End::Crashed {
            reason: "the worker stopped the script without a request of the host".to_owned(),
        },
    }
}

/// The returned value within its limits, or the fault of a worker that breaks the protocol.
fn returned(value: ReturnValue, limits: &Limits) -> Result<Returned, &'static str> {
    const TOO_LONG: &str = "is over the limit";
    let to_usize = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let shown = to_usize(limits.result_bytes);
    let max = shown.max(to_usize(limits.whole_bytes));
    match value {
        ReturnValue::Undefined => Ok(Returned::Undefined),
        ReturnValue::Json(text) | ReturnValue::Shown(text) if text.len() > max => Err(TOO_LONG),
        ReturnValue::Json(text) | ReturnValue::Shown(text) if text.len() > shown => {
            Ok(cut_in_middle(text, shown))
        }
        ReturnValue::Json(json) => match RawValue::from_string(json) {
            Ok(json) => Ok(Returned::Json(json)),
            Err(_) => Err("is not JSON"),
        },
        ReturnValue::Shown(text) => Ok(Returned::Shown(text)),
        ReturnValue::Cut { head, tail, .. } if head.len().saturating_add(tail.len()) > max => {
            Err(TOO_LONG)
        }
        ReturnValue::Cut {
            head,
            tail,
            total_bytes,
        } => {
            // The value was over the larger of the two limits, and is shown within the smaller.
            let from = tail.len().saturating_sub(shown - shown / 2);
            let end = tail.get(tail.ceil_char_boundary(from)..);
            let start = head.get(..head.floor_char_boundary(shown / 2));
            Ok(Returned::Cut {
                head: start.unwrap_or_default().to_owned(),
                tail: end.unwrap_or_default().to_owned(),
                total_bytes,
                whole: None,
            })
        }
    }
}

/// Cuts a value that is longer than the part that is shown.
fn cut_in_middle(text: String, shown: usize) -> Returned {
    let head = text.floor_char_boundary(shown / 2);
    let tail = text.ceil_char_boundary(text.len().saturating_sub(shown - shown / 2));
    Returned::Cut {
        head: text.get(..head).unwrap_or_default().to_owned(),
        tail: text.get(tail..).unwrap_or_default().to_owned(),
        total_bytes: text.len() as u64,
        whole: Some(text),
    }
}

/// The first part of the text, with a mark if some is missing.
fn cut(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
        text.push('\u{2026}');
    }
    text
}

/// The reasons why a run lost its worker.
#[derive(Debug)]
pub(super) enum Lost {
    /// The worker closed the socket.
    Gone,
    /// The worker sent nothing in its time.
    Late,
    /// The worker broke the protocol in this way.
    Violation(String),
}

impl Lost {
    /// The end of a run that lost its worker.
    pub(super) fn end(self, death: &Death, limits: &Limits) -> End {
        match self {
            Self::Gone | Self::Late => crashed(death, limits),
            Self::Violation(reason) => End::Crashed {
                reason: format!("the worker breaks the protocol: {reason}"),
            },
        }
    }

    /// The message for a worker that was lost before it was ready.
    pub(super) fn before_ready(self, death: &Death) -> String {
        match self {
            Self::Gone => {
                let died = with_stderr(died(death), death);
                match limit_of(death) {
                    Some(limit) => format!("{limit}: {died}"),
                    None => died,
                }
            }
            Self::Late => with_stderr(
                "the worker was not ready in time; the machine may be overloaded, or the program \
                 does not call worker_main_if_requested first in its main"
                    .to_owned(),
                death,
            ),
            Self::Violation(reason) => format!("the worker breaks the protocol: {reason}"),
        }
    }
}

/// The limit of the machine that ended a worker before it was ready, if it was one.
fn limit_of(death: &Death) -> Option<MachineLimit> {
    let stderr = death.stderr.to_lowercase();
    if ["out of memory", "memory allocation of", "reservation"]
        .iter()
        .any(|words| stderr.contains(words))
    {
        return Some(MachineLimit::Memory);
    }
    // V8 and the worker end without a message about it if they get no thread.
    let is_silent = death.signal() == Some(libc::SIGABRT) || stderr.is_empty();
    (is_silent && death.status.is_none_or(|status| !status.success()) && !has_threads())
        .then_some(MachineLimit::Processes)
}

/// True if the machine has room for the threads of a worker.
fn has_threads() -> bool {
    const THREADS: usize = 8;
    let held = &Mutex::new(());
    std::thread::scope(|scope| {
        let _held = held.lock();
        (0..THREADS).all(|_| {
            let thread = std::thread::Builder::new();
            thread
                .spawn_scoped(scope, move || drop(held.lock()))
                .is_ok()
        })
    })
}

/// True if the worker ended because it got no more memory, by the message of Rust. A worker that
/// lies here ends its run at a limit instead of as crashed, and gains nothing.
pub(super) fn out_of_memory(death: &Death) -> bool {
    death.signal() == Some(libc::SIGABRT) && death.stderr.starts_with("memory allocation of ")
}

/// The number of entries that the worker needed, if it ended because V8 cannot hold as many.
/// V8 reports that on standard error only.
fn too_many_entries(death: &Death) -> Option<u64> {
    death.signal()?;
    let mut lines = death.stderr.lines();
    let message = lines.find_map(|line| {
        line.trim_start_matches(['#', ' '])
            .strip_prefix("Fatal JavaScript invalid ")
    })?;
    let mut numbers = message.split(' ').filter_map(|word| word.parse().ok());
    Some(numbers.next().unwrap_or(ENTRIES).max(ENTRIES))
}

/// The end of a run whose worker died without reporting an end.
fn crashed(death: &Death, limits: &Limits) -> End {
    if out_of_memory(death) {
        return End::Limit {
            which: WhichLimit::Memory,
            limit: limits.heap_bytes,
            observed: data_bytes(limits),
        };
    }
    if let Some(entries) = too_many_entries(death) {
        return End::Limit {
            which: WhichLimit::Entries,
            limit: ENTRIES,
            observed: entries,
        };
    }
    if death.signal() == Some(libc::SIGSYS) {
        return End::SystemCall {
            name: refused_call(&death.stderr),
        };
    }
    End::Crashed {
        reason: with_stderr(died(death), death),
    }
}

fn died(death: &Death) -> String {
    match (death.signal(), death.code()) {
        (Some(libc::SIGSYS), _) => match refused_call(&death.stderr) {
            Some(name) => format!("the worker tried the system call {name}, which it may not make"),
            None => "the worker tried a system call that it may not make".to_owned(),
        },
        (Some(signal), _) => format!("the worker died of signal {signal}"),
        (None, Some(code)) => format!("the worker ended with code {code} before the script did"),
        (None, None) => "the worker closed its socket before the script ended".to_owned(),
    }
}

/// The name of the system call that a worker was killed for, or its number if it has no name.
fn refused_call(stderr: &str) -> Option<String> {
    let number = stderr
        .lines()
        .find_map(|line| line.strip_prefix(REFUSED_CALL)?.trim().parse::<u32>().ok())?;
    #[cfg(target_os = "linux")]
    if let Some(call) = syscalls::Sysno::new(usize::try_from(number).ok()?) {
        return Some(call.name().to_owned());
    }
    Some(number.to_string())
}

/// The reason, with the first informative line of standard error. Lines with a path are left out:
/// the path is of the machine that V8 or the worker was built on.
fn with_stderr(mut reason: String, death: &Death) -> String {
    let lines = death.stderr.lines();
    let mut lines = lines
        .map(|line| line.trim_matches(['#', ' ']))
        .filter(|line| !line.is_empty() && !line.ends_with(':') && !line.contains('/'));
    if let Some(line) = lines.next() {
        reason.push_str(": ");
        reason.extend(line.chars().take(200));
    }
    reason
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn check(status: i32, stderr: &str, expected: &str) {
        let death = Death {
            status: Some(ExitStatus::from_raw(status)),
            stderr: stderr.to_owned(),
        };
        assert_eq!(
            format!("{:?}", crashed(&death, &Limits::default())),
            expected
        );
    }

    #[test]
    fn memory_limit_before_the_start_is_named() {
        for (signal, stderr) in [
            (
                libc::SIGTRAP,
                "\n#\n# Fatal process out of memory: Oilpan: CagedHeap reservation.\n#\n",
            ),
            (libc::SIGABRT, "memory allocation of 4096 bytes failed"),
            (
                libc::SIGTRAP,
                "# Fatal process out of memory: SegmentedTable",
            ),
        ] {
            let death = Death {
                status: Some(ExitStatus::from_raw(signal)),
                stderr: stderr.to_owned(),
            };
            let reason = Lost::Gone.before_ready(&death);
            assert!(reason.contains("memory is reached; raise it"), "{reason}");
        }
    }

    #[test]
    fn worker_death_reason_is_reported() {
        check(
            libc::SIGABRT,
            "memory allocation of 100000000 bytes failed",
            "Limit { which: Memory, limit: 134217728, observed: 939524096 }",
        );
        check(
            libc::SIGABRT,
            "\n#\n# Fatal error in ../../v8/x.cc, line 7\n# Check failed: x.\n#\n",
            r#"Crashed { reason: "the worker died of signal 6: Check failed: x." }"#,
        );
        let entries =
            "#\n# Fatal error with no security impact:\n# Fatal JavaScript invalid size error";
        check(
            libc::SIGTRAP,
            &format!("{entries} 536870882 (see x)\n#\n"),
            "Limit { which: Entries, limit: 134217728, observed: 536870882 }",
        );
        check(
            libc::SIGTRAP,
            &format!("{entries} when adding element"),
            "Limit { which: Entries, limit: 134217728, observed: 134217728 }",
        );
        check(
            libc::SIGKILL,
            "memory allocation of",
            r#"Crashed { reason: "the worker closed its socket before the script ended: memory allocation of" }"#,
        );
        check(
            3 << 8,
            "",
            r#"Crashed { reason: "the worker ended with code 3 before the script did" }"#,
        );
    }
}
