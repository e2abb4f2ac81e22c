//! Content blocks that a script emits with `mcp.emit`.

use callgate_sandbox::is_base64;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The required and the optional members of blocks by type, as `runtime-js/20_mcp.js` checks them.
const BLOCKS: [(&str, &[&str], &[&str]); 4] = [
    ("text", &["type", "text"], &[]),
    ("image", &["type", "data", "mimeType"], &[]),
    ("audio", &["type", "data", "mimeType"], &[]),
    (
        "resource_link",
        &["type", "uri", "name"],
        &["title", "description", "mimeType"],
    ),
];

/// A well-formed content block of a script (MCP 2025-11-25, server/tools, "Tool Result"): base64 is
/// base64, a URI has a scheme.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Emitted(Map<String, Value>);

impl Emitted {
    /// The block in a few words, for clients that cannot show it.
    pub fn summary(&self) -> String {
        let resource = self.0.get("resource").and_then(Value::as_object);
        let block = resource.unwrap_or(&self.0);
        let text = |name: &str| block.get(name).and_then(Value::as_str);
        let [uri, mime_type] = ["uri", "mimeType"].map(|name| text(name).unwrap_or_default());
        let data = text("data").or_else(|| text("blob"));
        let bytes = match data {
            Some(data) => data.len() / 4 * 3,
            None => text("text").map_or(0, str::len),
        };
        let kind = self.0.get("type").and_then(Value::as_str);
        match kind.unwrap_or_default() {
            "text" => format!("text, {bytes} bytes"),
            "resource_link" => format!("link to {uri}"),
            "resource" => format!("resource {uri}, {bytes} bytes"),
            kind => format!("{kind}, {mime_type}, {bytes} bytes"),
        }
    }

    /// Reads a block from a worker, which is hostile input.
    /// The error: the problem, as a clause.
    pub(crate) fn read(block: &RawValue) -> Result<Self, String> {
        let block: Map<String, Value> =
            serde_json::from_str(block.get()).map_err(|error| error.to_string())?;
        let kind = block.get("type").and_then(Value::as_str);
        if kind == Some("resource") {
            let resource = block.get("resource").and_then(Value::as_object);
            let resource = resource.filter(|_| block.len() == 2);
            check(
                resource.ok_or("it has no resource, or further members")?,
                &["uri"],
                &["mimeType", "text", "blob"],
            )?;
            if resource.is_some_and(|it| it.contains_key("text") == it.contains_key("blob")) {
                return Err("its resource must have either text or blob".to_owned());
            }
        } else {
            let known = BLOCKS.iter().find(|(name, ..)| kind == Some(name));
            let (_, required, optional) = known.ok_or("its type is unknown")?;
            check(&block, required, optional)?;
        }
        Ok(Self(block))
    }
}

/// Checks that all members of a block or resource are known texts.
fn check(
    members: &Map<String, Value>,
    required: &[&str],
    optional: &[&str],
) -> Result<(), &'static str> {
    if required.iter().any(|name| !members.contains_key(*name)) {
        return Err("a member is missing");
    }
    for (name, value) in members {
        let name = name.as_str();
        let is_known = required.contains(&name) || optional.contains(&name);
        let text = value.as_str().filter(|_| is_known);
        let text = text.ok_or("it has an unknown member, or a member that is not a text")?;
        match name {
            "uri" if !is_uri(text) => return Err("its address is not a URI"),
            "mimeType" if !is_mime_type(text) => return Err("its type is not a MIME type"),
            "data" | "blob" if !is_base64(text) => return Err("its data is not base64"),
            _ => {}
        }
    }
    Ok(())
}

/// True for a scheme with something printable after it.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(is_scheme)
        && !rest.is_empty()
        && rest.bytes().all(|byte| byte.is_ascii_graphic())
}

/// True for two parts with a slash between them, perhaps with parameters.
fn is_mime_type(text: &str) -> bool {
    text.split_once('/').is_some_and(|(kind, rest)| {
        !kind.is_empty()
            && kind.bytes().all(|byte| byte.is_ascii_graphic())
            && !rest.is_empty()
            && rest
                .bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_graphic())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(block: &Value) -> Result<Emitted, String> {
        Emitted::read(&serde_json::value::to_raw_value(block).expect("JSON"))
    }

    #[test]
    fn blocks_are_read_and_written() {
        for (block, summary) in [
            (json!({ "type": "text", "text": "ü" }), "text, 2 bytes"),
            (
                json!({ "type": "image", "data": "YWJj", "mimeType": "image/png" }),
                "image, image/png, 3 bytes",
            ),
            (
                json!({ "type": "audio", "data": "", "mimeType": "audio/wav; rate=8000" }),
                "audio, audio/wav; rate=8000, 0 bytes",
            ),
            (
                json!({ "type": "resource_link", "uri": "a:b", "name": "n", "title": "t" }),
                "link to a:b",
            ),
            (
                json!({ "type": "resource", "resource": {
                    "uri": "file:///a", "mimeType": "a/b", "blob": "YQ=="
                } }),
                "resource file:///a, 3 bytes",
            ),
        ] {
            let read = read(&block).unwrap_or_else(|problem| panic!("{block}: {problem}"));
            assert_eq!(read.summary(), summary);
            assert_eq!(serde_json::to_value(&read).expect("JSON"), block);
        }
    }

    #[test]
    fn invalid_blocks_are_refused() {
        let check = |block: Value, problem: &str| {
            assert_eq!(read(&block).unwrap_err(), problem, "{block}");
        };
        let image =
            |data: &str, mime: &str| json!({ "type": "image", "data": data, "mimeType": mime });
        check(image("Y", "image/png"), "its data is not base64");
        for mime in [
            "",
            "image",
            "/png",
            "image/",
            "im age/png",
            "image/p\nng",
            "ü/ü",
        ] {
            check(image("", mime), "its type is not a MIME type");
        }
        for uri in ["", "a", "a:", ":b", "1:b", "a:b c", "a:\n", "a:ü"] {
            let link = json!({ "type": "resource_link", "uri": uri, "name": "" });
            check(link, "its address is not a URI");
        }
        for resource in [
            json!({ "uri": "a:b", "text": "", "blob": "" }),
            json!({ "uri": "a:b" }),
        ] {
            let block = json!({ "type": "resource", "resource": resource });
            check(block, "its resource must have either text or blob");
        }
        for form in [
            json!([]),
            json!({ "type": "tool_use" }),
            json!({ "type": "text", "text": 1 }),
            json!({ "type": "text", "text": "", "_meta": {} }),
        ] {
            assert!(read(&form).is_err(), "{form}");
        }
    }
}
