//! What must not appear in a message: the values a server was given to keep.

use std::fmt;

use serde_json::Value;

use crate::shape::cut_message;
use crate::spec::{Http, Stdio, Transport};

/// Values shorter than this are left alone: they are settings such as `1` or
/// `true`, and hiding every `1` would make messages useless.
const SHORTEST_SECRET: usize = 6;

/// The values of a server's environment and headers, and the secret parts of
/// its URL, each with the name to show in its place.
#[derive(Clone, Default)]
pub(crate) struct Secrets {
    values: Vec<(String, String)>,
}

impl Secrets {
    /// What is secret about a transport.
    pub(crate) fn of(transport: &Transport) -> Self {
        let mut values = Vec::new();
        match transport {
            Transport::Stdio(Stdio { env, .. }) => {
                for (name, value) in env {
                    if name != "PATH" && name != "HOME" {
                        values.push((name.clone(), value.clone()));
                    }
                }
            }
            Transport::Http(Http { url, headers }) => {
                for (name, value) in headers {
                    values.push((name.clone(), value.clone()));
                    // A server that repeats a token does so without its scheme.
                    if let Some((_scheme, token)) = value.split_once(' ') {
                        values.push((name.clone(), token.to_owned()));
                    }
                }
                if let Some((_, query)) = url.split_once('?') {
                    values.push(("URL query".to_owned(), query.to_owned()));
                }
                let authority = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                let authority = authority.split('/').next().unwrap_or_default();
                if let Some((user, _host)) = authority.rsplit_once('@') {
                    values.push(("URL user".to_owned(), user.to_owned()));
                }
            }
        }
        values.retain(|(_, value)| value.len() >= SHORTEST_SECRET);
        // A secret that holds another one must go first, or its rest would stay.
        values.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        Self { values }
    }

    /// What a server says of a failure, as it may be passed on: without secrets and not too long.
    pub(crate) fn message(&self, text: &str) -> String {
        // First the secrets: one that the cut goes through would not be found.
        let mut message = self.redact(text);
        cut_message(&mut message);
        message
    }

    /// Replaces the secrets in every string and key of a JSON value.
    pub(crate) fn redact_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_value(item)),
            Value::Object(members) => {
                for (key, mut member) in std::mem::take(members) {
                    self.redact_value(&mut member);
                    members.insert(self.redact(&key), member);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// `text` with every secret replaced by its name.
    pub(crate) fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.values {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), &format!("[{name}]"));
            }
        }
        text
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.values.len())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_form_of_a_secret_goes() {
        let http = Transport::Http(Http {
            url: "https://bob:pa55word@h/mcp?api_key=k1234567".to_owned(),
            headers: BTreeMap::from([(
                "Authorization".to_owned(),
                "Bearer s3cr3t-token".to_owned(),
            )]),
        });
        let secrets = Secrets::of(&http);
        assert_eq!(
            secrets.redact(
                "no s3cr3t-token, no Bearer s3cr3t-token, no bob:pa55word@h?api_key=k1234567"
            ),
            "no [Authorization], no [Authorization], no [URL user]@h?[URL query]"
        );
        let mut value = serde_json::json!({
            "s3cr3t-token": [1, "Bearer s3cr3t-token", { "a": "k1234567?", "b": null }]
        });
        secrets.redact_value(&mut value);
        assert_eq!(
            value.to_string(),
            r#"{"[Authorization]":[1,"[Authorization]",{"a":"k1234567?","b":null}]}"#
        );
    }
}
