//! Names of tools as a provider takes them.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};

use super::ExportFormat;

/// The most characters of a name that all providers take.
const LONGEST: usize = 64;

/// Hexadecimal digits of the hash at the end of a changed name.
const DIGITS: usize = 8;

/// The name itself, if the provider takes it and it is not taken; else a similar name that ends
/// in a part of its hash, the same each time. Takes the name.
pub(super) fn fit(format: ExportFormat, name: &str, taken: &mut HashSet<String>) -> String {
    if fits(format, name) && taken.insert(name.to_owned()) {
        return name.to_owned();
    }
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    let plain: String = plain.take(LONGEST - DIGITS - 1).collect();
    let start = if begins(format, &plain) { "" } else { "_" };
    let mut salt = 0_u32;
    loop {
        let mut hash = Sha256::new();
        hash.update(name.as_bytes());
        hash.update(salt.to_be_bytes());
        let hash = hash.finalize();
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let fitted = format!("{start}{plain}_{}", &hex[..DIGITS - start.len()]);
        if taken.insert(fitted.clone()) {
            return fitted;
        }
        salt += 1;
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn fits(format: ExportFormat, name: &str) -> bool {
    name.len() <= LONGEST && begins(format, name) && name.chars().all(is_plain)
}

/// True if the provider takes the name's first character.
fn begins(format: ExportFormat, name: &str) -> bool {
    name.starts_with(|first: char| match format {
        ExportFormat::Gemini => first.is_ascii_alphabetic() || first == '_',
        ExportFormat::Anthropic | ExportFormat::OpenAi => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_fits_and_is_unique() {
        let long = "crm_".to_owned() + &"x".repeat(300);
        let names = ["fs_read", "a$b", "a_b", "3d-print", "", "日本", &long];
        for format in ExportFormat::ALL {
            let fit_all = || {
                let mut taken = HashSet::new();
                // Twice, as if two servers had equal names.
                let names = names.iter().chain(&names);
                let fitted: Vec<String> = names.map(|it| fit(format, it, &mut taken)).collect();
                assert_eq!(taken.len(), fitted.len());
                fitted
            };
            let fitted = fit_all();
            assert!(fitted.iter().all(|it| fits(format, it)), "{fitted:?}");
            assert_eq!(fitted[0], "fs_read");
            assert_eq!(fitted, fit_all());
        }
    }
}
