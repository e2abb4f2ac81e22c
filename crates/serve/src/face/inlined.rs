//! Which declarations a description has in it: all of them if they fit the
//! budget, else those of tools that are always on.

use callgate::{Detail, Gate};

use super::tokens::{self, Size, VOCABULARY};
use crate::options::ServeOptions;

/// The declarations in a description.
#[derive(Debug, Default)]
pub(crate) struct Inlined {
    /// TypeScript; it may be empty.
    pub(crate) text: String,
    /// How many tools it declares.
    pub(crate) shown: usize,
    /// How many there are.
    pub(crate) all: usize,
    /// Whether it declares all there are.
    pub(crate) is_complete: bool,
}

impl Inlined {
    /// What fits of these tools. It may count tokens, which takes a while.
    pub(crate) fn of(gate: &Gate, functions: &[&str], options: &ServeOptions) -> Self {
        let most = options.budget();
        let all = functions.len();
        let text = gate.declarations_of(Detail::Full, functions);
        let size = tokens::size(&text, most);
        tracing::info!(
            tools = all,
            bytes = text.len(),
            budget = most,
            vocabulary = VOCABULARY,
            ?size,
            "declarations of all tools"
        );
        if size.fits() {
            return Self {
                text,
                shown: all,
                all,
                is_complete: true,
            };
        }
        let settings = gate.tool_settings();
        let always: Vec<&str> = functions
            .iter()
            .copied()
            .filter(|function| settings.always_on(function))
            .collect();
        let (text, shown) = first_that_fit(&always, most, |functions| {
            gate.declarations_of(Detail::Full, functions)
        });
        if shown < always.len() {
            tracing::warn!(
                shown,
                always_on = always.len(),
                budget = most,
                vocabulary = VOCABULARY,
                "not all tools that are always on fit the budget"
            );
        }
        Self {
            text,
            shown,
            all,
            is_complete: false,
        }
    }
}

/// The text of as many of the first names as have no more tokens than this, and
/// how many they are.
pub(crate) fn first_that_fit(
    names: &[&str],
    most: usize,
    text: impl Fn(&[&str]) -> String,
) -> (String, usize) {
    let try_first = |count: usize| {
        let text = text(names.get(..count).unwrap_or(names));
        (tokens::size(&text, most) != Size::Long).then_some(text)
    };
    if let Some(text) = try_first(names.len()) {
        return (text, names.len());
    }
    // Of `fits` it is known that they do, of `over` that they do not.
    let (mut fits, mut over) = (0, names.len());
    let mut best = String::new();
    while fits + 1 < over {
        let middle = fits.midpoint(over);
        match try_first(middle) {
            Some(text) => (fits, best) = (middle, text),
            None => over = middle,
        }
    }
    (best, fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_fit() {
        let names = ["aaaa", "bbbb", "cccc", "dddd", "eeee"];
        let join = |names: &[&str]| names.concat();
        for most in 0..=20 {
            let (text, count) = first_that_fit(&names, most, join);
            assert_eq!(text, names[..count].concat());
            assert!(tokens::size(&text, most).fits(), "{most}");
            let more = names
                .get(..=count)
                .map(|names| tokens::size(&names.concat(), most));
            assert!(more.is_none_or(|more| !more.fits()), "{most}");
        }
        assert_eq!(first_that_fit(&names, 20, join).1, 5);
        // The text of none may be too long, too; it is not what is given then.
        let (text, count) = first_that_fit(&names, 1, |names| "x".repeat(100 + names.len()));
        assert_eq!((text.as_str(), count), ("", 0));
    }
}
