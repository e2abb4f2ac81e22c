//! What a caller says of one call besides its arguments.

use std::time::Duration;

/// What is said of one call. The default says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallOptions {
    /// How long the call may take. Default: the server's own limit, which a
    /// longer one does not lift. Past it the call ends as
    /// [`CallError::Timeout`](crate::CallError::Timeout).
    pub timeout: Option<Duration>,
    /// Where the script calls, for whoever is asked. Default: not known. It
    /// comes from the script's worker: a hint for a person and nothing more.
    pub place: Option<Place>,
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
    /// How long the call may take at a server with this limit.
    pub(crate) fn limit(&self, configured: Duration) -> Duration {
        self.timeout
            .map_or(configured, |asked| asked.min(configured))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_may_shorten_the_limit_and_not_lift_it() {
        let limit = |timeout: Option<u64>| {
            let timeout = timeout.map(Duration::from_millis);
            let options = CallOptions {
                timeout,
                ..CallOptions::default()
            };
            options.limit(Duration::from_millis(100)).as_millis()
        };
        assert_eq!(limit(None), 100);
        assert_eq!(limit(Some(0)), 0);
        assert_eq!(limit(Some(99)), 99);
        assert_eq!(limit(Some(101)), 100);
    }
}
