//! A check for base64, which carries bytes through JSON.

/// True if the text is base64 (RFC 4648, section 4) with padding and without line ends.
pub fn is_base64(text: &str) -> bool {
    let bytes = text.as_bytes();
    let padding = bytes.iter().rev().take_while(|byte| **byte == b'=').count();
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let digits = bytes.get(..bytes.len() - padding).unwrap_or_default();
    padding <= 2 && bytes.len().is_multiple_of(4) && digits.iter().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_base64_is_rejected() {
        for good in ["", "YQ==", "YWI=", "YWJj", "+/+/", "////"] {
            assert!(is_base64(good), "{good}");
        }
        for bad in "Y,YQ,YQ=,Y===,====,YQ==YQ==,-_-_,YW J,YQ==\n,\u{fc}\u{fc}".split(',') {
            assert!(!is_base64(bad), "{bad}");
        }
    }
}
