//! Texts that are not a server's data: the run's script, and the definition of the called tool.

use std::collections::HashSet;

use memchr::memmem;

use super::normalize::search_form;
use super::numbers::{each_answered_number, has_digits};

/// The maximum number of searches for one call. Data beyond that counts as a server's.
const MAX_CHECKS: usize = 64;

/// The script and the definition of one call.
pub(super) struct KnownTexts<'a> {
    /// In search form.
    script: &'a [u8],
    definition: Vec<u8>,
    /// The numbers of both, once they are needed.
    numbers: Option<HashSet<u128>>,
    checks: usize,
}

impl<'a> KnownTexts<'a> {
    /// `script` is in search form, `definition` is not.
    pub(super) fn new(script: &'a [u8], definition: &str) -> Self {
        Self {
            script,
            definition: search_form(definition.as_bytes()),
            numbers: None,
            checks: 0,
        }
    }

    /// True if one of them has this piece, which is in lower case.
    pub(super) fn has_piece(&mut self, piece: &[u8]) -> bool {
        self.may_check(piece)
            && self
                .texts()
                .into_iter()
                .any(|text| memmem::find(text, piece).is_some())
    }

    /// True if one of them has this number, or one that a script writes like it.
    pub(super) fn has_number(&mut self, value: u128, digits: &[u8]) -> bool {
        if self.numbers.is_none() {
            let mut numbers = HashSet::new();
            for text in self.texts() {
                each_answered_number(text, |value| {
                    numbers.insert(value);
                });
            }
            self.numbers = Some(numbers);
        }
        let numbers = self.numbers.as_ref();
        if numbers.is_some_and(|numbers| numbers.contains(&value)) {
            return true;
        }
        // The digits of a name, such as `row_123456`, are not a number there.
        self.may_check(digits)
            && self
                .texts()
                .into_iter()
                .any(|text| has_digits(text, digits))
    }

    fn may_check(&mut self, data: &[u8]) -> bool {
        let longest = self.script.len().max(self.definition.len());
        let may_check = self.checks < MAX_CHECKS && data.len() <= longest;
        self.checks += usize::from(may_check);
        may_check
    }

    fn texts(&self) -> [&[u8]; 2] {
        [self.script, &self.definition]
    }
}
