//! From text to terms: words split where people and programs divide names, then
//! brought to a common form.

use std::hash::Hasher as _;

use rustc_hash::FxHasher;

/// The number of bytes of a word that count.
const MAX_WORD: usize = 48;

/// A word in its common form, as a hash of it. A definition that brings two
/// words to one hash gains no more than by having both words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Term(u64);

impl Term {
    /// The term of a word that is in lower case.
    pub(super) fn of(word: &str) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(stem(word).as_bytes());
        Self(hasher.finish())
    }

    /// The term of a server's name in lower case, which no word has: `maps` is not `map`.
    pub(super) fn of_server(name: &str) -> Self {
        // The slash keeps the name from being stemmed.
        Self::of(&format!("{name}/"))
    }
}

/// The words of a text in lower case, at most `max` of them: split at characters
/// other than letters and digits and where case changes (`getHTTPUrl` has three). A word with
/// digits in it stays whole (`s3`), and its longer runs of letters follow it
/// (`base64`, `base`). Scripts without spaces come in pairs of characters.
pub(super) fn words(text: &str, max: usize) -> Vec<String> {
    let mut words = Vec::new();
    split(text, max, false, |word| words.push(word.to_owned()));
    words
}

/// Calls `found` with each of the [`words`] of a text, and after those of a word in mixed case with
/// the word as a whole (`java`, `script`, `javascript`).
pub(super) fn each_word(text: &str, max: usize, found: impl FnMut(&str)) {
    split(text, max, true, found);
}

fn split(text: &str, max: usize, with_wholes: bool, mut found: impl FnMut(&str)) {
    let mut left = max;
    let mut take = |word: &str| {
        if left > 0 {
            left -= 1;
            found(word);
        }
        left > 0
    };
    let mut lower = String::new();
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        if run.is_empty() {
            continue;
        }
        let goes_on = if run.is_ascii() {
            ascii_words(run, with_wholes, &mut lower, &mut take)
        } else {
            other_words(run, &mut lower, &mut take)
        };
        if !goes_on {
            return;
        }
    }
}

/// True if `take` accepts more words.
fn ascii_words(
    run: &str,
    with_whole: bool,
    lower: &mut String,
    take: &mut impl FnMut(&str) -> bool,
) -> bool {
    let bytes = run.as_bytes();
    let mut start = 0;
    for at in 1..=bytes.len() {
        if at < bytes.len() && !is_boundary(bytes, at) {
            continue;
        }
        if !ascii_word(run.get(start..at).unwrap_or_default(), lower, take) {
            return false;
        }
        if at < bytes.len() {
            start = at;
        }
    }
    start == 0 || !with_whole || ascii_word(run, lower, take)
}

/// True if `take` accepts more words.
fn ascii_word(word: &str, lower: &mut String, take: &mut impl FnMut(&str) -> bool) -> bool {
    lower.clear();
    lower.push_str(word.get(..MAX_WORD).unwrap_or(word));
    lower.make_ascii_lowercase();
    let word = lower.as_str();
    let letters = word.split(|c: char| c.is_ascii_digit());
    let mut letters = letters.filter(|part| part.len() >= 3 && part.len() < word.len());
    take(word) && letters.all(take)
}

/// True if case says that a word begins at `at`, which is neither end.
fn is_boundary(bytes: &[u8], at: usize) -> bool {
    let is = |at: usize, what: fn(&u8) -> bool| bytes.get(at).is_some_and(what);
    let upper = u8::is_ascii_uppercase;
    if !is(at, upper) {
        return false;
    }
    // `listIssues`, and `HTTPServer`, where the last capital begins the next.
    !is(at - 1, upper) || is(at + 1, u8::is_ascii_lowercase)
}

/// True if `take` accepts more words.
fn other_words(run: &str, word: &mut String, take: &mut impl FnMut(&str) -> bool) -> bool {
    word.clear();
    let mut before: Option<char> = None;
    for c in run.chars() {
        if !is_unspaced(c) {
            before = None;
            if word.len() < MAX_WORD {
                word.extend(c.to_lowercase());
            }
            continue;
        }
        if !word.is_empty() && !take(word) {
            return false;
        }
        word.clear();
        if let Some(before) = before
            && !take(&String::from_iter([before, c]))
        {
            return false;
        }
        before = Some(c);
    }
    word.is_empty() || take(word)
}

/// True if a character is of a script that puts no spaces between words: kana and Han.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// The common stem of the forms of an English word, such as `issues`, `creating` and
/// `deletion`. It errs towards leaving words apart.
pub(super) fn stem(word: &str) -> &str {
    if word.len() < 4 || !word.is_ascii() {
        return word;
    }
    let word = singular(word);
    let word = without_ending(word);
    // `create` and `creat(ing)`, `reply` and `repli(es)`.
    match word.strip_suffix(['e', 'y', 'i']) {
        Some(shorter) if shorter.len() >= 3 => shorter,
        _ => word,
    }
}

fn singular(word: &str) -> &str {
    for (ending, taken) in [
        ("sses", 2),
        ("xes", 2),
        ("ches", 2),
        ("shes", 2),
        ("ies", 2),
    ] {
        if word.len() > ending.len() + 1 && word.ends_with(ending) {
            return word.get(..word.len() - taken).unwrap_or(word);
        }
    }
    let kept = ["ss", "us", "is"];
    match word.strip_suffix('s') {
        Some(shorter) if shorter.len() >= 3 && !kept.iter().any(|end| word.ends_with(end)) => {
            shorter
        }
        _ => word,
    }
}

fn without_ending(word: &str) -> &str {
    // Each ending, with the fewest letters before it.
    let endings = [("ment", 5), ("ing", 3), ("ed", 3), ("ion", 4)];
    for (ending, min) in endings {
        let Some(rest) = word.strip_suffix(ending) else {
            continue;
        };
        let has_vowel = rest.contains(['a', 'e', 'i', 'o', 'u', 'y']);
        let is_form = ending != "ion" || rest.ends_with(['t', 's']);
        if rest.len() < min || !has_vowel || !is_form {
            return word;
        }
        // `running`, but `calling`, `pressing`.
        let doubled = rest.as_bytes().last_chunk::<2>();
        return match doubled {
            Some([a, b]) if a == b && !b"lsz".contains(b) && ending != "ment" => {
                rest.get(..rest.len() - 1).unwrap_or(rest)
            }
            _ => rest,
        };
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_split_into_words() {
        let check = |text: &str, expected: &str| {
            assert_eq!(words(text, 100).join(" "), expected, "{text}");
        };
        check("list_pull_requests", "list pull requests");
        check("getHTTPServerUrl", "get http server url");
        check("notion.API-post-search", "notion api post search");
        check("s3_getObject", "s3 get object");
        check("decodeBase64", "decode base64 base");
        check("K8s ec2", "k8s ec2");
        check("Größe_ändern", "größe ändern");
        check("列出仓库 issues", "列出 出仓 仓库 issues");
        check("", "");
        check("--- !!", "");
        assert_eq!(words("a b c d", 2), ["a", "b"]);
        let whole = |text: &str, max: usize| {
            let mut words = Vec::new();
            each_word(text, max, |word| words.push(word.to_owned()));
            words.join(" ")
        };
        assert_eq!(whole("PostgreSQL pool", 9), "postgre sql postgresql pool");
        assert_eq!(whole("OAuth2", 9), "o auth2 auth oauth2 oauth");
        assert_eq!(whole("YouTube", 2), "you tube");
        assert_eq!(whole("plain_case TEXT", 9), "plain case text");
        let long = "x".repeat(1000);
        assert_eq!(words(&long, 10).concat().len(), MAX_WORD);
    }

    #[test]
    fn forms_of_a_word_are_one_term() {
        let same = |forms: &str| {
            let stems: Vec<&str> = forms.split(' ').map(stem).collect();
            assert!(
                stems.windows(2).all(|pair| pair[0] == pair[1]),
                "{forms}: {stems:?}"
            );
        };
        same("issue issues");
        same("create creates creating created creation");
        same("delete deleting deleted deletion");
        same("repository repositories");
        same("branch branches");
        same("run runs running");
        same("reply replies replied");
        same("assign assignment assigned");
        let apart = |a: &str, b: &str| assert_ne!(stem(a), stem(b));
        apart("status", "state");
        apart("comment", "come");
        apart("string", "str");
        apart("class", "clas");
        apart("union", "unit");
        for odd in ["", "s", "ing", "ssss", "eeee", "iyey", "größen"] {
            stem(odd);
        }
    }
}
