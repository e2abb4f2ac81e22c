//! The data of a login: a record, and the tokens.

use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;
use serde::{Deserialize, Serialize};

/// Seconds before its end at which a token is renewed.
const MARGIN: u64 = 30;

/// A login and its secrets.
#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) record: Record,
    pub(crate) tokens: Tokens,
}

/// A login without its secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// The server's name and URL in the configuration, for people who read the file.
    pub(crate) server: String,
    pub(crate) url: String,
    /// The resource that the tokens are for.
    pub(crate) resource: String,
    pub(crate) issuer: String,
    pub(crate) token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revocation_endpoint: Option<String>,
    /// The unique identifier of the login, which is no secret. A renewal does not change it. Empty
    /// for the client credentials grant.
    pub(crate) id: String,
    pub(crate) client: ClientAuthentication,
    pub(crate) client_id: String,
    /// The requested scopes, which may differ from the granted ones.
    pub(crate) asked: Vec<String>,
    /// The origin of the login's page, if a person approved that it is not the issuer's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approved: Option<String>,
    /// True if the tokens are in the system's keyring, and not in the file of the record.
    pub(crate) in_keyring: bool,
    /// True if the token was refused at its last use and cannot be renewed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ended: bool,
}

/// The authentication of a client at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ClientAuthentication {
    /// Only the client's identifier.
    None,
    /// The client's secret in the form.
    Post,
    /// The client's secret in a header.
    Basic,
}

/// The secrets of a login, which have no `Debug` form.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tokens {
    /// The identifier of the login. A keyring is not written at the same moment as the record, so
    /// its entry may belong to a different login.
    pub(crate) login: String,
    pub(crate) access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_token: Option<String>,
    /// The secret of a client that registered itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret: Option<String>,
    /// The end of the access token, in seconds since 1970, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<u64>,
    /// The granted scopes.
    pub(crate) scopes: Vec<String>,
}

impl Login {
    /// The scopes that a new login requests, too, so that it is not narrower than this one: the
    /// requested scopes that were granted. If the authorization server granted scopes with names
    /// of its own, all requested scopes, because these names do not say what they stand for.
    pub(crate) fn scopes_to_repeat(&self) -> Vec<String> {
        let (asked, granted) = (&self.record.asked, &self.tokens.scopes);
        let has_own_names = granted.iter().any(|scope| !asked.contains(scope));
        // The file may have been edited.
        let is_fit =
            |scope: &&String| is_scope(scope) && (has_own_names || granted.contains(*scope));
        asked.iter().filter(is_fit).cloned().collect()
    }
}

impl Tokens {
    /// True if the access token should be renewed before its next use.
    pub(crate) fn is_stale(&self) -> bool {
        self.ends_within(MARGIN)
    }

    /// True if the access token has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ends_within(0)
    }

    fn ends_within(&self, seconds: u64) -> bool {
        self.expires_at
            .is_some_and(|end| end <= now().saturating_add(seconds))
    }

    /// The `Authorization` header; `None` if the token does not fit in one.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        let mut header = HeaderValue::from_str(&format!("Bearer {}", self.access_token)).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

/// True if a word is a scope (RFC 6749, section 3.3) of a reasonable length.
pub(crate) fn is_scope(word: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !word.is_empty() && word.len() <= 256 && word.bytes().all(is_fit)
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_stale_shortly_before_its_end() {
        let state = |expires_at| {
            let tokens = Tokens {
                login: "x".to_owned(),
                access_token: "hunter2".to_owned(),
                refresh_token: None,
                client_secret: None,
                expires_at,
                scopes: Vec::new(),
            };
            (tokens.is_stale(), tokens.has_ended())
        };
        assert_eq!(state(None), (false, false));
        assert_eq!(state(Some(now() + MARGIN + 60)), (false, false));
        assert_eq!(state(Some(now() + MARGIN / 2)), (true, false));
        assert_eq!(state(Some(now())), (true, true));
    }
}
