//! Threads for the parser: each with a stack that no text can use up, and so that
//! a panic or a hang in the parser stays there.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// How much stack the parser takes for one byte of text, at the very most: an
/// opening parenthesis takes about 2600 bytes without optimisation.
const STACK_PER_BYTE: usize = 4 * 1024;

/// Stack for everything that does not grow with the text.
const STACK: usize = 64 * 1024 * 1024;

/// How long parsing may take. It takes milliseconds; on some texts, the time
/// the parser takes grows with the square of their length.
const PATIENCE: Duration = Duration::from_secs(5);

/// Parsers that still run although nobody waits for them any more.
static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// How many of those there may be before no text is taken any more, so that
/// hostile ones cannot fill the machine with them.
const MAX_ABANDONED: usize = 2;

/// Why there is no answer. What `Display` says of `Late` and `Panicked` follows
/// the name of what was parsed, such as "the script".
#[derive(Debug)]
pub(crate) enum Lost {
    /// Too many parsers run that nobody waits for any more.
    Busy,
    NotStarted(std::io::Error),
    Late,
    Panicked,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => {
                f.write_str("earlier scripts are still being parsed; try again in a minute")
            }
            Self::NotStarted(error) => write!(f, "the parser cannot be started: {error}"),
            Self::Late => write!(
                f,
                "takes longer than {} s to parse; write it in simpler pieces",
                PATIENCE.as_secs()
            ),
            Self::Panicked => f.write_str("makes the parser fail; write it in simpler pieces"),
        }
    }
}

/// What `work` makes of a text, on a thread of this name.
pub(crate) fn run<T: Send + 'static>(
    name: &str,
    text: String,
    work: impl FnOnce(&str) -> T + Send + 'static,
) -> Result<T, Lost> {
    counted(&ABANDONED, PATIENCE, name, text, work)
}

fn counted<T: Send + 'static>(
    abandoned: &'static AtomicUsize,
    patience: Duration,
    name: &str,
    text: String,
    work: impl FnOnce(&str) -> T + Send + 'static,
) -> Result<T, Lost> {
    if abandoned.load(Ordering::Relaxed) >= MAX_ABANDONED {
        return Err(Lost::Busy);
    }
    let (send, receive) = sync_channel(1);
    let one_left = Arc::new(AtomicBool::new(false));
    let thread = Thread {
        one_left: Arc::clone(&one_left),
        abandoned,
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK + STACK_PER_BYTE * text.len())
        .spawn(move || {
            let _thread = thread;
            // Where nobody waits any more, nobody misses it.
            let _ = send.send(work(&text));
        })
        .map_err(Lost::NotStarted)?;
    receive.recv_timeout(patience).map_err(|error| match error {
        RecvTimeoutError::Disconnected => Lost::Panicked,
        RecvTimeoutError::Timeout => {
            abandoned.fetch_add(1, Ordering::Relaxed);
            leave(&one_left, abandoned);
            Lost::Late
        }
    })
}

/// The thread's side: it leaves when its work ends, with a panic too.
struct Thread {
    /// Whether the thread ended, or nobody waits for it any more.
    one_left: Arc<AtomicBool>,
    abandoned: &'static AtomicUsize,
}

impl Drop for Thread {
    fn drop(&mut self) {
        leave(&self.one_left, self.abandoned);
    }
}

/// Whoever leaves second, the thread or who waited in vain, counts it no longer.
fn leave(one_left: &AtomicBool, abandoned: &AtomicUsize) {
    if one_left.swap(true, Ordering::AcqRel) {
        abandoned.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_that_nobody_waits_for_is_counted_no_longer() {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let (end, ended) = sync_channel::<()>(0);
        let lost = counted(&COUNT, Duration::ZERO, "test", String::new(), move |_| {
            ended.recv().unwrap();
            panic!("as a parser does");
        });
        assert!(matches!(lost, Err::<(), _>(Lost::Late)), "{lost:?}");
        assert_eq!(COUNT.load(Ordering::Relaxed), 1);
        end.send(()).unwrap();
        while COUNT.load(Ordering::Relaxed) != 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn none_is_started_beside_many_abandoned() {
        static COUNT: AtomicUsize = AtomicUsize::new(MAX_ABANDONED);
        let lost = counted(&COUNT, PATIENCE, "test", String::new(), str::len);
        assert!(matches!(lost, Err(Lost::Busy)), "{lost:?}");
    }
}
