//! What an authorization server publishes of itself, at the places that its
//! issuer identifier leads to (RFC 8414, section 3; OpenID Connect Discovery).
//!
//! A server names its authorization server by any URL, and the document there
//! may name any issuer. Only what the issuer's own places say can be trusted to
//! be of that issuer: else a server could have the code of another issuer's
//! login sent to a token endpoint of its own.

use http::header::{ACCEPT, LOCATION};
use http::{Request, Response, StatusCode};
use rmcp::transport::auth::AuthorizationMetadata;
use url::Url;

use super::http::Web;

/// How many redirects are followed, each within one origin.
const MAX_REDIRECTS: usize = 5;

/// Reads the issuer's metadata where it has to be.
///
/// # Errors
///
/// Why there is none that can be trusted.
pub(super) async fn published(web: &Web, issuer: &str) -> Result<AuthorizationMetadata, String> {
    let url = Url::parse(issuer).map_err(|error| format!("its issuer is no URL: {error}"))?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(format!("its issuer {issuer:?} has a query or a fragment"));
    }
    for place in places(&url) {
        let answer = read(web, place).await?;
        if answer.status() != StatusCode::OK {
            continue;
        }
        let Ok(metadata) = serde_json::from_slice::<AuthorizationMetadata>(answer.body()) else {
            continue;
        };
        let named = metadata.issuer.as_deref();
        if !named.is_some_and(|named| is_same(named, issuer)) {
            return Err(format!(
                "what the issuer {issuer:?} publishes of itself names another one"
            ));
        }
        return Ok(metadata);
    }
    Err(format!(
        "the issuer {issuer:?} publishes no metadata of itself that can be used"
    ))
}

/// Whether two issuer identifiers are one: they are compared as texts, but for
/// the slash of a URL without a path.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    bare(one) == bare(other)
}

fn bare(issuer: &str) -> &str {
    let is_origin = |text: &&str| {
        Url::parse(text)
            .is_ok_and(|url| url.path() == "/" && url.query().is_none() && url.fragment().is_none())
    };
    let bare = issuer.strip_suffix('/').filter(is_origin);
    bare.unwrap_or(issuer)
}

/// Where an issuer's metadata may be, in the order that MCP sets.
fn places(issuer: &Url) -> Vec<Url> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    let path = issuer.path().trim_end_matches('/');
    let mut paths = vec![format!("{OAUTH}{path}"), format!("{OPENID}{path}")];
    if !path.is_empty() {
        paths.push(format!("{path}{OPENID}"));
    }
    let at = |path: String| {
        let mut place = issuer.clone();
        place.set_path(&path);
        place
    };
    paths.into_iter().map(at).collect()
}

/// Reads one place, and where it is redirected to within its origin.
async fn read(web: &Web, mut place: Url) -> Result<Response<Vec<u8>>, String> {
    let origin = place.origin();
    let name = origin.ascii_serialization();
    for _ in 0..=MAX_REDIRECTS {
        let request = Request::get(place.as_str())
            .header(ACCEPT, "application/json")
            .body(Vec::new())
            .map_err(|error| format!("the metadata at {name} cannot be asked for: {error}"))?;
        let answer = web
            .send(request)
            .await
            .map_err(|error| format!("the metadata at {name} cannot be had: {error}"))?;
        let location = answer.headers().get(LOCATION);
        let Some(location) = location.filter(|_| answer.status().is_redirection()) else {
            return Ok(answer);
        };
        let next = location.to_str().ok().and_then(|to| place.join(to).ok());
        place = next
            .filter(|next| next.origin() == origin)
            .ok_or_else(|| format!("the metadata at {name} is redirected to another origin"))?;
    }
    Err(format!(
        "the metadata at {name} is redirected more than {MAX_REDIRECTS} times"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_an_issuer() {
        let check = |issuer: &str, expected: &[&str]| {
            let places = places(&Url::parse(issuer).unwrap());
            let places: Vec<_> = places.iter().map(Url::as_str).collect();
            assert_eq!(places, expected);
        };
        let root = [
            "https://a.example/.well-known/oauth-authorization-server",
            "https://a.example/.well-known/openid-configuration",
        ];
        check("https://a.example", &root);
        check("https://a.example/", &root);
        let tenant = [
            "https://a.example/.well-known/oauth-authorization-server/b/c",
            "https://a.example/.well-known/openid-configuration/b/c",
            "https://a.example/b/c/.well-known/openid-configuration",
        ];
        check("https://a.example/b/c", &tenant);
        check("https://a.example/b/c/", &tenant);
    }

    #[test]
    fn issuers_are_compared_as_texts_but_for_the_slash_of_a_root() {
        assert!(is_same("https://a.example", "https://a.example/"));
        assert!(is_same("https://a.example/b", "https://a.example/b"));
        for other in [
            "https://a.example//",
            "https://a.example/b",
            "https://A.example",
            "http://a.example",
            "https://a.example:443",
            "https://a.example/?x",
            "",
        ] {
            assert!(!is_same("https://a.example", other), "{other}");
        }
        assert!(!is_same("https://a.example/b", "https://a.example/b/"));
    }
}
