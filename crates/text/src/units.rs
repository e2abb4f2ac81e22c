//! Durations and sizes in the units that people write in a configuration.

use std::time::Duration;

/// A duration such as `300 ms`, `2.5 s`, `5 min` or `1 h`, exact to the millisecond.
pub fn shown_duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    for (unit, size) in [("h", 3_600_000), ("min", 60_000), ("s", 1_000)] {
        if ms >= size && ms.is_multiple_of(size) {
            return format!("{} {unit}", ms / size);
        }
    }
    if ms < 1_000 {
        format!("{ms} ms")
    } else {
        format!("{} s", ms as f64 / 1e3)
    }
}

/// A size such as `32 MiB`, `1 GB` or `1025 bytes`, exact to the byte.
pub fn shown_size(bytes: u64) -> String {
    let units = [
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("KB", 1_000),
    ];
    let mut units = units.into_iter();
    match units.find(|(_, size)| bytes >= *size && bytes.is_multiple_of(*size)) {
        Some((unit, size)) => format!("{} {unit}", bytes / size),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_exactly() {
        for (ms, shown) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (1_003, "1.003 s"),
            (90_000, "90 s"),
            (300_000, "5 min"),
            (300_250, "300.25 s"),
            (7_200_000, "2 h"),
        ] {
            assert_eq!(shown_duration(Duration::from_millis(ms)), shown);
        }
    }

    #[test]
    fn sizes_are_shown_exactly() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (1_023, "1023 bytes"),
            (1 << 10, "1 KiB"),
            (3 << 29, "1536 MiB"),
            (32 << 20, "32 MiB"),
            (1_000_000_000, "1 GB"),
            (2_500_000, "2500 KB"),
            (1 << 30, "1 GiB"),
        ] {
            assert_eq!(shown_size(bytes), shown);
        }
    }
}
