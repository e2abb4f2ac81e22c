//! Texts that are no server's secret: the run's script, and the definition of the tool
//! that a call is for.

use memchr::memmem;

use super::normal::{append, plus_is_space};
use super::numbers::{answered, stands_in};

/// How often a call's pieces are looked for in them. Later ones count as unknown.
const MAX_CHECKS: usize = 64;

/// What is known anyway to whom one call goes.
pub(super) struct Known<'a> {
    /// In normal form and lower case.
    script: &'a [u8],
    /// As it is.
    definition: &'a str,
    /// The definition like the script, once it is needed.
    defined: Option<Vec<u8>>,
    /// The numbers of both, and what becomes of them, in order, once they are needed.
    numbers: Option<Vec<u64>>,
    checks: usize,
}

impl<'a> Known<'a> {
    /// What these texts say, the script as [`in_normal_form`] makes it; so many `checks` were
    /// made before.
    pub(super) fn new(script: &'a [u8], definition: &'a str, checks: usize) -> Self {
        Self {
            script,
            definition,
            defined: None,
            numbers: None,
            checks,
        }
    }

    /// How often anything was looked for in them.
    pub(super) fn checks(&self) -> usize {
        self.checks
    }

    /// Whether a piece is in one of them.
    pub(super) fn has(&mut self, piece: &[u8]) -> bool {
        if !self.may_have(piece) {
            return false;
        }
        let piece = piece.to_ascii_lowercase();
        let mut texts = self.texts().into_iter();
        texts.any(|text| memmem::find(text, &piece).is_some())
    }

    /// Whether a number is in one, or becomes of one that is.
    pub(super) fn has_number(&mut self, value: u64, digits: &[u8]) -> bool {
        if self.numbers.is_none() {
            let mut numbers = Vec::new();
            for text in self.texts() {
                answered(text, |value| numbers.push(value));
            }
            numbers.sort_unstable();
            self.numbers = Some(numbers);
        }
        let numbers = self.numbers.as_deref().unwrap_or_default();
        if numbers.binary_search(&value).is_ok() {
            return true;
        }
        // A name's digits, such as those of `row_123456`, are no number there.
        self.may_have(digits) && {
            let mut texts = self.texts().into_iter();
            texts.any(|text| stands_in(digits, text))
        }
    }

    /// Whether a piece can be in one and may be looked for.
    fn may_have(&mut self, piece: &[u8]) -> bool {
        // The definition's normal form is no longer than it is.
        let longest = self.script.len().max(self.definition.len());
        let may_have = self.checks < MAX_CHECKS && piece.len() <= longest;
        self.checks += usize::from(may_have);
        may_have
    }

    fn texts(&mut self) -> [&[u8]; 2] {
        let defined = self
            .defined
            .get_or_insert_with(|| in_normal_form(self.definition));
        [self.script, defined]
    }
}

/// A text in which pieces are looked for. Unlike JSON, a script has lines of its own.
pub(super) fn in_normal_form(text: &str) -> Vec<u8> {
    let text: Vec<u8> = text.bytes().map(|byte| byte.max(b' ')).collect();
    let mut normal = Vec::new();
    append(&text, &mut normal);
    plus_is_space(&mut normal, 0);
    normal.make_ascii_lowercase();
    normal
}
