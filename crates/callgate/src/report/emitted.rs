//! What a script hands to its caller besides its output: content blocks as MCP
//! has them.

use std::fmt;

use callgate_sandbox::is_base64;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A content block that a script emitted with `mcp.emit` (MCP 2025-11-25,
/// server/tools, "Tool Result"). Its members are as they came from the script,
/// but well-formed: base64 is base64, a URI has a scheme.
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
    /// Sound.
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
        /// What it is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Its type.
        #[serde(rename = "mimeType", default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// A resource with what is in it.
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
    /// What is in it, if that is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What is in it as base64, if it is anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

impl Emitted {
    /// What it is, in a few words: for those who cannot see it.
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

    /// The block in this JSON text of a worker's, which is hostile input.
    ///
    /// # Errors
    ///
    /// What is wrong with it. A worker that is what it should be sends none of
    /// that: `runtime-js/20_mcp.js` asks for the same.
    pub(crate) fn read(block: &RawValue) -> Result<Self, Unfit> {
        let block: Self =
            serde_json::from_str(block.get()).map_err(|error| Unfit::Form(error.to_string()))?;
        block.check()?;
        Ok(block)
    }

    fn check(&self) -> Result<(), Unfit> {
        let unless = |good: bool, unfit: Unfit| if good { Ok(()) } else { Err(unfit) };
        match self {
            Self::Text { .. } => Ok(()),
            Self::Image { data, mime_type } | Self::Audio { data, mime_type } => {
                unless(is_base64(data), Unfit::Base64)?;
                unless(is_mime_type(mime_type), Unfit::MimeType)
            }
            Self::ResourceLink { uri, mime_type, .. } => {
                unless(is_uri(uri), Unfit::Uri)?;
                unless(
                    mime_type.as_deref().is_none_or(is_mime_type),
                    Unfit::MimeType,
                )
            }
            Self::Resource { resource } => {
                unless(is_uri(&resource.uri), Unfit::Uri)?;
                let mime_type = resource.mime_type.as_deref();
                unless(mime_type.is_none_or(is_mime_type), Unfit::MimeType)?;
                unless(
                    resource.text.is_some() != resource.blob.is_some(),
                    Unfit::Contents,
                )?;
                unless(
                    resource.blob.as_deref().is_none_or(is_base64),
                    Unfit::Base64,
                )
            }
        }
    }
}

/// What is wrong with a block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    Form(String),
    Base64,
    MimeType,
    Uri,
    Contents,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form(error) => error,
            Self::Base64 => "its data is no base64",
            Self::MimeType => "its type is no MIME type",
            Self::Uri => "its address is no URI",
            Self::Contents => "it has not either text or blob",
        })
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

    fn read(block: &Value) -> Result<Emitted, Unfit> {
        Emitted::read(&serde_json::value::to_raw_value(block).expect("JSON"))
    }

    /// Is well-formed, and is written as it was read.
    fn good(block: Value, summary: &str) {
        let read = read(&block).unwrap_or_else(|unfit| panic!("{block}: {unfit}"));
        assert_eq!(read.summary(), summary);
        assert_eq!(serde_json::to_value(&read).expect("JSON"), block);
    }

    #[test]
    fn blocks_are_read_and_written() {
        good(json!({ "type": "text", "text": "ü" }), "text, 2 bytes");
        good(
            json!({ "type": "image", "data": "YWJj", "mimeType": "image/png" }),
            "image, image/png, 3 bytes",
        );
        good(
            json!({ "type": "audio", "data": "", "mimeType": "audio/wav; rate=8000" }),
            "audio, audio/wav; rate=8000, 0 bytes",
        );
        good(
            json!({ "type": "resource_link", "uri": "a:b", "name": "n", "title": "t" }),
            "link to a:b",
        );
        good(
            json!({ "type": "resource", "resource": { "uri": "file:///a", "text": "abc" } }),
            "resource file:///a, 3 bytes",
        );
        good(
            json!({ "type": "resource", "resource": {
                "uri": "file:///a", "blob": "YQ==", "mimeType": "a/b"
            } }),
            "resource file:///a, 3 bytes",
        );
    }

    #[test]
    fn blocks_of_a_hostile_worker_are_refused() {
        let image =
            |data: &str, mime: &str| json!({ "type": "image", "data": data, "mimeType": mime });
        assert_eq!(read(&image("Y", "image/png")), Err(Unfit::Base64));
        for mime in [
            "",
            "image",
            "/png",
            "image/",
            "im age/png",
            "image/p\nng",
            "ü/ü",
        ] {
            assert_eq!(read(&image("", mime)), Err(Unfit::MimeType), "{mime}");
        }
        let link = |uri: &str| json!({ "type": "resource_link", "uri": uri, "name": "" });
        for uri in ["", "a", "a:", ":b", "1:b", "a:b c", "a:\n", "a:ü"] {
            assert_eq!(read(&link(uri)), Err(Unfit::Uri), "{uri}");
        }
        let resource = |resource: Value| json!({ "type": "resource", "resource": resource });
        let both = json!({ "uri": "a:b", "text": "", "blob": "" });
        assert_eq!(read(&resource(both)), Err(Unfit::Contents));
        assert_eq!(
            read(&resource(json!({ "uri": "a:b" }))),
            Err(Unfit::Contents)
        );
        for form in [
            json!(null),
            json!([]),
            json!({}),
            json!({ "type": "tool_use" }),
            json!({ "type": "text" }),
            json!({ "type": "text", "text": 1 }),
            json!({ "type": "text", "text": "", "_meta": {} }),
        ] {
            assert!(matches!(read(&form), Err(Unfit::Form(_))), "{form}");
        }
    }
}
