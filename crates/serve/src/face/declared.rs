//! The declarations in a description: all of them if they fit the token budget, else those of
//! tools that are always on.

use callgate::{Detail, Gate};

use crate::options::ServeOptions;

/// Bytes of a token, roughly, in declarations.
const TOKEN_BYTES: usize = 4;

/// The declarations in a description.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    /// TypeScript; may be empty.
    pub(crate) text: String,
    /// The number of tools in the text.
    pub(crate) shown: usize,
    /// The number of tools in all.
    pub(crate) all: usize,
}

impl Declared {
    /// The declarations of these tools that fit.
    pub(crate) fn new(gate: &Gate, functions: &[&str], options: &ServeOptions) -> Self {
        let most = options.declared_tokens();
        let all = functions.len();
        let declare = |functions: &[&str]| gate.declarations_of(Detail::Full, functions);
        let text = declare(functions);
        tracing::info!(
            tools = all,
            bytes = text.len(),
            budget = most,
            "declarations of all tools"
        );
        if fits(&text, most) {
            return Self {
                text,
                shown: all,
                all,
            };
        }
        let always_on: Vec<&str> = functions
            .iter()
            .copied()
            .filter(|function| gate.always_on(function))
            .collect();
        let (text, shown) = first_that_fit(&always_on, most, declare);
        if shown < always_on.len() {
            let always_on = always_on.len();
            tracing::warn!(
                shown,
                always_on,
                budget = most,
                "tools that are always on do not fit"
            );
        }
        Self { text, shown, all }
    }

    /// True if all tools are declared.
    pub(crate) fn is_complete(&self) -> bool {
        self.shown == self.all
    }
}

fn fits(text: &str, most: usize) -> bool {
    text.len() <= most.saturating_mul(TOKEN_BYTES)
}

/// The text of the first names, as many as fit into so many tokens, and their number.
pub(crate) fn first_that_fit(
    names: &[&str],
    most: usize,
    text: impl Fn(&[&str]) -> String,
) -> (String, usize) {
    let try_first = |count: usize| {
        let text = text(names.get(..count).unwrap_or(names));
        fits(&text, most).then_some(text)
    };
    if let Some(text) = try_first(names.len()) {
        return (text, names.len());
    }
    // The first `fit` names fit, the first `over` do not.
    let (mut fit, mut over) = (0, names.len());
    let mut best = String::new();
    while fit + 1 < over {
        let middle = fit.midpoint(over);
        match try_first(middle) {
            Some(text) => (fit, best) = (middle, text),
            None => over = middle,
        }
    }
    (best, fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_fit() {
        let names = ["aaaa", "bbbb", "cccc", "dddd", "eeee"];
        for most in 0..=6 {
            let (text, count) = first_that_fit(&names, most, |names| names.concat());
            assert_eq!((text, count), (names[..most.min(5)].concat(), most.min(5)));
        }
        let long = first_that_fit(&names, 1, |names| "x".repeat(100 + names.len()));
        assert_eq!(long, (String::new(), 0));
    }
}
