//! Tokens, and the requests to a token endpoint and to a revocation endpoint.
//!
//! rmcp could send the token requests, but it takes any kind of token, puts the answer's text
//! into its errors, logs the code, and offers no revocation.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderValue, Request, Response, header};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::http::Web;
use crate::store::{ClientAuthentication, Record};

/// A token is renewed so many seconds before it ends.
const MARGIN: u64 = 30;
/// The longest token, code or client's secret, in bytes.
const MAX_SECRET: usize = 16 << 10;
/// The number of scopes of a list that count.
pub(crate) const MAX_SCOPES: usize = 256;

/// The secrets of a login, which have no `Debug` form.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tokens {
    pub(crate) access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_token: Option<String>,
    /// The secret of a client that registered itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret: Option<String>,
    /// The end of the access token, in seconds since 1970, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<u64>,
    /// The granted scopes.
    pub(crate) scopes: Vec<String>,
}

/// The reason why there is no token.
pub(crate) struct NoToken {
    /// In our own words.
    pub(crate) reason: String,
    /// True if the code or the refresh token is not accepted (any more).
    pub(crate) is_invalid_grant: bool,
}

impl NoToken {
    fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            is_invalid_grant: false,
        }
    }
}

impl Tokens {
    /// Tells whether to renew the access token before it is used.
    pub(crate) fn is_stale(&self) -> bool {
        self.ends_within(MARGIN)
    }

    /// Tells whether the access token has ended.
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

/// Asks the token endpoint for tokens.
pub(crate) async fn request(
    web: &Web,
    record: &Record,
    client_secret: Option<&str>,
    grant: &[(&str, &str)],
    scopes: &[String],
) -> Result<Tokens, NoToken> {
    let mut form = grant.to_vec();
    form.push(("resource", &record.resource));
    let answer = post(web, &record.token_endpoint, record, client_secret, form).await?;
    read(answer.status().as_u16(), answer.body(), scopes)
}

/// Revokes a login (RFC 7009), and tells whether the authorization server says that it did.
pub(crate) async fn revoke(
    web: &Web,
    record: &Record,
    tokens: &Tokens,
    client_secret: Option<&str>,
) -> bool {
    let Some(endpoint) = &record.revocation_endpoint else {
        return false;
    };
    let (token, kind) = match &tokens.refresh_token {
        Some(token) => (token, "refresh_token"),
        None => (&tokens.access_token, "access_token"),
    };
    let form = vec![("token", token.as_str()), ("token_type_hint", kind)];
    let answer = post(web, endpoint, record, client_secret, form).await;
    answer.is_ok_and(|answer| answer.status() == 200)
}

/// Posts a form with the client's authentication.
async fn post(
    web: &Web,
    endpoint: &str,
    record: &Record,
    client_secret: Option<&str>,
    mut form: Vec<(&str, &str)>,
) -> Result<Response<Vec<u8>>, NoToken> {
    let mut request = Request::post(endpoint)
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    match (record.client, client_secret) {
        (ClientAuthentication::Basic, Some(secret)) => {
            request = request.header(header::AUTHORIZATION, basic(&record.client_id, secret));
        }
        (ClientAuthentication::Post, Some(secret)) => {
            form.push(("client_id", &record.client_id));
            form.push(("client_secret", secret));
        }
        _ => form.push(("client_id", &record.client_id)),
    }
    let body = Serializer::new(String::new()).extend_pairs(form).finish();
    let request = request.body(body.into_bytes());
    let request = request.map_err(|_| NoToken::new("an endpoint's URL cannot be used"))?;
    web.send(request).await.map_err(NoToken::new)
}

/// The client's identifier and secret as a header (RFC 6749, section 2.3.1).
fn basic(id: &str, secret: &str) -> String {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret));
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

/// Reads the answer of a token endpoint.
fn read(status: u16, body: &[u8], scopes: &[String]) -> Result<Tokens, NoToken> {
    #[derive(Deserialize)]
    struct Issued {
        access_token: String,
        token_type: Option<String>,
        expires_in: Option<Value>,
        refresh_token: Option<String>,
        scope: Option<String>,
    }
    let other = |reason: &str| Err(NoToken::new(reason));
    if status != 200 {
        let error = error_code(body);
        let shown = error
            .as_ref()
            .map_or(String::new(), |code| format!(", {code}"));
        return Err(NoToken {
            reason: format!("the authorization server answered {status}{shown}"),
            is_invalid_grant: error.as_deref() == Some("\"invalid_grant\""),
        });
    }
    // A parser's message may quote a token.
    let Some(issued) = object::<Issued>(body) else {
        return other("the authorization server's answer is not one with a token");
    };
    let kind = issued.token_type;
    if kind.is_none() {
        return other("the authorization server does not say what kind of token it issued");
    }
    if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
        return other("the authorization server issued another kind of token than a bearer token");
    }
    // A number; some servers write it as a text.
    let lifetime = issued.expires_in.and_then(|seconds| {
        let number = seconds.as_f64();
        let number = number.or_else(|| seconds.as_str()?.parse().ok())?;
        Some(number.max(0.0) as u64)
    });
    let tokens = Tokens {
        access_token: issued.access_token,
        refresh_token: issued.refresh_token.filter(|token| !token.is_empty()),
        client_secret: None,
        expires_at: lifetime.map(|seconds| now().saturating_add(seconds)),
        scopes: match issued.scope {
            Some(scope) => scopes_in(&scope),
            None => scopes.to_vec(),
        },
    };
    if tokens.access_token.is_empty() || tokens.header().is_none() {
        return other("the authorization server issued a token that no header can carry");
    }
    let mut both = std::iter::once(&tokens.access_token).chain(&tokens.refresh_token);
    match both.find_map(|token| unfit(token)) {
        Some(fault) => other(&format!("the authorization server issued a token {fault}")),
        None => Ok(tokens),
    }
}

/// The fault of a text that cannot be a token, a code or a client's secret (RFC 6749,
/// appendix A), if it has one.
pub(crate) fn unfit(secret: &str) -> Option<String> {
    let is_fit = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if secret.len() > MAX_SECRET {
        return Some(format!("of more than {} KiB", MAX_SECRET >> 10));
    }
    (!secret.bytes().all(is_fit)).then(|| "with characters that OAuth does not allow".to_owned())
}

/// The error of an answer's body, as it may be shown.
pub(crate) fn error_code(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    object::<Refusal>(body).map(|refusal| shown_code(&refusal.error))
}

/// An error code of OAuth, quoted. Codes have a small alphabet; other text is not repeated.
pub(crate) fn shown_code(text: &str) -> String {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if !text.is_empty() && text.len() <= 64 && text.chars().all(is_fit) {
        format!("{text:?}")
    } else {
        "an unknown OAuth error code".to_owned()
    }
}

/// The first scopes in a list of an authorization server or a server. Other words cannot be
/// asked for, and must not be shown.
pub(crate) fn scopes_in(list: &str) -> Vec<String> {
    let words = list.split_whitespace().filter(|word| is_scope(word));
    words.take(MAX_SCOPES).map(str::to_owned).collect()
}

/// Tells whether a word is a scope (RFC 6749, section 3.3) of a sensible length.
pub(crate) fn is_scope(word: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !word.is_empty() && word.len() <= 256 && word.bytes().all(is_fit)
}

/// Reads a JSON object. serde alone would take an array for a struct, too.
fn object<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    let members: Map<String, Value> = serde_json::from_slice(body).ok()?;
    serde_json::from_value(members.into()).ok()
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
    fn token_endpoint_answers_are_parsed() {
        for (status, body, expected) in [
            (
                200,
                r#"{"access_token":"a","token_type":"Bearer"}"#,
                r#"a None ["asked"] false"#,
            ),
            (
                200,
                r#"{"access_token":"a","token_type":"bearer","expires_in":1.5,"refresh_token":"r","scope":"x y"}"#,
                r#"a Some("r") ["x", "y"] true"#,
            ),
            (
                200,
                r#"{"access_token":"a","token_type":"bearer","expires_in":"3600","scope":""}"#,
                "a None [] true",
            ),
            (
                200,
                r#"{"access_token":"a","token_type":"bearer","scope":"x\u001b[31m y\u2028 z\nx:w"}"#,
                r#"a None ["y", "z", "x:w"] false"#,
            ),
            (
                200,
                r#"{"access_token":"a","token_type":"DPoP"}"#,
                "the authorization server issued another kind of token than a bearer token",
            ),
            (
                200,
                r#"{"access_token":"a"}"#,
                "the authorization server does not say what kind of token it issued",
            ),
            (
                200,
                r#"{"access_token":"a\nX: y","token_type":"bearer"}"#,
                "the authorization server issued a token that no header can carry",
            ),
            (
                200,
                r#"{"access_token":"a","token_type":"bearer","refresh_token":"é"}"#,
                "the authorization server issued a token with characters that OAuth does not allow",
            ),
            (
                200,
                r#"{"access_token":["t0ken"]}"#,
                "the authorization server's answer is not one with a token",
            ),
            (
                400,
                r#"{"error":"invalid_grant"}"#,
                r#"the authorization server answered 400, "invalid_grant" (true)"#,
            ),
            (
                401,
                r#"{"error":"invalid_client"}"#,
                r#"the authorization server answered 401, "invalid_client""#,
            ),
            (
                400,
                r#"{"error":"the token t0ken is bad"}"#,
                "the authorization server answered 400, an unknown OAuth error code",
            ),
            (502, "<html>", "the authorization server answered 502"),
        ] {
            let shown = match read(status, body.as_bytes(), &["asked".to_owned()]) {
                Ok(tokens) => {
                    let ends = tokens.expires_at.is_some();
                    let Tokens {
                        access_token,
                        refresh_token,
                        scopes,
                        ..
                    } = tokens;
                    format!("{access_token} {refresh_token:?} {scopes:?} {ends}")
                }
                Err(none) if none.is_invalid_grant => format!("{} (true)", none.reason),
                Err(none) => none.reason,
            };
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn long_tokens_are_refused() {
        let read = |access: usize, refresh: usize| {
            let (access, refresh) = ("ab".repeat(access / 2), "c".repeat(refresh));
            let body = serde_json::json!({
                "access_token": access, "token_type": "bearer", "refresh_token": refresh,
            });
            read(200, body.to_string().as_bytes(), &[]).map_err(|none| none.reason)
        };
        assert!(read(MAX_SECRET, MAX_SECRET).is_ok());
        for (access, refresh) in [(MAX_SECRET + 2, 1), (2, MAX_SECRET + 1)] {
            let reason = read(access, refresh).err();
            let expected = "the authorization server issued a token of more than 16 KiB";
            assert_eq!(reason.as_deref(), Some(expected));
        }
    }

    #[test]
    fn scopes_of_a_long_list_are_bounded() {
        let list: Vec<String> = (0..10_000).map(|n| format!("scope-{n}")).collect();
        assert_eq!(scopes_in(&list.join(" ")), list[..MAX_SCOPES]);
    }

    #[test]
    fn a_token_is_renewed_before_it_ends() {
        let of = |expires_at| {
            let tokens = Tokens {
                access_token: "hunter2".to_owned(),
                refresh_token: Some("hunter2".to_owned()),
                client_secret: Some("hunter2".to_owned()),
                expires_at,
                scopes: Vec::new(),
            };
            (tokens.is_stale(), tokens.has_ended())
        };
        assert_eq!(of(None), (false, false));
        assert_eq!(of(Some(now() + MARGIN + 60)), (false, false));
        assert_eq!(of(Some(now() + MARGIN / 2)), (true, false));
        assert_eq!(of(Some(now())), (true, true));
    }
}
