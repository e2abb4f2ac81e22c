//! The name that was probably meant.

/// The candidate that `text` is most likely a misspelling of.
pub fn nearest<'c>(text: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // A text that is longer than any name is no misspelling of one.
    if text.len() > 300 {
        return None;
    }
    let lower = text.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, candidate)| {
            *distance <= 1.max(candidate.len() / 3) && *distance < candidate.len()
        })
        .min()
        .map(|(_, candidate)| candidate)
}
