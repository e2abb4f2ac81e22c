//! Names of tools as a provider takes them.

use sha2::{Digest as _, Sha256};

use super::ExportFormat;

/// The most characters of a name that all providers take.
const LONGEST: usize = 64;

/// Hexadecimal digits of the hash at the end of a changed name.
const DIGITS: usize = 8;

/// The name itself, if the provider takes it; else a similar name that ends in a part of its
/// hash, the same each time.
pub(super) fn fit(format: ExportFormat, name: &str) -> String {
    if fits(format, name) {
        return name.to_owned();
    }
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    let plain: String = plain.take(LONGEST - DIGITS - 2).collect();
    let start = if begins(format, &plain) { "" } else { "_" };
    let hex = hex::encode(Sha256::digest(name));
    format!("{start}{plain}_{}", &hex[..DIGITS])
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
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_name_fits_and_is_unique() {
        let long = "crm_".to_owned() + &"x".repeat(300);
        let names = ["fs_read", "a$b", "a_b", "3d-print", "", "日本", &long];
        for format in ExportFormat::ALL {
            let fitted: HashSet<String> = names.iter().map(|it| fit(format, it)).collect();
            assert_eq!(fitted.len(), names.len());
            assert!(fitted.iter().all(|it| fits(format, it)), "{fitted:?}");
            assert!(fitted.contains("fs_read"));
        }
    }
}
