//! The name that was probably meant.

use crate::name_pattern::matches;

/// The pairs of letters that one search compares: candidates may be names of servers.
const MAX_COMPARED: usize = 1 << 24;

/// The candidate that `text` is most likely a misspelling of.
pub fn nearest<'c>(text: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // A text that is longer than any name is no misspelling of one.
    if text.len() > 300 {
        return None;
    }
    let lower = text.to_lowercase();
    let (letters, mut left) = (lower.chars().count(), MAX_COMPARED);
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let max = 1.max(candidate.len() / 3);
            let lower_one = candidate.to_lowercase();
            let of_one = lower_one.chars().count();
            // The distance is no less than the difference of the lengths.
            if of_one.abs_diff(letters) > max {
                return None;
            }
            left = left.checked_sub(of_one.saturating_mul(letters))?;
            let distance = strsim::damerau_levenshtein(&lower, &lower_one);
            (distance <= max && distance < candidate.len()).then_some((distance, candidate))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// The function, or the pattern over functions, that was most likely meant. Functions come with
/// their servers.
pub fn nearest_tool<'t, T>(pattern: &str, tools: impl Fn() -> T) -> Option<String>
where
    T: Iterator<Item = (&'t str, &'t str)>,
{
    if let Some(meant) = other_spelling(pattern, &tools) {
        return Some(meant);
    }
    let functions = || tools().map(|(function, _)| function);
    let Some((begin, _)) = pattern.split_once('*') else {
        return nearest(pattern, functions()).map(str::to_owned);
    };
    // A letter too many or too few moves where the beginning ends.
    let prefixes = functions().flat_map(|function| {
        let around = begin.len().saturating_sub(1)..=begin.len() + 1;
        around.filter_map(|end| function.get(..end))
    });
    let near = nearest(begin, prefixes).filter(|near| near.len() > 2)?;
    let mut functions = functions();
    let near = functions.find(|function| function.starts_with(near));
    near.map(str::to_owned)
}

/// The function or pattern that is written as another client names it: `mcp__files__delete_file`,
/// `mcp_files_deleteFile`, `mcp__files`, or the tool's own name.
fn other_spelling<'t, T>(pattern: &str, tools: &impl Fn() -> T) -> Option<String>
where
    T: Iterator<Item = (&'t str, &'t str)>,
{
    let meant = match pattern.strip_prefix("mcp") {
        Some(rest) => rest.trim_start_matches('_'),
        None => pattern,
    };
    let spelled = meant.replace("__", "_");
    let is_other = !spelled.is_empty() && spelled != pattern;
    if is_other && tools().any(|(function, _)| matches(&spelled, function)) {
        return Some(spelled);
    }
    let (begin, rest) = meant.split_once('*').unwrap_or((meant, ""));
    let key = plain(begin);
    let is_whole = !meant.contains('*');
    let found = tools().find_map(|(function, server)| {
        let (name, owner) = (plain(function), plain(server));
        let is_named = is_whole
            && (name == key || name == owner.clone() + &key || owner.clone() + &name == key);
        if is_named {
            return Some(function.to_owned());
        }
        if !name.starts_with(&key) {
            return None;
        }
        // The beginning of the function, up to and with what separates it from the rest.
        let end = (0..=function.len())
            .find(|end| function.get(..*end).map(plain) == Some(key.clone()))?;
        let (begin, after) = function.split_at(end);
        let gap = after.len() - after.trim_start_matches('_').len();
        let is_server = is_whole && key == owner && gap > 0;
        (is_server || !is_whole).then(|| format!("{begin}{}*{rest}", &after[..gap]))
    });
    found.filter(|found| !key.is_empty() && found != pattern)
}

/// The letters and digits of a name, in lower case.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_of_one_search_are_bounded() {
        let text = "ab".repeat(150);
        let like = format!("{}ba", &text[2..]);
        let unlike: Vec<String> = (0..200).map(|n| format!("{n:03}").repeat(100)).collect();
        let among = |count: usize| {
            let before = unlike.iter().take(count).map(String::as_str);
            nearest(&text, before.chain([like.as_str()]))
        };
        assert_eq!(among(100), Some(like.as_str()));
        assert_eq!(among(200), None);
        // Names of other lengths cost nothing.
        let short = (0..10_000).map(|_| "ab");
        assert_eq!(
            nearest(&text, short.chain([like.as_str()])),
            Some(like.as_str())
        );
    }
}
