//! Names of tools as a provider takes them.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};

use super::ExportFormat;

/// Hexadecimal digits of the hash at the end of a name that had to change.
const DIGITS: usize = 8;

/// The name itself where the provider takes it and nobody has it; else one like
/// it that ends in a part of its hash, the same each time.
pub(super) fn fit(format: ExportFormat, name: &str, taken: &HashSet<String>) -> String {
    if fits(format, name) && !taken.contains(name) {
        return name.to_owned();
    }
    let plain: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .take(longest(format) - DIGITS - 1)
        .collect();
    let mut salt = 0_u32;
    loop {
        let mut hash = Sha256::new();
        hash.update(name.as_bytes());
        hash.update(salt.to_be_bytes());
        let hash = hash.finalize();
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let begin = if begins(format, &plain) { "" } else { "_" };
        let digits = DIGITS - begin.len();
        let fitted = format!("{begin}{plain}_{}", &hex[..digits]);
        if !taken.contains(&fitted) {
            return fitted;
        }
        salt += 1;
    }
}

/// The most characters of a name: Anthropic's documentation says 128, the
/// others' 64.
fn longest(format: ExportFormat) -> usize {
    match format {
        ExportFormat::Anthropic => 128,
        ExportFormat::OpenAi | ExportFormat::Gemini => 64,
    }
}

fn fits(format: ExportFormat, name: &str) -> bool {
    let taken = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.len() <= longest(format) && begins(format, name) && name.chars().all(taken)
}

/// Gemini wants a letter or an underscore first, the others anything.
fn begins(format: ExportFormat, name: &str) -> bool {
    let first = name.chars().next();
    match format {
        ExportFormat::Gemini => first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_'),
        ExportFormat::Anthropic | ExportFormat::OpenAi => first.is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_fits_and_none_twice() {
        let long = "crm_".to_owned() + &"x".repeat(300);
        let names = [
            "fs_read",
            "a$b",
            "a_b",
            "3d-print",
            "",
            "日本",
            long.as_str(),
        ];
        for format in ExportFormat::ALL {
            let mut taken = HashSet::new();
            // Twice, as if two servers had equal ones.
            for name in names.iter().chain(&names) {
                let fitted = fit(format, name, &taken);
                assert!(fits(format, &fitted), "{format}: {fitted:?}");
                assert!(taken.insert(fitted), "{format}: {name:?} came out twice");
            }
        }
    }

    #[test]
    fn a_name_that_fits_stays() {
        for format in ExportFormat::ALL {
            assert_eq!(fit(format, "git_git_log", &HashSet::new()), "git_git_log");
        }
        let renamed = fit(ExportFormat::OpenAi, "a$b", &HashSet::new());
        assert_eq!(renamed, fit(ExportFormat::OpenAi, "a$b", &HashSet::new()));
        assert!(renamed.starts_with("a_b_"), "{renamed}");
    }
}
