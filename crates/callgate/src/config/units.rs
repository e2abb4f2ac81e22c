//! Durations and sizes as people write them: `2s`, `128MiB`.

use std::time::Duration;

/// The least memory that a script can have: an isolate does not start with less.
pub const LEAST_MEMORY: u64 = 16 << 20;

/// The longest duration, in seconds.
const MAX_SECONDS: u64 = 100 * 366 * 86_400;

/// Units of time, in nanoseconds.
const TIMES: &[(&str, u128)] = &[
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Units of size, in bytes.
const SIZES: &[(&str, u128)] = &[
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
];

/// Reads a duration such as `500ms`, `2s`, `1.5m` or `1h`.
///
/// # Errors
///
/// [`UnitError`] for another form, zero, and more than a hundred years.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let error = |fault| match fault {
        Fault::Form => {
            let advice = "write a number and ms, s, m or h, such as \"500ms\" or \"2s\"";
            UnitError::new(text, "not a duration", advice)
        }
        Fault::Zero => UnitError::new(text, "an empty duration", MORE),
        Fault::TooLarge => UnitError::new(
            text,
            "too large a duration",
            "the longest is a hundred years",
        ),
    };
    let nanos = scale(text, TIMES).map_err(error)?;
    match u64::try_from(nanos / 1_000_000_000) {
        Ok(seconds) if seconds <= MAX_SECONDS => {
            let rest = u32::try_from(nanos % 1_000_000_000).unwrap_or_default();
            Ok(Duration::new(seconds, rest))
        }
        _ => Err(error(Fault::TooLarge)),
    }
}

/// Reads a number of bytes such as `512B`, `16KiB`, `128MiB`, `1GB` or `1.5GiB`. A part of a
/// byte is dropped.
///
/// # Errors
///
/// [`UnitError`] for another form, less than a byte, and 2^53 bytes or more.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let error = |fault| match fault {
        Fault::Form => {
            let advice = "write a number and B, KB, MB, GB, KiB, MiB or GiB, such as \"16KiB\"";
            UnitError::new(text, "not a size", advice)
        }
        Fault::Zero => UnitError::new(text, "an empty size", MORE),
        Fault::TooLarge => {
            UnitError::new(text, "too large a size", "the largest is below 2^53 bytes")
        }
    };
    match u64::try_from(scale(text, SIZES).map_err(error)?) {
        Ok(bytes) if bytes < 1 << 53 => Ok(bytes),
        _ => Err(error(Fault::TooLarge)),
    }
}

/// Reads a size as [`parse_bytes`] does, for a script's memory.
///
/// # Errors
///
/// [`UnitError`], also for less than [`LEAST_MEMORY`].
pub fn parse_memory(text: &str) -> Result<u64, UnitError> {
    match parse_bytes(text)? {
        bytes if bytes < LEAST_MEMORY => {
            let advice = "a script needs \"16MiB\" at least";
            Err(UnitError::new(text, "too little memory", advice))
        }
        bytes => Ok(bytes),
    }
}

/// A text that is no duration or no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is {fault}; {advice}")]
pub struct UnitError {
    text: String,
    fault: &'static str,
    advice: &'static str,
}

impl UnitError {
    fn new(text: &str, fault: &'static str, advice: &'static str) -> Self {
        let text = text.to_owned();
        Self {
            text,
            fault,
            advice,
        }
    }
}

const MORE: &str = "write one that is more than nothing";

enum Fault {
    Form,
    Zero,
    TooLarge,
}

/// Reads `1.5 MiB`: a decimal number times its unit, rounded down.
fn scale(text: &str, units: &[(&str, u128)]) -> Result<u128, Fault> {
    let text = text.trim();
    let is_unit = |c: char| !c.is_ascii_digit() && c != '.';
    let (number, unit) = text.split_at(text.find(is_unit).unwrap_or(text.len()));
    let unit = unit.trim_start();
    let mut units = units.iter();
    let (_, per_unit) = units
        .find(|(name, _)| unit.eq_ignore_ascii_case(name))
        .ok_or(Fault::Form)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    // Nine digits after the point reach below every unit here.
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 9 || fraction.contains('.') {
        return Err(Fault::Form);
    }
    if whole.len() > 18 {
        return Err(Fault::TooLarge);
    }
    let whole: u128 = whole.parse().map_err(|_| Fault::Form)?;
    let digits: u128 = fraction.parse().map_err(|_| Fault::Form)?;
    let denominator = 10_u128.pow(u32::try_from(fraction.len()).unwrap_or(9));
    match whole * per_unit + digits * per_unit / denominator {
        0 => Err(Fault::Zero),
        scaled => Ok(scaled),
    }
}
