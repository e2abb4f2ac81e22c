//! The parameters of a `WWW-Authenticate` header (RFC 6750). rmcp finds a parameter's name
//! anywhere in the header, in a description too.

/// The `error` and the `scope` of a challenge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    pub(crate) error: Option<String>,
    /// The scopes that may be asked for. Other words are left out.
    pub(crate) scopes: Vec<String>,
}

impl Challenge {
    /// Parses a header's value. Of a parameter that stands twice, the first one counts.
    pub(crate) fn parse(header: &str) -> Self {
        let (mut error, mut scope) = (None, None);
        let mut rest = header;
        while let Some((before, after)) = rest.split_once('=') {
            let name = before
                .rsplit([' ', '\t', ','])
                .find(|word| !word.is_empty());
            let (value, after) = value(after);
            match name.unwrap_or_default().to_ascii_lowercase().as_str() {
                "error" => error = error.or(Some(value)),
                "scope" => scope = scope.or(Some(value)),
                _ => {}
            }
            rest = after;
        }
        let scope = scope.unwrap_or_default();
        let scopes = scope.split(' ').filter(|word| is_scope(word));
        Self {
            error,
            scopes: scopes.map(str::to_owned).collect(),
        }
    }
}

/// The value at the start of `text`, and the text after it.
fn value(text: &str) -> (String, &str) {
    let text = text.trim_start_matches([' ', '\t']);
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (String::new(), "")
}

/// Tells whether a word is a scope (RFC 6749, section 3.3) of a sensible length.
pub(crate) fn is_scope(word: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !word.is_empty() && word.len() <= 256 && word.bytes().all(is_fit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges() {
        for (header, error, scopes) in [
            ("", None, ""),
            ("Bearer", None, ""),
            (
                r#"Bearer error="insufficient_scope", scope="a b:c""#,
                Some("insufficient_scope"),
                "a b:c",
            ),
            (
                r#"bearer realm="x, error=y" , ERROR = invalid_token"#,
                Some("invalid_token"),
                "",
            ),
            (
                r#"Basic realm="a", Bearer scope="s", DPoP scope="other""#,
                None,
                "s",
            ),
            (
                r#"Bearer error_description="say error=\"x\" scope=z", error="y""#,
                Some("y"),
                "",
            ),
            ("Bearer scope=\"a\\\\b \u{7f} ok  é\"", None, "ok"),
            (r#"Bearer scope="open"#, None, ""),
            (r#"Negotiate abc==, Bearer error="x""#, Some("x"), ""),
        ] {
            let challenge = Challenge::parse(header);
            assert_eq!(challenge.error.as_deref(), error, "{header}");
            assert_eq!(challenge.scopes.join(" "), scopes, "{header}");
        }
    }
}
