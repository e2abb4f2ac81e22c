//! The name that a misspelt one was probably meant for.

/// The pairs of letters that one search compares: servers choose the candidates.
const MAX_COMPARED: usize = 1 << 24;

/// The candidate that `text` is most likely a misspelling of.
pub fn nearest<'c>(text: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // No name is so long.
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
            // The difference of the lengths is a lower bound of the distance.
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
