//! The address of a page that a server wants opened: whoever is shown it may have it
//! opened with a click, so it is one of the web or nobody is asked.

use serde_json::Value;
use url::Url;

/// What is wrong with the `url` of an elicitation; nothing if it is a page of the web.
/// It quotes nothing of it.
pub(crate) fn fault(params: &Value) -> Option<String> {
    let Some(url) = params.get("url").and_then(Value::as_str) else {
        return Some("the page has no URL".to_owned());
    };
    match Url::parse(url) {
        Err(error) => Some(format!("the page has no valid URL: {error}")),
        // The parser refuses one of these without a host.
        Ok(url) if matches!(url.scheme(), "http" | "https") => None,
        Ok(_) => Some("the page is none of the web: its URL is not http or https".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pages_of_the_web_alone() {
        let check = |params: Value, expected: Option<&str>| {
            assert_eq!(fault(&params).as_deref(), expected, "{params}");
        };
        for url in [
            "https://example.com/key?a=b#c",
            "http://127.0.0.1:8080/",
            "HTTPS://example.com",
        ] {
            check(json!({ "url": url }), None);
        }
        let none = Some("the page is none of the web: its URL is not http or https");
        for url in [
            "javascript:alert(1)",
            " \tjava\nscript:alert(1)",
            "data:text/html,<script>alert(1)</script>",
            "file:///etc/passwd",
            "vscode://open?x",
            "https.example:x",
        ] {
            check(json!({ "url": url }), none);
        }
        let relative = Some("the page has no valid URL: relative URL without a base");
        check(json!({ "url": "//example.com" }), relative);
        let hostless = Some("the page has no valid URL: empty host");
        check(json!({ "url": "https://" }), hostless);
        for params in [json!({}), json!({ "url": 7 }), json!([])] {
            check(params, Some("the page has no URL"));
        }
    }
}
