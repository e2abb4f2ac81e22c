//! Which tools a client asked to see.

use callgate::config::{ToolMode, UnknownToolMode};
use http::request::Parts;

/// The header that says the mode of a session, or of a request where there are
/// none.
pub(crate) const HEADER: &str = "x-mcp-tool-mode";
/// The member of the query that does.
pub(crate) const QUERY: &str = "tool_mode";

/// The mode that a request over HTTP asks for: its header before its query;
/// `None` if it asks for none.
///
/// # Errors
///
/// [`UnknownToolMode`], whose text is for the client.
pub(crate) fn asked(parts: &Parts) -> Result<Option<ToolMode>, UnknownToolMode> {
    if let Some(value) = parts.headers.get(HEADER) {
        let word = String::from_utf8_lossy(value.as_bytes());
        return word.trim().parse().map(Some);
    }
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let said = url::form_urlencoded::parse(query).find(|(key, _)| key == QUERY);
    said.map(|(_, word)| word.parse()).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str, header: Option<&str>, expected: Result<Option<ToolMode>, &str>) {
        let mut request = http::Request::builder().uri(uri);
        if let Some(header) = header {
            request = request.header("X-MCP-Tool-Mode", header);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let asked = asked(&parts).map_err(|error| error.to_string());
        assert_eq!(asked, expected.map_err(str::to_owned), "{uri} {header:?}");
    }

    #[test]
    fn the_header_comes_before_the_query() {
        check("/mcp", None, Ok(None));
        check("/mcp?a=1", None, Ok(None));
        check(
            "/mcp?a=1&tool_mode=native",
            None,
            Ok(Some(ToolMode::Native)),
        );
        check(
            "/mcp?tool_mode=native",
            Some(" discovery "),
            Ok(Some(ToolMode::Discovery)),
        );
        check(
            "/mcp?tool_mode=none",
            Some("code"),
            Ok(Some(ToolMode::Code)),
        );
    }

    #[test]
    fn words_that_are_no_mode() {
        let none = r#""none" is no mode; the modes are "code", "discovery" and "native""#;
        check("/mcp?tool_mode=none", None, Err(none));
        check("/mcp?tool_mode=code", Some("none"), Err(none));
        let empty = r#""" is no mode; the modes are "code", "discovery" and "native""#;
        check("/mcp?tool_mode", None, Err(empty));
        let cut = format!(
            r#""{}" is no mode; the modes are "code", "discovery" and "native""#,
            "x".repeat(40)
        );
        check("/mcp", Some(&"x".repeat(99)), Err(&cut));
    }
}
