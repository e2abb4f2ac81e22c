//! More room for the pipes that long messages go through: a pipe of the usual size takes 64 KiB,
//! and then whoever writes and whoever reads wait for each other, again and again.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a pipe has room for unless it is given more, in bytes.
pub(crate) const USUAL_BYTES: usize = 64 << 10;
/// The room that is given.
#[cfg(target_os = "linux")]
const WIDE_BYTES: usize = 256 << 10;
/// How many pipes of this process have more room at one time: 4 MiB. What all pipes of a user's
/// programs may have together is 64 MiB (/proc/sys/fs/pipe-user-pages-soft), and whoever makes one
/// beyond that gets one of two pages.
const MOST: usize = 16;

/// How many there are.
static WIDE: AtomicUsize = AtomicUsize::new(0);

/// The extra room of one pipe, until it is dropped with the pipe.
#[derive(Debug)]
pub(crate) struct Wide;

impl Wide {
    /// Gives a pipe more room. `None` if there is none to give: then what is written takes more
    /// turns.
    pub(crate) fn make(pipe: impl AsFd) -> Option<Self> {
        let more = |wide: usize| (wide < MOST).then_some(wide + 1);
        WIDE.try_update(Ordering::AcqRel, Ordering::Acquire, more)
            .ok()?;
        let wide = Self;
        widen(pipe).then_some(wide)
    }
}

impl Drop for Wide {
    fn drop(&mut self) {
        WIDE.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(target_os = "linux")]
fn widen(pipe: impl AsFd) -> bool {
    rustix::pipe::fcntl_setpipe_size(pipe, WIDE_BYTES).is_ok()
}

/// No other system has a call for it.
#[cfg(not(target_os = "linux"))]
fn widen(_pipe: impl AsFd) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::pipe::fcntl_getpipe_size;

    use super::*;

    #[test]
    fn so_many_pipes_have_more_room_and_others_when_those_are_gone() {
        let pipe = || std::io::pipe().expect("a pipe").1;
        let pipes: Vec<_> = (0..MOST).map(|_| pipe()).collect();
        let wide: Vec<_> = pipes.iter().map(Wide::make).collect();
        assert!(wide.iter().all(Option::is_some));
        let one_more = pipe();
        assert!(Wide::make(&one_more).is_none());
        assert_eq!(fcntl_getpipe_size(&one_more), Ok(USUAL_BYTES));
        drop(wide);
        let now = Wide::make(&one_more);
        assert!(now.is_some());
        assert_eq!(fcntl_getpipe_size(&one_more), Ok(WIDE_BYTES));
    }

    #[test]
    fn what_is_no_pipe_takes_none_of_the_room() {
        let file = tempfile::tempfile().expect("a file");
        for _ in 0..2 * MOST {
            assert!(Wide::make(&file).is_none());
        }
    }
}
