//! Content blocks that a script emits with `mcp.emit`.

use callgate_sandbox::is_base64;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A content block (MCP 2025-11-25, server/tools, "Tool Result"), as the script gave it and
/// well-formed: base64 is base64, a URI has a scheme.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Emitted {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image {
        /// Its bytes as base64.
        data: String,
        /// Its type, such as `image/png`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// Its bytes as base64.
        data: String,
        /// Its type, such as `audio/wav`.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// The address of a resource.
    ResourceLink {
        /// The address.
        uri: String,
        /// The resource's name.
        name: String,
        /// Its name for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Its description.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Its type.
        #[serde(rename = "mimeType", default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// A resource with its content.
    Resource {
        /// The resource.
        resource: EmittedResource,
    },
}

/// A resource that a script emitted: it has either `text` or `blob`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct EmittedResource {
    /// Its address.
    pub uri: String,
    /// Its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its content, if that is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Its content as base64, if it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

impl Emitted {
    /// The block in a few words, for clients that cannot show it.
    #[must_use]
    pub fn summary(&self) -> String {
        let decoded = |data: &str| data.len() / 4 * 3;
        match self {
            Self::Text { text } => format!("text, {} bytes", text.len()),
            Self::Image { data, mime_type } => {
                format!("image, {mime_type}, {} bytes", decoded(data))
            }
            Self::Audio { data, mime_type } => {
                format!("audio, {mime_type}, {} bytes", decoded(data))
            }
            Self::ResourceLink { uri, .. } => format!("link to {uri}"),
            Self::Resource { resource } => {
                let text = resource.text.as_ref().map(String::len);
                let blob = resource.blob.as_deref().map(decoded);
                let bytes = text.or(blob).unwrap_or_default();
                format!("resource {}, {bytes} bytes", resource.uri)
            }
        }
    }

    /// Reads a block from a worker, which is hostile input. `runtime-js/20_mcp.js` refuses
    /// the same blocks.
    ///
    /// # Errors
    ///
    /// The problem, as a clause.
    pub(crate) fn read(block: &RawValue) -> Result<Self, String> {
        let block: Self = serde_json::from_str(block.get()).map_err(|error| error.to_string())?;
        match block.problem() {
            Some(problem) => Err(problem.to_owned()),
            None => Ok(block),
        }
    }

    fn problem(&self) -> Option<&'static str> {
        let (data, mime_type, uri) = match self {
            Self::Text { .. } => return None,
            Self::Image { data, mime_type } | Self::Audio { data, mime_type } => {
                (Some(data), Some(mime_type), None)
            }
            Self::ResourceLink { uri, mime_type, .. } => (None, mime_type.as_ref(), Some(uri)),
            Self::Resource { resource } => {
                if resource.text.is_some() == resource.blob.is_some() {
                    return Some("it has not either text or blob");
                }
                let mime_type = resource.mime_type.as_ref();
                (resource.blob.as_ref(), mime_type, Some(&resource.uri))
            }
        };
        if uri.is_some_and(|uri| !is_uri(uri)) {
            Some("its address is not a URI")
        } else if mime_type.is_some_and(|mime_type| !is_mime_type(mime_type)) {
            Some("its type is not a MIME type")
        } else if data.is_some_and(|data| !is_base64(data)) {
            Some("its data is not base64")
        } else {
            None
        }
    }
}

/// A scheme, and something printable after it.
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

/// Two parts with a slash between them, and maybe parameters.
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
    use serde_json::{Value, json};

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
            check(block, "it has not either text or blob");
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
