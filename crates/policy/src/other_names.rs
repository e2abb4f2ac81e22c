//! The other names that a tool may have.

use crate::name_pattern::{Pattern, matches};

/// The digits that a suffix gains each time the name with it is another tool's.
const DIGITS: usize = 8;

/// The generated names that a tool has with other servers and tools beside it, or without them.
/// Rules that hold calls up match these, too, so that another server or tool beside it does not
/// lift them.
///
/// A suffixed name counts only for patterns that have the suffix themselves. Otherwise a pattern
/// with stars could match a tool by an end that no name in sight has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct OtherNames {
    natural: Option<Box<str>>,
    long: Option<Box<str>>,
    /// The name before a suffix.
    stem: Box<str>,
    /// The longest suffix. A longer one would repeat its digits.
    digits: Box<str>,
}

impl OtherNames {
    /// `natural` is the name without others beside the tool, where it has another name.
    /// `suffixed` is the longest of those that it gets where others want the same one: the
    /// shorter ones are its beginnings with eight digits, or sixteen, and so on.
    pub fn new(natural: Option<&str>, suffixed: &str) -> Self {
        let (stem, digits) = suffixed.rsplit_once('_').unwrap_or((suffixed, ""));
        Self {
            natural: natural.map(Box::from),
            long: None,
            stem: stem.into(),
            digits: digits.into(),
        }
    }

    /// Adds the long name, with the server's name twice: every rule matches it as it does the
    /// function's.
    #[must_use]
    pub fn with_long(mut self, long: Option<&str>) -> Self {
        self.long = long.map(Box::from);
        self
    }

    /// The long name, if there is one.
    pub fn long(&self) -> Option<&str> {
        self.long.as_deref()
    }

    pub(crate) fn long_matches(&self, pattern: &str) -> bool {
        self.long().is_some_and(|long| matches(pattern, long))
    }

    /// True if a pattern matches one of these names.
    pub fn any_matches(&self, pattern: &Pattern) -> bool {
        self.any_matches_text(pattern.as_str())
    }

    pub(crate) fn any_matches_text(&self, pattern: &str) -> bool {
        let whole = |pattern: &str| {
            let natural = self.natural.as_deref();
            natural.is_some_and(|natural| matches(pattern, natural)) || self.long_matches(pattern)
        };
        whole(pattern)
            || self
                .without_suffix(pattern)
                .is_some_and(|pattern| matches(pattern, &self.stem) || whole(pattern))
    }

    /// The pattern before the tool's suffix, if it ends in that.
    fn without_suffix<'p>(&self, pattern: &'p str) -> Option<&'p str> {
        let (before, end) = pattern.rsplit_once('_')?;
        if end.is_empty() || !end.len().is_multiple_of(DIGITS) || self.digits.is_empty() {
            return None;
        }
        let mut parts = end.as_bytes().chunks(self.digits.len());
        let is_suffix = parts.all(|part| self.digits.as_bytes().starts_with(part));
        is_suffix.then_some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(natural: Option<&str>) -> OtherNames {
        OtherNames::new(natural, "s_get_user_0123456789abcdef")
    }

    #[track_caller]
    fn check(pattern: &str, matches: bool) {
        let pattern = Pattern::new(pattern).expect("a pattern");
        assert_eq!(names(None).any_matches(&pattern), matches, "{pattern}");
    }

    #[test]
    fn suffixed_name_matches_patterns_with_the_suffix() {
        check("s_get_user_01234567", true);
        check("s_get_user_0123456789abcdef", true);
        // A third round, and a fourth.
        check("s_get_user_0123456789abcdef01234567", true);
        check("s_get_user_0123456789abcdef0123456789abcdef", true);
        check("s_get_*_01234567", true);
        check("*_01234567", true);
        for pattern in [
            "s_get_user",
            "s_get_user_",
            "s_get_user_*",
            "*_user_*",
            "*",
            "*7",
            "*01234567",
            "s_get_user_*01234567",
            "s_get_user_0123456",
            "s_get_user_0123456789ab",
            "s_get_user_89abcdef",
            "s_get_user_0123456789abcdef89abcdef",
            "s_put_user_01234567",
            "_01234567",
        ] {
            check(pattern, false);
        }
    }

    #[test]
    fn the_natural_name_counts_for_every_pattern() {
        let names = names(Some("s_natural"));
        for (pattern, matches) in [
            ("s_natural", true),
            ("*_nat*", true),
            ("s_natural_01234567", true),
            ("s_get_user_01234567", true),
            ("s_get_user", false),
        ] {
            let pattern = Pattern::new(pattern).expect("a pattern");
            assert_eq!(names.any_matches(&pattern), matches, "{pattern}");
        }
    }
}
