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

impl CallOptions {
    /// How long the call may take at a server with this patience.
    pub(crate) fn patience(&self, configured: Patience) -> Patience {
        Patience {
            idle: configured.idle,
            most: self
                .left()
                .map_or(configured.most, |left| left.min(configured.most)),
        }
    }

    /// A limit that a call came up against, as whoever set it knows it.
    pub(crate) fn whole(&self, limit: Duration) -> Duration {
        match self.timeout {
            Some(asked) if self.left() == Some(limit) => asked,
            _ => limit,
        }
    }

    fn left(&self) -> Option<Duration> {
        let left = |asked: Duration| asked.saturating_sub(self.waited);
        self.timeout.map(left)
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
            let Patience { idle, most } = options.patience(Patience {
                idle: Duration::from_millis(50),
                most: Duration::from_millis(100),
            });
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
            let limit = options
                .patience(Patience::exactly(Duration::from_millis(100)))
                .most;
            let said = (limit.as_millis(), options.whole(limit).as_millis());
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
}
