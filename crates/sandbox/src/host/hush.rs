//! Wakes of a set of futures by its own futures while they are polled.
//!
//! A call that reads for others has them woken, and with them the task that is polling all of them
//! at this moment. A runtime takes that for a wish to run once more, and wakes another of its threads
//! for it. The set is polled again right away instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;

/// Nobody polls: wakes are passed on.
const IDLE: u8 = 0;
/// The set is being polled.
const POLLED: u8 = 1;
/// And it has been woken meanwhile.
const WOKEN: u8 = 2;

/// How often the set is polled again without going back to the runtime, which has others to poll,
/// too, and whose resources may wake a future to have it come back later.
const AGAIN: usize = 2;

/// A waker between a set and its task.
#[derive(Debug, Default)]
pub(super) struct Hush {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Hush {
    /// Polls a set.
    pub(super) fn poll<T>(
        self: &Arc<Self>,
        context: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.task.register(context.waker());
        let waker = Waker::from(Arc::clone(self));
        for _ in 0..=AGAIN {
            self.state.store(POLLED, Ordering::SeqCst);
            let polled = poll(&mut Context::from_waker(&waker));
            let was_woken = self.state.swap(IDLE, Ordering::SeqCst) == WOKEN;
            if polled.is_ready() || !was_woken {
                return polled;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for Hush {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let noted = self
            .state
            .compare_exchange(POLLED, WOKEN, Ordering::SeqCst, Ordering::SeqCst);
        if !matches!(noted, Ok(_) | Err(WOKEN)) {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A set that wakes itself in its first polls: how often it is polled, and its task woken.
    fn check(wakes: usize, expected: (usize, usize)) {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let hush = Arc::new(Hush::default());
        let mut polls = 0;
        let polled = hush.poll(&mut Context::from_waker(&waker), |context| {
            polls += 1;
            if polls <= wakes {
                context.waker().wake_by_ref();
                context.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
        assert_eq!(
            (polls, count.0.load(Ordering::Relaxed)),
            expected,
            "{wakes}"
        );
    }

    #[test]
    fn a_set_that_wakes_itself_is_polled_again_and_not_for_ever() {
        check(0, (1, 0));
        check(1, (2, 0));
        check(2, (3, 0));
        check(3, (3, 1));
        check(usize::MAX, (3, 1));
    }

    #[test]
    fn a_wake_from_elsewhere_is_passed_on() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let hush = Arc::new(Hush::default());
        let mut inner = None;
        let polled = hush.poll(&mut Context::from_waker(&waker), |context| {
            inner = Some(context.waker().clone());
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
        inner.expect("it was polled").wake();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }
}
