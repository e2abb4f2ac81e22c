//! The tool mode that a request over HTTP chooses.

use callgate::config::ToolMode;
use http::request::Parts;

/// The header with the mode of a session, or of a stateless request.
const HEADER: &str = "x-mcp-tool-mode";
/// The query parameter with the mode.
const QUERY: &str = "tool_mode";

/// The mode of a request, the header before the query; `None` if neither is there. The error is
/// for the client.
pub(crate) fn of_request(parts: &Parts) -> Result<Option<ToolMode>, String> {
    let mut headers = parts.headers.get_all(HEADER).iter();
    let header = headers
        .next()
        .map(|value| String::from_utf8_lossy(value.as_bytes()));
    if headers.next().is_some() {
        return Err("the request has two X-MCP-Tool-Mode headers".to_owned());
    }
    let query = parts.uri.query().unwrap_or_default().as_bytes();
    let mut words = url::form_urlencoded::parse(query).filter(|(key, _)| key == QUERY);
    let word = words.next();
    if words.next().is_some() {
        return Err("the request has tool_mode twice".to_owned());
    }
    let header = header.map(|word| word.trim().parse()).transpose()?;
    let query = word.map(|(_, word)| word.parse()).transpose()?;
    Ok(header.or(query))
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
        let mode = of_request(&parts);
        assert_eq!(mode, expected.map_err(str::to_owned), "{uri} {headers:?}");
    }

    #[test]
    fn the_header_comes_before_the_query() {
        let (native, discovery) = (Ok(Some(ToolMode::Native)), Ok(Some(ToolMode::Discovery)));
        check("/mcp?a=1", &[], Ok(None));
        check("/mcp?a=1&tool_mode=native", &[], native);
        check("/mcp?tool_mode=native", &[" discovery "], discovery);
        let none = r#""none" is not a mode; the modes are "code", "discovery" and "native""#;
        check("/mcp?tool_mode=none", &["code"], Err(none));
        check("/mcp?tool_mode=code", &["none"], Err(none));
        let two = "the request has two X-MCP-Tool-Mode headers";
        check("/mcp", &["code", "code"], Err(two));
        let two = "the request has tool_mode twice";
        check("/mcp?tool_mode=code&tool_mode=code", &[], Err(two));
    }
}
