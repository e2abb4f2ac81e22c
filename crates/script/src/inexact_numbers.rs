//! Number literals with more digits than a double holds.

use swc_common::Span;
use swc_ecma_ast::{Module, Number};
use swc_ecma_visit::{Visit, VisitWith};

/// Maximum characters of a literal in a message.
const SHOWN: usize = 60;

/// The first integer literal with a different value at run time, with advice.
pub(crate) fn first(module: &Module) -> Option<(Span, String)> {
    let mut finder = Finder::default();
    module.visit_with(&mut finder);
    finder.0
}

#[derive(Default)]
struct Finder(Option<(Span, String)>);

impl Visit for Finder {
    fn visit_number(&mut self, number: &Number) {
        let Some(raw) = number.raw.as_deref() else {
            return;
        };
        if self.0.is_some() || is_exact(raw, number.value) {
            return;
        }
        let shown: String = raw.chars().take(SHOWN).collect();
        let rest = if shown.len() < raw.len() { "…" } else { "" };
        let message = format!(
            "the number {shown}{rest} has more digits than a number keeps; write it with an n at \
             its end, {shown}{rest}n, or as text"
        );
        self.0 = Some((number.span, message));
    }
}

/// False if a literal is an integer with a different value.
fn is_exact(raw: &str, value: f64) -> bool {
    let digits = raw.replace('_', "").to_ascii_lowercase();
    let of_radix = |prefix, radix| {
        let digits = digits.strip_prefix(prefix)?;
        let exact = u128::from_str_radix(digits, radix).ok();
        Some(exact.is_some_and(|exact| value < 2_f64.powi(128) && value as u128 == exact))
    };
    of_radix("0x", 16)
        .or_else(|| of_radix("0o", 8))
        .or_else(|| of_radix("0b", 2))
        .unwrap_or_else(|| {
            let digits = digits.trim_start_matches('0');
            digits.contains(['.', 'e']) || digits.is_empty() || format!("{value:.0}") == digits
        })
}
