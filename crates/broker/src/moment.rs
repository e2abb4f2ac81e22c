//! When something was and how long it took, by one reading of a clock for both: reading one
//! takes as long as writing a good part of a ledger's line.

use std::cell::Cell;
use std::ops::Deref;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// A moment, on a clock that nobody sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(
    #[cfg(target_os = "linux")] Duration,
    #[cfg(not(target_os = "linux"))] std::time::Instant,
);

#[cfg(target_os = "linux")]
impl Moment {
    /// Also while the machine sleeps the clock goes on: a person may be asked in the evening
    /// and answer in the morning.
    pub(crate) fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        Self(Duration::new(
            seconds,
            u32::try_from(now.tv_nsec).unwrap_or_default(),
        ))
    }

    /// How long it was before this one.
    pub(crate) fn since(self, Self(earlier): Self) -> Duration {
        self.0.saturating_sub(earlier)
    }
}

#[cfg(test)]
impl Moment {
    /// One that was so long before.
    pub(crate) fn before(self, time: Duration) -> Self {
        Self(self.0 - time)
    }
}

#[cfg(not(target_os = "linux"))]
impl Moment {
    pub(crate) fn now() -> Self {
        Self(std::time::Instant::now())
    }

    /// How long it was before this one.
    pub(crate) fn since(self, Self(earlier): Self) -> Duration {
        self.0.duration_since(earlier)
    }
}

/// A moment of which the time of day is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dated {
    pub(crate) moment: Moment,
    pub(crate) time: Timestamp,
}

impl Dated {
    pub(crate) fn now() -> Self {
        Self {
            moment: Moment::now(),
            time: Timestamp::now(),
        }
    }

    /// The time of day of a later moment, as if nobody had set the clock in between.
    pub(crate) fn time_of(&self, later: Moment) -> Timestamp {
        let passed = SignedDuration::try_from(later.since(self.moment)).unwrap_or_default();
        self.time.checked_add(passed).unwrap_or(self.time)
    }
}

/// RFC 3339, UTC, with milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WallTime {
    text: [u8; Self::LONGEST],
    length: usize,
}

impl WallTime {
    /// What stands before the fraction.
    const SECONDS: usize = "2026-06-01T12:00:00".len();
    pub(crate) const USUAL: usize = Self::SECONDS + ".000Z".len();
    /// Years of more than four digits are longer.
    const LONGEST: usize = "-009999-01-01T00:00:00.000Z".len();

    pub(crate) fn of(time: Timestamp) -> Self {
        thread_local! {
            // That of this thread's last call, since all of a second begin alike.
            static LAST: Cell<(i64, WallTime)> = const {
                Cell::new((i64::MIN, WallTime { text: [0; WallTime::LONGEST], length: 0 }))
            };
        }
        let second = time.as_second();
        let millisecond = time.subsec_millisecond();
        let (last, mut known) = LAST.get();
        if last == second && (0..1_000).contains(&millisecond) {
            let digits = known.text.iter_mut().skip(Self::SECONDS + ".".len());
            for (digit, unit) in digits.zip([100, 10, 1]) {
                *digit = b'0' + u8::try_from(millisecond / unit % 10).unwrap_or_default();
            }
            return known;
        }
        let written = format!("{time:.3}");
        let mut new = Self {
            text: [0; Self::LONGEST],
            length: written.len().min(Self::LONGEST),
        };
        for (to, byte) in new.text.iter_mut().zip(written.bytes()) {
            *to = byte;
        }
        // Before 1970, two seconds have the same number.
        if new.length == Self::USUAL && second > 0 {
            LAST.set((second, new));
        }
        new
    }
}

impl Deref for WallTime {
    type Target = str;

    fn deref(&self) -> &str {
        let text = self.text.get(..self.length).unwrap_or_default();
        str::from_utf8(text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_one_second_are_written_like_any_other() {
        let check = |text: &str, written: &str| {
            let time: Timestamp = text.parse().expect(text);
            assert_eq!(*WallTime::of(time), *written);
        };
        check("2026-06-01T12:00:00Z", "2026-06-01T12:00:00.000Z");
        check("2026-06-01T12:00:00.0019Z", "2026-06-01T12:00:00.001Z");
        check("2026-06-01T12:00:00.999999Z", "2026-06-01T12:00:00.999Z");
        check("2026-06-01T12:00:01.12Z", "2026-06-01T12:00:01.120Z");
        check("2026-06-01T12:00:00.5Z", "2026-06-01T12:00:00.500Z");
        check("1969-12-31T23:59:59.25Z", "1969-12-31T23:59:59.250Z");
        check("1969-12-31T23:59:59.75Z", "1969-12-31T23:59:59.750Z");
        check("1970-01-01T00:00:00.5Z", "1970-01-01T00:00:00.500Z");
        check("1969-12-31T23:59:59.75Z", "1969-12-31T23:59:59.750Z");
        check("-000001-01-01T00:00:00.75Z", "-000001-01-01T00:00:00.750Z");
    }
}
