//! What a caller says of one call besides its arguments.

use std::time::Duration;

use crate::patience::Patience;

/// What is said of one call. The default says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallOptions {
    /// How long the call may take, whatever the server reports of it. Default:
    /// the server's own limits, which a longer one does not lift. Past it the
    /// call ends as
    /// [`CallError::Timeout`](crate::CallError::Timeout).
    pub timeout: Option<Duration>,
    /// How much of `timeout` is over before the call: its server had to be connected to.
    pub waited: Duration,
    /// Where the script calls, for whoever is asked. Default: not known. It
    /// comes from the script's worker: a hint for a person and nothing more.
    pub place: Option<Place>,
    /// Whether the result is what the server answered, whole, where it is one
    /// (`isError` is); reviewers see it so, too. Default: what
    /// [`Run::call`](crate::Run::call) says is made of it.
    pub whole: bool,
}

/// A place in the text of a script's author. Nothing says that the text has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Counts from 1.
    pub line: u32,
    /// Counts from 1, in UTF-16 units.
    pub column: u32,
}

/// The time of one call, however often it is decided about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallTime {
    /// What it may take, by the server's configuration and by what is said of the call.
    patience: Patience,
    /// The longest it may take, as whoever set that knows it.
    limit: Duration,
    /// What earlier decisions about it took, and what became of them.
    spent: Duration,
}

impl CallOptions {
    /// The time of the call at a server with this patience.
    pub(crate) fn time(&self, configured: Patience) -> CallTime {
        let left = |asked: Duration| asked.saturating_sub(self.waited);
        let (most, limit) = match self.timeout {
            Some(asked) if left(asked) <= configured.most => (left(asked), asked),
            _ => (configured.most, configured.most),
        };
        CallTime {
            patience: Patience { most, ..configured },
            limit,
            spent: Duration::ZERO,
        }
    }
}

impl CallTime {
    /// How long the call may still take.
    pub(crate) fn left(&self) -> Patience {
        Patience {
            idle: self.patience.idle,
            most: self.patience.most.saturating_sub(self.spent),
        }
    }

    /// The longest the call may take in all.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// A limit that the call came up against in what was left, as whoever set it knows it.
    pub(crate) fn whole(&self, limit: Duration) -> Duration {
        match limit == self.left().most {
            true => self.limit,
            false => limit,
        }
    }

    /// So much more of it is over.
    pub(crate) fn spend(&mut self, time: Duration) {
        self.spent = self.spent.saturating_add(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_may_shorten_the_limit_and_not_lift_it() {
        let limits = |timeout: Option<u64>| {
            let options = CallOptions {
                timeout: timeout.map(Duration::from_millis),
                ..CallOptions::default()
            };
            let time = options.time(Patience {
                idle: Duration::from_millis(50),
                most: Duration::from_millis(100),
            });
            let Patience { idle, most } = time.left();
            (idle.as_millis(), most.as_millis())
        };
        assert_eq!(limits(None), (50, 100));
        assert_eq!(limits(Some(0)), (50, 0));
        assert_eq!(limits(Some(99)), (50, 99));
        assert_eq!(limits(Some(101)), (50, 100));
    }

    #[test]
    fn what_is_over_before_the_call_counts() {
        let check = |timeout: Option<u64>, waited: u64, most: u64, whole: u64| {
            let options = CallOptions {
                timeout: timeout.map(Duration::from_millis),
                waited: Duration::from_millis(waited),
                ..CallOptions::default()
            };
            let time = options.time(Patience::exactly(Duration::from_millis(100)));
            let limit = time.left().most;
            let said = (limit.as_millis(), time.whole(limit).as_millis());
            assert_eq!(
                said,
                (u128::from(most), u128::from(whole)),
                "{timeout:?} {waited}"
            );
        };
        check(Some(80), 30, 50, 80);
        check(Some(80), 90, 0, 80);
        check(Some(200), 30, 100, 100);
        check(None, 30, 100, 100);
    }

    #[test]
    fn a_call_that_is_decided_about_anew_has_what_is_left_of_its_time() {
        let check = |timeout: Option<u64>, left: [u64; 3], whole: u64| {
            let millis = Duration::from_millis;
            let options = CallOptions {
                timeout: timeout.map(millis),
                waited: millis(10),
                ..CallOptions::default()
            };
            let idle = millis(7);
            let mut time = options.time(Patience {
                idle,
                most: millis(100),
            });
            for left in left {
                let most = millis(left);
                assert_eq!(time.left(), Patience { idle, most }, "{timeout:?}");
                assert_eq!(time.whole(most), millis(whole));
                assert_eq!(time.whole(idle), idle);
                time.spend(millis(60));
            }
            assert_eq!(time.limit(), millis(whole));
        };
        check(Some(80), [70, 10, 0], 80);
        check(Some(200), [100, 40, 0], 100);
        check(None, [100, 40, 0], 100);
    }
}
