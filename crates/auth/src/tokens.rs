//! Tokens, and asking a token endpoint for them: by the code of a login, by a
//! refresh token, or by the client's own credentials.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderValue, Request, Response, header};
use serde::{Deserialize, Serialize};
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::challenge::is_scope;
use super::http::Web;
use super::store::{ClientAuthentication, Record};

/// A token this close to its end is renewed before it is used, in seconds.
const MARGIN: u64 = 30;

/// What a login has that nobody may see. The `Debug` form shows none of it.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tokens {
    pub(super) access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<String>,
    /// Of a client that registered itself and was given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<String>,
    /// When the access token ends, in seconds since 1970; unknown if the
    /// authorization server does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<u64>,
    /// What was granted.
    pub(super) scopes: Vec<String>,
}

/// How a token is asked for.
pub(super) enum Ask<'a> {
    /// With what the browser brought back.
    Code {
        code: &'a str,
        /// As in the request that the code was given for.
        redirect_uri: &'a str,
        /// What that request had the challenge of (RFC 7636).
        verifier: &'a str,
        /// What that request asked for.
        scopes: &'a [String],
    },
    /// With the token of an earlier answer.
    Refresh {
        refresh_token: &'a str,
        scopes: &'a [String],
    },
    /// With the client's secret alone.
    ClientCredentials { scopes: &'a [String] },
}

/// Why there is no token.
#[derive(Debug)]
pub(super) enum Refused {
    /// The authorization server does not take the code, or does not take the
    /// refresh token any more.
    InvalidGrant,
    /// Anything else, in words that may be shown.
    Other(String),
}

impl Tokens {
    /// Whether it should be renewed before it is used.
    pub(super) fn is_stale(&self) -> bool {
        self.ends_within(MARGIN)
    }

    /// Whether it is of no use any more.
    pub(super) fn has_ended(&self) -> bool {
        self.ends_within(0)
    }

    fn ends_within(&self, seconds: u64) -> bool {
        self.expires_at
            .is_some_and(|expires_at| expires_at <= now().saturating_add(seconds))
    }

    /// As it is sent; `None` if it cannot be.
    pub(super) fn bearer(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.access_token)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("expires_at", &self.expires_at)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// Asks the token endpoint of a login.
pub(super) async fn request(
    web: &Web,
    record: &Record,
    client_secret: Option<&str>,
    ask: Ask<'_>,
) -> Result<Tokens, Refused> {
    let mut form: Vec<(&str, &str)> = Vec::new();
    let says_scope = matches!(ask, Ask::ClientCredentials { .. });
    let (scopes, earlier) = match ask {
        Ask::Code {
            code,
            redirect_uri,
            verifier,
            scopes,
        } => {
            form.push(("grant_type", "authorization_code"));
            form.push(("code", code));
            form.push(("redirect_uri", redirect_uri));
            form.push(("code_verifier", verifier));
            (scopes, None)
        }
        Ask::Refresh {
            refresh_token,
            scopes,
        } => {
            form.push(("grant_type", "refresh_token"));
            form.push(("refresh_token", refresh_token));
            (scopes, Some(refresh_token))
        }
        Ask::ClientCredentials { scopes } => {
            form.push(("grant_type", "client_credentials"));
            (scopes, None)
        }
    };
    let joined = scopes.join(" ");
    // A code is for what it was asked for, and a renewed token for what the one before was
    // (RFC 6749, section 6): what the server called that may be no name that can be asked for.
    if !scopes.is_empty() && says_scope {
        form.push(("scope", &joined));
    }
    form.push(("resource", &record.resource));
    let response = post(web, &record.token_endpoint, record, client_secret, form).await?;
    let mut tokens = read(response.status().as_u16(), response.body(), scopes)?;
    // Issuing a new one is optional (RFC 6749, section 6).
    if tokens.refresh_token.is_none() {
        tokens.refresh_token = earlier.map(str::to_owned);
    }
    Ok(tokens)
}

/// Has the authorization server take a login back (RFC 7009); whether it says
/// that it did. Taking the refresh token back ends the access token, too.
pub(super) async fn revoke(
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

/// Sends a form with the client's authentication.
async fn post(
    web: &Web,
    endpoint: &str,
    record: &Record,
    client_secret: Option<&str>,
    mut form: Vec<(&str, &str)>,
) -> Result<Response<Vec<u8>>, Refused> {
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
        _ => {
            form.push(("client_id", &record.client_id));
        }
    }
    let body = Serializer::new(String::new()).extend_pairs(form).finish();
    let request = request
        .body(body.into_bytes())
        .map_err(|_| Refused::Other("an endpoint's URL cannot be used".to_owned()))?;
    let sent = web.send(request).await;
    sent.map_err(|error| Refused::Other(error.to_string()))
}

/// RFC 6749, section 2.3.1: both are form-encoded first.
fn basic(id: &str, secret: &str) -> String {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret));
    format!("Basic {}", BASE64_STANDARD.encode(pair))
}

/// Reads the answer of a token endpoint. `asked` is what was granted where the
/// answer does not say.
fn read(status: u16, body: &[u8], asked: &[String]) -> Result<Tokens, Refused> {
    #[derive(Deserialize)]
    struct Granted {
        access_token: String,
        token_type: Option<String>,
        expires_in: Option<serde_json::Value>,
        refresh_token: Option<String>,
        scope: Option<String>,
    }
    let other = |reason: &str| Err(Refused::Other(reason.to_owned()));
    if status != 200 {
        let answered = format!("the authorization server answered {status}");
        return Err(match refusal(body) {
            Some(error) if error == "invalid_grant" => Refused::InvalidGrant,
            Some(error) => Refused::Other(format!("{answered}, {}", code(&error))),
            None => Refused::Other(answered),
        });
    }
    // A parser's message may quote a token.
    let Ok(granted) = object::<Granted>(body) else {
        return other("the authorization server's answer is not one with a token");
    };
    match granted.token_type {
        Some(kind) if kind.eq_ignore_ascii_case("bearer") => {}
        Some(_) => {
            return other(
                "the authorization server issued another kind of token than a bearer token",
            );
        }
        None => {
            return other("the authorization server does not say what kind of token it issued");
        }
    }
    // A number; some write it as a text.
    let lifetime = granted.expires_in.and_then(|seconds| {
        let number = seconds.as_f64();
        let number = number.or_else(|| seconds.as_str()?.parse().ok())?;
        Some(number.max(0.0) as u64)
    });
    let tokens = Tokens {
        access_token: granted.access_token,
        refresh_token: granted.refresh_token.filter(|token| !token.is_empty()),
        client_secret: None,
        expires_at: lifetime.map(|seconds| now().saturating_add(seconds)),
        scopes: match granted.scope {
            // Others cannot be asked for, and would be shown to people.
            Some(scope) => {
                let named = scope.split_whitespace().filter(|scope| is_scope(scope));
                named.map(str::to_owned).collect()
            }
            None => asked.to_vec(),
        },
    };
    if tokens.access_token.is_empty() || tokens.bearer().is_none() {
        return other("the authorization server issued a token that no header can carry");
    }
    Ok(tokens)
}

/// The error that an answer's body holds, in whatever words; see [`code`].
pub(super) fn refusal(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    let Refusal { error } = object(body).ok()?;
    Some(error)
}

/// Reads a JSON object. An array is refused, which serde would take for a struct.
fn object<T: serde::de::DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(body)?;
    serde_json::from_value(members.into())
}

/// An error code of OAuth as it may be shown: those have a small alphabet, and
/// anything else is somebody's own text.
pub(super) fn code(text: &str) -> String {
    let fit = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if !text.is_empty() && text.len() <= 64 && text.chars().all(fit) {
        format!("{text:?}")
    } else {
        "an error that is no OAuth code".to_owned()
    }
}

/// Whether a token for `resource` may go to `url`: the same origin, and a path
/// at or below the resource's.
pub(super) fn covers(resource: &str, url: &str) -> bool {
    let (Ok(resource), Ok(url)) = (Url::parse(resource), Url::parse(url)) else {
        return false;
    };
    if resource.origin() != url.origin() || !resource.origin().is_tuple() {
        return false;
    }
    let folder = resource.path().strip_suffix('/').unwrap_or(resource.path());
    match url.path().strip_prefix(folder) {
        Some(rest) => rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_token_may_go() {
        for (resource, url, may) in [
            ("https://a.example/mcp", "https://a.example/mcp", true),
            ("https://a.example/mcp", "https://a.example/mcp/x?y=1", true),
            ("https://a.example/mcp/", "https://a.example/mcp", true),
            ("https://a.example", "https://a.example/mcp", true),
            ("https://a.example:443/", "https://a.example/mcp", true),
            ("https://a.example/mcp", "https://a.example/mcp2", false),
            ("https://a.example/mcp", "https://a.example/", false),
            ("https://a.example/mcp", "https://a.example/mcp/../x", false),
            ("https://a.example/mcp", "http://a.example/mcp", false),
            ("https://a.example/mcp", "https://a.example:8443/mcp", false),
            ("https://a.example/mcp", "https://b.a.example/mcp", false),
            ("https://a.example", "https://a.example.evil/mcp", false),
            ("https://a.example", "https://a.example@evil/mcp", false),
            ("data:x", "data:x", false),
            ("", "", false),
        ] {
            assert_eq!(covers(resource, url), may, "{resource} {url}");
        }
    }

    #[track_caller]
    fn check(status: u16, body: &str, expected: &str) {
        let asked = ["asked".to_owned()];
        let shown = match read(status, body.as_bytes(), &asked) {
            Ok(tokens) => format!(
                "{} {:?} {:?} {}",
                tokens.access_token,
                tokens.refresh_token,
                tokens.scopes,
                tokens.expires_at.is_some()
            ),
            Err(Refused::InvalidGrant) => "invalid grant".to_owned(),
            Err(Refused::Other(reason)) => reason,
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn answers_of_a_token_endpoint() {
        check(
            200,
            r#"{"access_token":"a","token_type":"Bearer"}"#,
            r#"a None ["asked"] false"#,
        );
        check(
            200,
            r#"{"access_token":"a","token_type":"bearer","expires_in":1.5,"refresh_token":"r","scope":"x y"}"#,
            r#"a Some("r") ["x", "y"] true"#,
        );
        check(
            200,
            r#"{"access_token":"a","token_type":"bearer","expires_in":"3600","scope":""}"#,
            "a None [] true",
        );
        check(
            200,
            r#"{"access_token":"a","token_type":"bearer","scope":"x\u001b[31m y\u2028 z\nx:w"}"#,
            r#"a None ["y", "z", "x:w"] false"#,
        );
        check(
            200,
            r#"{"access_token":"a","token_type":"DPoP"}"#,
            "the authorization server issued another kind of token than a bearer token",
        );
        check(
            200,
            r#"{"access_token":"a"}"#,
            "the authorization server does not say what kind of token it issued",
        );
        check(
            200,
            r#"{"access_token":"a\nX: y","token_type":"bearer"}"#,
            "the authorization server issued a token that no header can carry",
        );
        check(
            200,
            r#"{"access_token":["t0ken"]}"#,
            "the authorization server's answer is not one with a token",
        );
        check(400, r#"{"error":"invalid_grant"}"#, "invalid grant");
        check(
            401,
            r#"{"error":"invalid_client"}"#,
            r#"the authorization server answered 401, "invalid_client""#,
        );
        check(
            400,
            r#"{"error":"the token t0ken is bad"}"#,
            "the authorization server answered 400, an error that is no OAuth code",
        );
        check(502, "<html>", "the authorization server answered 502");
    }

    #[test]
    fn a_token_is_renewed_before_it_ends() {
        let of = |expires_at| {
            let tokens = Tokens {
                access_token: String::new(),
                refresh_token: None,
                client_secret: None,
                expires_at,
                scopes: Vec::new(),
            };
            (tokens.is_stale(), tokens.has_ended())
        };
        assert_eq!(of(None), (false, false));
        assert_eq!(of(Some(now() + MARGIN + 60)), (false, false));
        assert_eq!(of(Some(now() + MARGIN / 2)), (true, false));
        assert_eq!(of(Some(now())), (true, true));
        assert_eq!(of(Some(0)), (true, true));
    }

    #[test]
    fn debug_shows_no_token() {
        let tokens = Tokens {
            access_token: "hunter2".to_owned(),
            refresh_token: Some("hunter2".to_owned()),
            client_secret: Some("hunter2".to_owned()),
            expires_at: Some(1),
            scopes: Vec::new(),
        };
        assert!(!format!("{tokens:?}").contains("hunter2"));
    }
}
