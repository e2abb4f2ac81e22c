//! Durations and sizes as people write them: `2s`, `128MiB`.

use std::time::Duration;

/// Reads a duration such as `500ms`, `2s`, `1.5m` or `1h`.
///
/// # Errors
///
/// [`UnitError`] if the text has another form, is zero, or is more than a
/// hundred years.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let error = |reason| UnitError {
        text: text.to_owned(),
        what: "duration",
        reason,
    };
    let (number, unit) = split(text);
    let nanos_per_unit: u128 = match unit.to_ascii_lowercase().as_str() {
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(error(Reason::Form)),
    };
    let nanos = scale(number, nanos_per_unit).map_err(error)?;
    match u64::try_from(nanos / 1_000_000_000) {
        Ok(seconds) if seconds <= 100 * 366 * 86_400 => {
            let rest = u32::try_from(nanos % 1_000_000_000).unwrap_or_default();
            Ok(Duration::new(seconds, rest))
        }
        _ => Err(error(Reason::TooLarge)),
    }
}

/// Reads a number of bytes such as `512B`, `16KiB`, `128MiB`, `1GB` or
/// `1.5GiB`. `KB`, `MB` and `GB` are powers of 1000; `KiB`, `MiB` and `GiB`
/// are powers of 1024. A part of a byte is dropped.
///
/// # Errors
///
/// [`UnitError`] if the text has another form, is less than a byte, or is
/// 2^53 bytes or more.
pub fn parse_bytes(text: &str) -> Result<u64, UnitError> {
    let error = |reason| UnitError {
        text: text.to_owned(),
        what: "size",
        reason,
    };
    let (number, unit) = split(text);
    let bytes_per_unit: u128 = match unit.to_ascii_lowercase().as_str() {
        "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err(error(Reason::Form)),
    };
    match u64::try_from(scale(number, bytes_per_unit).map_err(error)?) {
        Ok(bytes) if bytes < 1 << 53 => Ok(bytes),
        _ => Err(error(Reason::TooLarge)),
    }
}

/// The least memory that a script can have: an isolate does not start with less.
pub const LEAST_MEMORY: u64 = 16 << 20;

/// Reads a size as [`parse_bytes`] does, for a script's memory.
///
/// # Errors
///
/// [`UnitError`] besides if it is less than [`LEAST_MEMORY`].
pub fn parse_memory(text: &str) -> Result<u64, UnitError> {
    match parse_bytes(text)? {
        bytes if bytes < LEAST_MEMORY => Err(UnitError {
            text: text.to_owned(),
            what: "memory",
            reason: Reason::TooSmall,
        }),
        bytes => Ok(bytes),
    }
}

/// A text that is no duration or no size. Its `Display` says what is accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is {} {}; {}", self.reason.text(), self.what, self.forms())]
pub struct UnitError {
    text: String,
    what: &'static str,
    reason: Reason,
}

impl UnitError {
    fn forms(&self) -> &'static str {
        match (self.what, self.reason) {
            (_, Reason::Zero) => "write one that is more than nothing",
            (_, Reason::TooSmall) => "a script needs \"16MiB\" at least",
            ("duration", Reason::Form) => {
                "write a number and ms, s, m or h, such as \"500ms\" or \"2s\""
            }
            (_, Reason::Form) => {
                "write a number and B, KB, MB, GB, KiB, MiB or GiB, such as \"16KiB\""
            }
            ("duration", Reason::TooLarge) => "the longest is a hundred years",
            (_, Reason::TooLarge) => "the largest is below 2^53 bytes",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Form,
    Zero,
    TooSmall,
    TooLarge,
}

impl Reason {
    fn text(self) -> &'static str {
        match self {
            Self::Form => "not a",
            Self::Zero => "an empty",
            Self::TooSmall => "too little",
            Self::TooLarge => "too large a",
        }
    }
}

/// Splits `1.5 MiB` into number and unit.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let at = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    (number, unit.trim_start())
}

/// A decimal number times the size of its unit, rounded down.
fn scale(number: &str, per_unit: u128) -> Result<u128, Reason> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    // Nine digits after the point reach below every unit here.
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 9 || fraction.contains('.') {
        return Err(Reason::Form);
    }
    if whole.len() > 18 {
        return Err(Reason::TooLarge);
    }
    let whole: u128 = whole.parse().map_err(|_| Reason::Form)?;
    let digits: u128 = fraction.parse().map_err(|_| Reason::Form)?;
    let denominator = 10_u128.pow(u32::try_from(fraction.len()).unwrap_or(9));
    match whole * per_unit + digits * per_unit / denominator {
        0 => Err(Reason::Zero),
        scaled => Ok(scaled),
    }
}
