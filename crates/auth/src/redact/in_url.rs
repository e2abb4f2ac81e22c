//! What is secret in a URL besides what `${VAR}` put there: a key stands in its
//! query or before its host, and nobody can tell it from a setting.

use url::form_urlencoded;

/// The values of a URL's query, its user and its password, each by itself, with
/// the name to show in its place: a server repeats one without the others.
pub fn url_secrets(url: &str) -> Vec<(String, String)> {
    let plain = url.split('#').next().unwrap_or_default();
    let (place, query) = plain.split_once('?').unwrap_or((plain, ""));
    let mut found = Vec::new();
    let mut find = |name: &str, value: &str| {
        found.push((name.to_owned(), value.to_owned()));
        found.push((name.to_owned(), meant(value)));
    };
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some((name, value)) if !name.is_empty() => find(name, value),
            Some((_, value)) => find("URL query", value),
            None => find("URL query", pair),
        }
    }
    let authority = place.split_once("://").map_or(place, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    if let Some((user, _host)) = authority.rsplit_once('@') {
        find("URL user", user);
        if let Some((user, password)) = user.split_once(':') {
            find("URL user", user);
            find("URL password", password);
        }
    }
    found
}

/// A text without the escapes that it has in a URL.
fn meant(text: &str) -> String {
    let pair = format!("={}", text.replace('&', "%26"));
    let mut pairs = form_urlencoded::parse(pair.as_bytes());
    pairs
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_url() {
        let check = |url: &str, expected: &[(&str, &str)]| {
            let mut found = url_secrets(url);
            found.retain(|(_, value)| !value.is_empty());
            found.dedup();
            let found: Vec<_> = found
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            assert_eq!(found, expected, "{url}");
        };
        check("https://h.example/k1234567/mcp#f", &[]);
        check("no URL at all", &[]);
        check(
            "https://h/mcp?a=1&key=a%2Fb&=x&alone&empty=#a=b",
            &[
                ("a", "1"),
                ("key", "a%2Fb"),
                ("key", "a/b"),
                ("URL query", "x"),
                ("URL query", "alone"),
            ],
        );
        check(
            "https://bob:p%40ss&word@h?mail=a@b",
            &[
                ("mail", "a@b"),
                ("URL user", "bob:p%40ss&word"),
                ("URL user", "bob:p@ss&word"),
                ("URL user", "bob"),
                ("URL password", "p%40ss&word"),
                ("URL password", "p@ss&word"),
            ],
        );
        check("https://t0ken@h/a@b", &[("URL user", "t0ken")]);
    }
}
