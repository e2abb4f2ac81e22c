//! URI references, as far as naming schemas goes (RFC 3986, section 5.2). Nothing is ever fetched.

/// A reference made absolute, both without fragments. Where the base is empty
/// it stays relative, which names schemas just as well.
pub(super) fn resolve(base: &str, reference: &str) -> String {
    let reference = Parts::of(reference);
    if reference.scheme.is_some() {
        return reference.text(&without_dots(reference.path));
    }
    let base = Parts::of(base);
    if reference.authority.is_some() {
        let merged = Parts {
            scheme: base.scheme,
            ..reference
        };
        return merged.text(&without_dots(reference.path));
    }
    let (path, query) = if reference.path.is_empty() {
        (base.path.to_owned(), reference.query.or(base.query))
    } else if reference.path.starts_with('/') {
        (without_dots(reference.path), reference.query)
    } else {
        let folder = match base.path.rfind('/') {
            Some(end) => base.path.get(..=end).unwrap_or_default(),
            None if base.authority.is_some() => "/",
            None => "",
        };
        let path = format!("{folder}{}", reference.path);
        (without_dots(&path), reference.query)
    };
    Parts { query, ..base }.text(&path)
}

/// The parts of a URI reference that has no fragment.
#[derive(Clone, Copy)]
struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Self {
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
            _ => (None, text),
        };
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Some(authority), path)
            }
            None => (None, rest),
        };
        Self {
            scheme,
            authority,
            path,
            query,
        }
    }

    fn text(self, path: &str) -> String {
        let mut text = String::new();
        if let Some(scheme) = self.scheme {
            text.push_str(scheme);
            text.push(':');
        }
        if let Some(authority) = self.authority {
            text.push_str("//");
            text.push_str(authority);
        }
        text.push_str(path);
        if let Some(query) = self.query {
            text.push('?');
            text.push_str(query);
        }
        text
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// A path with `.` and `..` carried out.
fn without_dots(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    let mut steps = path.split('/').skip(usize::from(rooted)).peekable();
    while let Some(step) = steps.next() {
        let last = steps.peek().is_none();
        match step {
            "." | ".." => {
                if step == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            step => kept.push(step),
        }
    }
    let start = if rooted { "/" } else { "" };
    format!("{start}{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn references_are_resolved_against_a_base() {
        let check = |base: &str, reference: &str, expected: &str| {
            assert_eq!(resolve(base, reference), expected, "{base} {reference}");
        };
        let base = "http://a/b/c/d?q";
        check(base, "", "http://a/b/c/d?q");
        check(base, "g", "http://a/b/c/g");
        check(base, "./g/", "http://a/b/c/g/");
        check(base, "..", "http://a/b/");
        check(base, "../../../g", "http://a/g");
        check(base, "/./g/../h", "http://a/h");
        check(base, "?y", "http://a/b/c/d?y");
        check(base, "//g", "http://g");
        check(base, "urn:x:y", "urn:x:y");
        check("http://a", "g", "http://a/g");
        check("urn:uuid:1", "", "urn:uuid:1");
        check("", "tree.json", "tree.json");
        check("/base", "ref/x", "/ref/x");
        check("", "", "");
    }
}
