//! `oauth` of `http`: whose access tokens are taken.

use callgate_policy::nearest;
use jsonc_parser::ast::ObjectProp;
use jsonc_parser::common::Ranged as _;
use url::{Host, Url};

use super::error::ConfigErrorKind;
use super::http::words;
use super::keys::Keys;
use super::reader::Reader;
use super::server::expanded;

/// Keys of `oauth`.
const OAUTH: Keys = Keys {
    ours: &["issuer", "resource", "audience", "scopes", "algorithms"],
    others: &[(
        "clientId",
        "clients bring tokens; Callgate logs nobody in here",
    )],
};

/// Whose access tokens are taken (MCP 2026-07-28, "Authorization"): JWTs that
/// one authorization server signs for this resource.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceConfig {
    /// `issuer`: the authorization server, as `iss` in its tokens has it.
    pub issuer: String,
    /// `resource`: our own URL, which clients ask tokens for. Default: that of
    /// the address, which does for loopback only.
    pub resource: Option<String>,
    /// `audience`: what tokens have in `aud`. Default: the resource.
    pub audience: Option<String>,
    /// `scopes`: what a token must all have. Default: none.
    pub scopes: Vec<String>,
    /// `algorithms`: with what tokens may be signed. Default: all of
    /// [`ALGORITHMS`].
    pub algorithms: Vec<String>,
}

/// The algorithms that a token may be signed with, all asymmetric.
pub const ALGORITHMS: [&str; 9] = [
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA",
];

/// Reads `oauth` of `http`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    property: &ObjectProp<'_>,
    what: &str,
) -> Option<ResourceConfig> {
    let object = reader.object(property, what)?;
    let what = format!("\"oauth\" in {what}");
    let problems = reader.problems.len();
    let mut oauth = ResourceConfig {
        issuer: String::new(),
        resource: None,
        audience: None,
        scopes: Vec::new(),
        algorithms: ALGORITHMS.map(str::to_owned).to_vec(),
    };
    for property in reader.properties(object, &what, &OAUTH) {
        match property.name.as_str() {
            "issuer" => {
                let url = secure_url(reader, property, &what);
                oauth.issuer = url.unwrap_or_default();
            }
            "resource" => oauth.resource = secure_url(reader, property, &what),
            "audience" => {
                let audience = expanded(reader, property, &what);
                oauth.audience = audience.filter(|audience| !audience.is_empty());
            }
            "scopes" => oauth.scopes = words(reader, property, &what, scope),
            _ => oauth.algorithms = words(reader, property, &what, algorithm),
        }
    }
    if reader.problems.len() > problems {
        return None;
    }
    let missing = match &oauth {
        oauth if oauth.issuer.is_empty() => Some("has no \"issuer\"; name whose tokens are taken"),
        oauth if oauth.algorithms.is_empty() => {
            Some("takes no algorithm; leave \"algorithms\" out")
        }
        _ => None,
    };
    if let Some(missing) = missing {
        let message = format!("{what} {missing}");
        reader.error(property.value.range(), ConfigErrorKind::Value, message);
        return None;
    }
    Some(oauth)
}

/// A URL that is `https`, or on loopback; without query, fragment or user.
fn secure_url(reader: &mut Reader<'_>, property: &ObjectProp<'_>, what: &str) -> Option<String> {
    let text = expanded(reader, property, what)?;
    let secure = |url: &Url| match url.scheme() {
        "https" => true,
        "http" => match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        },
        _ => false,
    };
    let plain =
        |url: &Url| url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    let fits = Url::parse(&text).is_ok_and(|url| secure(&url) && plain(&url));
    if !fits {
        let message = format!(
            "\"{}\" in {what} must be an https URL without query or fragment (http on loopback only)",
            property.name.as_str()
        );
        reader.error(property.value.range(), ConfigErrorKind::Value, message);
        return None;
    }
    Some(text)
}

/// A scope, as it may stand in a header (RFC 6749, section 3.3).
fn scope(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_graphic() && c != '"' && c != '\\';
    match !text.is_empty() && text.chars().all(fits) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "{text:?} is no scope; it must be one word of plain letters"
        )),
    }
}

fn algorithm(text: &str) -> Result<String, String> {
    if ALGORITHMS.contains(&text) {
        return Ok(text.to_owned());
    }
    if text.starts_with("HS") || text == "none" {
        return Err(format!(
            "{text:?} is not taken: whoever can check such a token can make one"
        ));
    }
    Err(match nearest(text, ALGORITHMS) {
        Some(meant) => format!("unknown algorithm {text:?}; did you mean {meant:?}?"),
        None => format!(
            "unknown algorithm {text:?}; write one of {}",
            ALGORITHMS.join(", ")
        ),
    })
}
