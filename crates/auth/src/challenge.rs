//! What a `WWW-Authenticate` header says of a bearer token (RFC 6750, RFC 9728).

/// The challenge for bearer tokens of a header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    pub(super) error: Option<String>,
    pub(super) scope: Option<String>,
}

impl Challenge {
    /// Reads a header's value, which may hold several challenges; `None` if none
    /// of them is for bearer tokens.
    pub(super) fn bearer(header: &str) -> Option<Self> {
        let mut found: Option<Self> = None;
        let mut rest = header;
        while let Some((item, after)) = next_item(rest) {
            rest = after;
            match item {
                Item::Scheme(scheme) => {
                    if found.is_some() {
                        break;
                    }
                    if scheme.eq_ignore_ascii_case("bearer") {
                        found = Some(Self::default());
                    }
                }
                Item::Parameter(name, value) => {
                    let Some(challenge) = &mut found else {
                        continue;
                    };
                    let place = match name.to_ascii_lowercase().as_str() {
                        "error" => &mut challenge.error,
                        "scope" => &mut challenge.scope,
                        _ => continue,
                    };
                    // A parameter must not stand twice; the first one counts.
                    place.get_or_insert(value);
                }
            }
        }
        found
    }

    /// The scopes named, each of which may be asked for: others would not be
    /// told from an attempt to write something else into a request or a
    /// message.
    pub(super) fn scopes(&self) -> Vec<String> {
        let words = self.scope.as_deref().unwrap_or_default().split(' ');
        words
            .filter(|word| is_scope(word))
            .map(str::to_owned)
            .collect()
    }
}

/// RFC 6749, section 3.3, and not endlessly long.
pub(super) fn is_scope(word: &str) -> bool {
    let fit = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !word.is_empty() && word.len() <= 256 && word.bytes().all(fit)
}

enum Item<'a> {
    Scheme(&'a str),
    Parameter(&'a str, String),
}

/// The next scheme or parameter, and the text after it.
fn next_item(text: &str) -> Option<(Item<'_>, &str)> {
    let text = text.trim_start_matches([' ', '\t', ',']);
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/".contains(c)))
        .unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if word.is_empty() {
        // Nothing that a header of this kind may hold: the rest is not read.
        return None;
    }
    let Some(value) = rest.trim_start_matches([' ', '\t']).strip_prefix('=') else {
        return Some((Item::Scheme(word), rest));
    };
    let value = value.trim_start_matches([' ', '\t']);
    let Some(quoted) = value.strip_prefix('"') else {
        let end = value.find([',', ' ', '\t']).unwrap_or(value.len());
        let (value, rest) = value.split_at(end);
        return Some((Item::Parameter(word, value.to_owned()), rest));
    };
    let mut read = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => {
                let rest = quoted.get(at + 1..).unwrap_or_default();
                return Some((Item::Parameter(word, read), rest));
            }
            '\\' => read.extend(characters.next().map(|(_, escaped)| escaped)),
            other => read.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, expected: Option<(Option<&str>, &[&str])>) {
        let challenge = Challenge::bearer(header);
        let scopes = challenge.as_ref().map(Challenge::scopes);
        let shown = challenge
            .as_ref()
            .map(|challenge| challenge.error.as_deref());
        assert_eq!(shown, expected.map(|(error, _)| error), "{header}");
        let expected: Option<Vec<_>> =
            expected.map(|(_, scopes)| scopes.iter().map(|s| (*s).to_owned()).collect());
        assert_eq!(scopes, expected, "{header}");
    }

    #[test]
    fn challenges() {
        check("", None);
        check("Basic realm=\"Bearer error=x\"", None);
        check("Bearer", Some((None, &[])));
        check(
            "Bearer error=\"insufficient_scope\", scope=\"a b:c\"",
            Some((Some("insufficient_scope"), &["a", "b:c"])),
        );
        check(
            "bearer realm=\"x, Digest y\" , ERROR = invalid_token",
            Some((Some("invalid_token"), &[])),
        );
        check(
            "Basic realm=\"a\", Bearer scope=\"s\", DPoP scope=\"other\", error=\"no\"",
            Some((None, &["s"])),
        );
        check(
            "Bearer error_description=\"say error=\\\"x\\\"\", error=\"y\", error=\"z\"",
            Some((Some("y"), &[])),
        );
        check(
            "Bearer scope=\"a\\\\b \u{7f} ok  é\"",
            Some((None, &["ok"])),
        );
        check("Bearer scope=\"open", Some((None, &[])));
        check(
            "Negotiate abc==, Bearer error=\"x\"",
            Some((Some("x"), &[])),
        );
    }
}
