//! Checks of a JWT as an access token (RFC 9068; RFC 8725 for the dangers).

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde_json::{Map, Value};

/// The limit of a token, in bytes.
const MAX_TOKEN: usize = 16 << 10;
/// The limit of a key id, in bytes.
const MAX_KID: usize = 256;
/// The limit of `sub`, in bytes.
const MAX_SUBJECT: usize = 255;
/// The difference that clocks may have, in seconds.
const LEEWAY: u64 = 60;

/// Reads a token's header, which is not verified. Keys and URLs in it are ignored.
pub(super) fn read_header(token: &str, allowed: &[Algorithm]) -> Result<Header, String> {
    if token.len() > MAX_TOKEN {
        return Err(format!("the token has more than {MAX_TOKEN} bytes"));
    }
    if token.split('.').count() != 3 {
        return Err("the token is not a signed JWT".to_owned());
    }
    // Unknown algorithms, such as "none", fail here.
    let header = decode_header(token).map_err(|_| {
        "the token's header cannot be read, or its algorithm is not accepted".to_owned()
    })?;
    if !allowed.contains(&header.alg) {
        return Err("the token's algorithm is not accepted".to_owned());
    }
    if header.crit.is_some() || header.enc.is_some() || header.zip.is_some() {
        return Err("the token's header requires unsupported extensions".to_owned());
    }
    let is_access_token = header.typ.as_deref().is_none_or(|typ| {
        let typ = typ.to_ascii_lowercase();
        matches!(typ.as_str(), "jwt" | "at+jwt" | "application/at+jwt")
    });
    if !is_access_token {
        return Err("the token is not an access token".to_owned());
    }
    if header.kid.as_ref().is_some_and(|kid| kid.len() > MAX_KID) {
        return Err("the token's key id is too long".to_owned());
    }
    Ok(header)
}

/// The claims of a token that is signed by one of the keys, for this audience, by this issuer,
/// and valid now.
pub(super) fn verify(
    token: &str,
    algorithm: Algorithm,
    keys: &[Jwk],
    issuer: &str,
    audience: &str,
) -> Result<Map<String, Value>, String> {
    let mut validation = Validation::new(algorithm);
    validation.leeway = LEEWAY;
    validation.validate_nbf = true;
    validation.set_issuer(&[issuer]);
    validation.set_audience(&[audience]);
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    let mut why = "the token is signed with a key that its issuer does not have".to_owned();
    for key in keys {
        let decoded = DecodingKey::from_jwk(key)
            .and_then(|key| decode::<Map<String, Value>>(token, &key, &validation));
        match decoded {
            // `decode` also accepts a list of issuers if one of them matches.
            Ok(token) if token.claims.get("iss").and_then(Value::as_str) != Some(issuer) => {
                return Err("the token's issuer is not trusted".to_owned());
            }
            Ok(token) => return Ok(token.claims),
            Err(error) => why = explain(error.kind()),
        }
    }
    Err(why)
}

/// The owner of a token.
pub(super) fn subject(claims: &Map<String, Value>) -> Result<String, String> {
    let subject = claims.get("sub").and_then(Value::as_str);
    let subject = subject.unwrap_or_default();
    if subject.is_empty() || subject.len() > MAX_SUBJECT || subject.contains(char::is_control) {
        return Err("the token has no usable owner (\"sub\")".to_owned());
    }
    Ok(subject.to_owned())
}

/// The scopes of a token: `scope` (RFC 8693, section 4.2), or `scp`, which some servers write.
pub(super) fn scopes(claims: &Map<String, Value>) -> Vec<&str> {
    match claims.get("scope").or_else(|| claims.get("scp")) {
        Some(Value::String(text)) => text.split_whitespace().collect(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn explain(kind: &ErrorKind) -> String {
    match kind {
        ErrorKind::ExpiredSignature => "the token has expired".to_owned(),
        ErrorKind::ImmatureSignature => "the token is not valid yet".to_owned(),
        ErrorKind::InvalidIssuer => "the token's issuer is not trusted".to_owned(),
        ErrorKind::InvalidAudience => "the token is for a different audience".to_owned(),
        ErrorKind::InvalidSignature => "the token's signature is wrong".to_owned(),
        ErrorKind::MissingRequiredClaim(claim) => format!("the token has no {claim:?}"),
        _ => "the token cannot be read".to_owned(),
    }
}
