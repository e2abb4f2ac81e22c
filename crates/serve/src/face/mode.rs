//! The tool mode that a request over HTTP chooses.

use http::request::Parts;

use crate::config::{InvalidValue, ServeConfig, ToolMode};

/// The header with the mode of a session, or of a stateless request.
const HEADER: &str = "x-mcp-tool-mode";
/// The query parameter with the mode.
const QUERY: &str = "tool_mode";

/// The mode of a request, if the client may choose it. The error is for the client.
pub(crate) fn of_request(parts: &Parts, options: &ServeConfig) -> Result<ToolMode, String> {
    let chosen = chosen(parts)?.unwrap_or(options.mode);
    let modes = options.modes.as_ref();
    if chosen == options.mode || modes.is_none_or(|modes| modes.contains(&chosen)) {
        return Ok(chosen);
    }
    Err(format!(
        "the mode \"{chosen}\" is not open to clients of this server; its mode is \"{}\"",
        options.mode
    ))
}

/// The mode in a request's header, or else in its query.
fn chosen(parts: &Parts) -> Result<Option<ToolMode>, String> {
    let header = parts.headers.get(HEADER);
    let header = header.map(|word| String::from_utf8_lossy(word.as_bytes()));
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let mut query = url::form_urlencoded::parse(query);
    let query = || Some(query.find(|(key, _)| key == QUERY)?.1);
    let word = header.or_else(query);
    let parsed = word.map(|word| word.trim().parse());
    parsed
        .transpose()
        .map_err(|error: InvalidValue| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str, headers: &[&str], expected: Result<Option<ToolMode>, &str>) {
        let mut request = http::Request::builder().uri(uri);
        for header in headers {
            request = request.header("X-MCP-Tool-Mode", *header);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        let mode = chosen(&parts);
        assert_eq!(mode, expected.map_err(str::to_owned), "{uri} {headers:?}");
    }

    #[test]
    fn the_header_comes_before_the_query() {
        let (native, discovery) = (Ok(Some(ToolMode::Native)), Ok(Some(ToolMode::Discovery)));
        check("/mcp?a=1", &[], Ok(None));
        check("/mcp?a=1&tool_mode=native", &[], native);
        check("/mcp?tool_mode=native", &[" discovery "], discovery);
        let none = r#""none" is not a mode; the modes are "code", "discovery" and "native""#;
        check("/mcp?tool_mode=none", &[], Err(none));
        check("/mcp?tool_mode=code", &["none"], Err(none));
    }
}
