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
                .timeout
                .map_or(configured.most, |asked| asked.min(configured.most)),
        }
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
}
