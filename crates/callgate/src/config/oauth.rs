//! `oauth` of a server: how to log in there.

use callgate_auth::{Grant, OAuth, TokenPlace};
use jsonc_parser::ast::ObjectProp;
use jsonc_parser::common::Ranged as _;
use url::Url;

use super::error::ConfigErrorKind;
use super::keys;
use super::reader::Reader;
use super::server::expanded;
use super::source::source;

/// Reads `oauth`; `None` inside for a login that is switched off, `None`
/// outside if something is wrong, which is then noted.
pub(super) fn read(
    reader: &mut Reader<'_>,
    property: &ObjectProp<'_>,
    what: &str,
) -> Option<Option<OAuth>> {
    if let Some(on) = property.value.as_boolean_lit() {
        return Some(on.value.then(OAuth::default));
    }
    let Some(object) = property.value.as_object() else {
        reader.wrong_type(property, what, "true, false or an object");
        return None;
    };
    let problems = reader.problems.len();
    let what = format!("\"oauth\" in {what}");
    let mut oauth = OAuth::default();
    for property in reader.properties(object, &what, &keys::OAUTH) {
        match property.name.as_str() {
            "clientId" => oauth.client_id = expanded(reader, property, &what),
            "issuer" => oauth.issuer = expanded(reader, property, &what),
            "clientSecret" => oauth.client_secret = source(reader, property, &what),
            "clientMetadataUrl" => {
                oauth.client_metadata_url = expanded(reader, property, &what);
                let usable = |text: &String| {
                    Url::parse(text).is_ok_and(|url| url.scheme() == "https" && url.path() != "/")
                };
                if oauth
                    .client_metadata_url
                    .as_ref()
                    .is_some_and(|url| !usable(url))
                {
                    reader.error(
                        property.value.range(),
                        ConfigErrorKind::Value,
                        format!("\"clientMetadataUrl\" in {what} must be an https URL with a path"),
                    );
                }
            }
            "scopes" => {
                let scopes = reader.strings(property, &what).into_iter();
                oauth.scopes = scopes.map(|(text, _)| text.to_owned()).collect();
            }
            "grant" => oauth.grant = reader.parsed(property, &what, grant).unwrap_or_default(),
            "redirectPort" => oauth.redirect_port = port(reader, property, &what),
            "tokens" => oauth.place = reader.parsed(property, &what, place).unwrap_or_default(),
            _ => {}
        }
    }
    if reader.problems.len() > problems {
        return None;
    }
    let missing = match (&oauth.client_id, &oauth.client_secret) {
        (None, Some(_)) => Some("has a \"clientSecret\" and no \"clientId\"; write both"),
        (Some(_), Some(_)) if oauth.issuer.is_none() => Some(
            "has a \"clientSecret\" and no \"issuer\"; write the issuer of the authorization \
             server that the secret is for",
        ),
        (Some(_), Some(_)) => None,
        _ if oauth.grant == Grant::ClientCredentials => {
            Some("has the grant of client credentials; write \"clientId\" and \"clientSecret\"")
        }
        _ => None,
    };
    if let Some(missing) = missing {
        let message = format!("{what} {missing}");
        reader.error(property.value.range(), ConfigErrorKind::Value, message);
        return None;
    }
    Some(Some(oauth))
}

fn grant(text: &str) -> Result<Grant, String> {
    match text {
        "authorization_code" => Ok(Grant::AuthorizationCode),
        "client_credentials" => Ok(Grant::ClientCredentials),
        _ => Err(format!(
            "unknown grant {text:?}; write \"authorization_code\" or \"client_credentials\""
        )),
    }
}

fn place(text: &str) -> Result<TokenPlace, String> {
    match text {
        "auto" => Ok(TokenPlace::KeyringOrFile),
        "keyring" => Ok(TokenPlace::Keyring),
        "file" => Ok(TokenPlace::File),
        _ => Err(format!(
            "tokens are not kept in {text:?}; write \"auto\", \"keyring\" or \"file\""
        )),
    }
}

fn port(reader: &mut Reader<'_>, property: &ObjectProp<'_>, what: &str) -> Option<u16> {
    let count = reader.count(property, what)?;
    let port = u16::try_from(count).ok();
    if port.is_none() {
        reader.error(
            property.value.range(),
            ConfigErrorKind::Value,
            format!("\"redirectPort\" in {what} is over 65535, the last port there is"),
        );
    }
    port
}
