//! Durations and sizes as people write them: `2s`, `128MiB`.

use std::time::Duration;

/// The minimum memory of a script: an isolate does not start with less.
pub const MIN_MEMORY: u64 = 16 << 20;

/// A text that is no duration or no size. It says what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(pub(super) String);

/// Reads a duration such as `500ms`, `2s`, `1.5m` or `1h`.
///
/// # Errors
///
/// [`ValueError`] for any other form, zero, and more than a hundred years.
pub fn parse_duration(text: &str) -> Result<Duration, ValueError> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let form = "write a number and ms, s, m or h, such as \"500ms\" or \"2s\"";
    let seconds = read(text, "duration", &units, form)?;
    if seconds > 100.0 * 366.0 * 86_400.0 {
        return Err(too_large(text, "duration", "a hundred years"));
    }
    match Duration::from_secs_f64(seconds) {
        Duration::ZERO => Err(zero(text, "duration")),
        duration => Ok(duration),
    }
}

/// Reads a number of bytes such as `512B`, `16KiB`, `128MiB`, `1GB` or `1.5GiB`. A part of a
/// byte is dropped.
///
/// # Errors
///
/// [`ValueError`] for any other form, less than a byte, and 2^53 bytes or more.
pub fn parse_bytes(text: &str) -> Result<u64, ValueError> {
    let (kilo, kibi) = (1e3_f64, 1024_f64);
    let units = [
        ("b", 1.0),
        ("kb", kilo),
        ("mb", kilo.powi(2)),
        ("gb", kilo.powi(3)),
        ("kib", kibi),
        ("mib", kibi.powi(2)),
        ("gib", kibi.powi(3)),
    ];
    let form = "write a number and B, KB, MB, GB, KiB, MiB or GiB, such as \"16KiB\"";
    match read(text, "size", &units, form)? {
        bytes if bytes < 1.0 => Err(zero(text, "size")),
        bytes if bytes >= 2_f64.powi(53) => Err(too_large(text, "size", "below 2^53 bytes")),
        bytes => Ok(bytes as u64),
    }
}

/// Reads a size as [`parse_bytes`] does, for a script's memory.
///
/// # Errors
///
/// [`ValueError`] also for less than [`MIN_MEMORY`].
pub fn parse_memory(text: &str) -> Result<u64, ValueError> {
    match parse_bytes(text)? {
        bytes if bytes < MIN_MEMORY => Err(ValueError(format!(
            "{text:?} is too little memory; a script needs \"16MiB\" at least"
        ))),
        bytes => Ok(bytes),
    }
}

/// Reads a decimal number and one of these units, such as `1.5 MiB`.
fn read(text: &str, name: &str, units: &[(&str, f64)], form: &str) -> Result<f64, ValueError> {
    let number_and_unit = || {
        let trimmed = text.trim();
        let is_unit = |c: char| !c.is_ascii_digit() && c != '.';
        let (number, unit) = trimmed.split_at(trimmed.find(is_unit)?);
        let mut units = units.iter();
        let (_, size) = units.find(|(name, _)| unit.trim_start().eq_ignore_ascii_case(name))?;
        let is_decimal = number.starts_with(|c: char| c.is_ascii_digit()) && !number.ends_with('.');
        Some(number.parse::<f64>().ok().filter(|_| is_decimal)? * size)
    };
    number_and_unit().ok_or_else(|| ValueError(format!("{text:?} is not a {name}; {form}")))
}

fn zero(text: &str, name: &str) -> ValueError {
    ValueError(format!(
        "{text:?} is zero; the {name} must be greater than zero"
    ))
}

fn too_large(text: &str, name: &str, max: &str) -> ValueError {
    ValueError(format!(
        "{text:?} is too large; the maximum {name} is {max}"
    ))
}
