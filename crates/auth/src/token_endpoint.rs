//! Requests to a token endpoint and to a revocation endpoint.
//!
//! rmcp could send the token requests, but it accepts any kind of token, puts the answer's text
//! into its errors, logs the code, and offers no revocation.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{Request, Response, header};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::http::Web;
use crate::record::{ClientAuthentication, Record, Tokens, is_scope, now};

/// Bytes of a token, a code or a client's secret.
const MAX_SECRET: usize = 16 << 10;
/// Scopes of a list; further ones are ignored.
pub(crate) const MAX_SCOPES: usize = 256;

/// Why a request brought no token.
pub(crate) struct TokenError {
    /// A clause that quotes nothing of the answer but a known error code.
    pub(crate) reason: String,
    /// True if the code or the refresh token is not accepted.
    pub(crate) is_invalid_grant: bool,
}

impl From<String> for TokenError {
    fn from(reason: String) -> Self {
        Self {
            reason,
            is_invalid_grant: false,
        }
    }
}

/// Requests tokens from the token endpoint.
pub(crate) async fn request(
    web: &Web,
    record: &Record,
    client_secret: Option<&str>,
    grant: &[(&str, &str)],
    scopes: &[String],
) -> Result<Tokens, TokenError> {
    let mut form = grant.to_vec();
    form.push(("resource", &record.resource));
    let answer = post(web, &record.token_endpoint, record, client_secret, form).await?;
    let mut tokens = read(answer.status().as_u16(), answer.body(), scopes)?;
    tokens.login.clone_from(&record.id);
    Ok(tokens)
}

/// Revokes a login (RFC 7009). True if the authorization server confirms it.
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
) -> Result<Response<Vec<u8>>, String> {
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
    let request = request.map_err(|_| "an endpoint's URL cannot be used".to_owned())?;
    web.send(request).await
}

/// The `Authorization` header of a client with a secret (RFC 6749, section 2.3.1).
fn basic(id: &str, secret: &str) -> String {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret));
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

/// Reads the answer of a token endpoint. `scopes` are the granted ones if the answer has none.
fn read(status: u16, body: &[u8], scopes: &[String]) -> Result<Tokens, TokenError> {
    #[derive(Deserialize)]
    struct Issued {
        access_token: String,
        token_type: Option<String>,
        expires_in: Option<Value>,
        refresh_token: Option<String>,
        scope: Option<String>,
    }
    let unusable = |reason: &str| Err(format!("the authorization server {reason}").into());
    if status != 200 {
        let error = error_code(body);
        let shown = error
            .as_ref()
            .map_or(String::new(), |code| format!(", {code}"));
        return Err(TokenError {
            reason: format!("the authorization server answered {status}{shown}"),
            is_invalid_grant: error.as_deref() == Some("\"invalid_grant\""),
        });
    }
    // A parser's message may quote a token. serde alone would also read the struct from an array.
    let members = serde_json::from_slice::<Map<String, Value>>(body).ok();
    let issued = members.and_then(|it| serde_json::from_value::<Issued>(it.into()).ok());
    let Some(issued) = issued else {
        return unusable("sent an answer without a token");
    };
    match issued.token_type {
        None => return unusable("does not name the type of its token"),
        Some(kind) if !kind.eq_ignore_ascii_case("bearer") => {
            return unusable("issued a token that is not a bearer token");
        }
        Some(_) => {}
    }
    // Some servers write the number as a text.
    let lifetime = issued.expires_in.and_then(|seconds| {
        let number = seconds.as_f64();
        let number = number.or_else(|| seconds.as_str()?.parse().ok())?;
        Some(number.max(0.0) as u64)
    });
    let tokens = Tokens {
        login: String::new(),
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
        return unusable("issued a token that does not fit in a header");
    }
    let mut both = std::iter::once(&tokens.access_token).chain(&tokens.refresh_token);
    match both.find_map(|token| unfit(token)) {
        Some(fault) => unusable(&format!("issued a token {fault}")),
        None => Ok(tokens),
    }
}

/// Why a text cannot be a token, a code or a client's secret (RFC 6749, appendix A), if so.
pub(crate) fn unfit(secret: &str) -> Option<String> {
    let is_fit = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    if secret.len() > MAX_SECRET {
        return Some(format!("of more than {} KiB", MAX_SECRET >> 10));
    }
    (!secret.bytes().all(is_fit)).then(|| "with characters that OAuth does not allow".to_owned())
}

/// The error code in an answer's body, in a form that is safe to show.
pub(crate) fn error_code(body: &[u8]) -> Option<String> {
    let members: Map<String, Value> = serde_json::from_slice(body).ok()?;
    Some(shown_code(members.get("error")?.as_str()?))
}

/// An OAuth error code in quotes. Text outside the small alphabet of codes is not repeated.
pub(crate) fn shown_code(text: &str) -> String {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if !text.is_empty() && text.len() <= 64 && text.chars().all(is_fit) {
        format!("{text:?}")
    } else {
        "an unknown OAuth error code".to_owned()
    }
}

/// The first scopes in a list of an authorization server or a server. Words that are not scopes
/// cannot be requested, and must not be shown.
pub(crate) fn scopes_in(list: &str) -> Vec<String> {
    let words = list.split_whitespace().filter(|word| is_scope(word));
    words.take(MAX_SCOPES).map(str::to_owned).collect()
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
                "the authorization server issued a token that is not a bearer token",
            ),
            (
                200,
                r#"{"access_token":"a"}"#,
                "the authorization server does not name the type of its token",
            ),
            (
                200,
                r#"{"access_token":"a\nX: y","token_type":"bearer"}"#,
                "the authorization server issued a token that does not fit in a header",
            ),
            (
                200,
                r#"{"access_token":"a","token_type":"bearer","refresh_token":"é"}"#,
                "the authorization server issued a token with characters that OAuth does not allow",
            ),
            (
                200,
                r#"{"access_token":["t0ken"]}"#,
                "the authorization server sent an answer without a token",
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
                Err(error) if error.is_invalid_grant => format!("{} (true)", error.reason),
                Err(error) => error.reason,
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
            read(200, body.to_string().as_bytes(), &[]).map_err(|error| error.reason)
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
}
