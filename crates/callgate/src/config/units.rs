//! Durations and sizes as people write them: `2s`, `128MiB`.

use std::time::Duration;

/// The least memory that a script can have: an isolate does not start with less.
pub const LEAST_MEMORY: u64 = 16 << 20;

/// A kind of quantity, as it is written.
struct Quantity {
    name: &'static str,
    /// Units, each with its size.
    units: &'static [(&'static str, u128)],
    form: &'static str,
    most: u128,
    largest: &'static str,
}

/// In nanoseconds.
const DURATION: Quantity = Quantity {
    name: "duration",
    units: &[
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    form: "write a number and ms, s, m or h, such as \"500ms\" or \"2s\"",
    most: 100 * 366 * 86_400 * 1_000_000_000,
    largest: "the longest is a hundred years",
};

/// In bytes.
const SIZE: Quantity = Quantity {
    name: "size",
    units: &[
        ("b", 1),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
    ],
    form: "write a number and B, KB, MB, GB, KiB, MiB or GiB, such as \"16KiB\"",
    most: (1 << 53) - 1,
    largest: "the largest is below 2^53 bytes",
};

/// Reads a duration such as `500ms`, `2s`, `1.5m` or `1h`.
///
/// # Errors
///
/// A text about it, for another form, zero, and more than a hundred years.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    DURATION.read(text).map(Duration::from_nanos_u128)
}

/// Reads a number of bytes such as `512B`, `16KiB`, `128MiB`, `1GB` or `1.5GiB`. A part of a
/// byte is dropped.
///
/// # Errors
///
/// A text about it, for another form, less than a byte, and 2^53 bytes or more.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let bytes = SIZE.read(text)?;
    Ok(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// Reads a size as [`parse_bytes`] does, for a script's memory.
///
/// # Errors
///
/// A text about it, also for less than [`LEAST_MEMORY`].
pub fn parse_memory(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes if bytes < LEAST_MEMORY => {
            let (fault, advice) = ("too little memory", "a script needs \"16MiB\" at least");
            Err(format!("{text:?} is {fault}; {advice}"))
        }
        bytes => Ok(bytes),
    }
}

impl Quantity {
    /// Reads `1.5 MiB`, rounded down.
    fn read(&self, text: &str) -> Result<u128, String> {
        let name = self.name;
        let (fault, advice) = match self.scale(text.trim()) {
            None => (format!("not a {name}"), self.form),
            Some(0) => (
                format!("an empty {name}"),
                "write one that is more than nothing",
            ),
            Some(scaled) if scaled > self.most => (format!("too large a {name}"), self.largest),
            Some(scaled) => return Ok(scaled),
        };
        Err(format!("{text:?} is {fault}; {advice}"))
    }

    /// A decimal number times its unit; `None` for another form.
    fn scale(&self, text: &str) -> Option<u128> {
        let is_unit = |c: char| !c.is_ascii_digit() && c != '.';
        let (number, unit) = text.split_at(text.find(is_unit).unwrap_or(text.len()));
        let unit = unit.trim_start();
        let mut units = self.units.iter();
        let (_, per_unit) = units.find(|(name, _)| unit.eq_ignore_ascii_case(name))?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        // Nine digits after the point reach below every unit here.
        if whole.is_empty() || fraction.len() > 9 {
            return None;
        }
        if whole.len() > 18 && whole.bytes().all(|digit| digit.is_ascii_digit()) {
            return Some(u128::MAX);
        }
        let (whole, digits): (u128, u128) = (whole.parse().ok()?, fraction.parse().ok()?);
        let denominator = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
        Some(whole * per_unit + digits * per_unit / denominator)
    }
}
