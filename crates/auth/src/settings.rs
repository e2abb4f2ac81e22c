//! The settings of a login at a server.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use url::Url;

use crate::browser::Browser;
use crate::source::Source;

/// An HTTP server at which to log in.
#[derive(Clone)]
pub struct Endpoint {
    /// The server's name in the configuration.
    pub server: String,
    /// The server's URL, with its query.
    pub url: Url,
    /// The settings of the login.
    pub oauth: OAuth,
}

/// The settings of the login at an HTTP server.
///
/// By default everything is found out from the server, and the client registers itself.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OAuth {
    /// The identifier of a client that is registered with the authorization server. Default:
    /// none.
    pub client_id: Option<String>,
    /// The issuer of the authorization server at which the client is registered. A login at a
    /// different one fails. Default: any; then no `clientSecret` is sent, and `clientId` is used
    /// only at the issuer of the login that exists, if any.
    pub issuer: Option<String>,
    /// The secret of the client. Needs `issuer`, because the server names the authorization server.
    /// Default: none, a public client.
    pub client_secret: Option<Source>,
    /// The `https` URL of a client ID metadata document, used as the client's identifier where
    /// the authorization server supports that. Default: none; the client registers itself again
    /// at each login.
    #[serde(deserialize_with = "client_metadata_url")]
    pub client_metadata_url: Option<String>,
    /// The scopes to request. Default: those that the server names.
    pub scopes: Vec<String>,
    /// The owner of the login, where one process serves several users. Only this user finds it.
    /// Default: no user.
    #[serde(skip)]
    pub user: Option<String>,
    /// Flags such as `--config FILE` for the commands in messages, so that they are about this
    /// login. Default: none.
    #[serde(skip)]
    pub login_flags: Vec<String>,
    /// The way to get a token. Default: `authorization_code`.
    pub grant: Grant,
    /// The port on 127.0.0.1 that the browser comes back to, for clients with a fixed one. Default:
    /// any free port.
    pub redirect_port: Option<u16>,
    /// The place of the tokens. Default: `auto`.
    #[serde(rename = "tokens")]
    pub place: TokenPlace,
    /// The folder of the login files. Default: `callgate/auth` in `$XDG_STATE_HOME` or
    /// `~/.local/state`.
    #[serde(skip)]
    pub folder: Option<PathBuf>,
    /// Shows a login's page to a person while calls wait. Default: none; a call that needs a
    /// login fails.
    #[serde(skip)]
    pub browser: Option<Browser>,
}

fn client_metadata_url<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    if !Url::parse(&text).is_ok_and(|url| url.scheme() == "https" && url.path() != "/") {
        return Err(D::Error::custom("must be an https URL with a path"));
    }
    Ok(Some(text))
}

/// The way to get a token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Grant {
    /// A person logs in, once: the authorization code grant, with PKCE.
    #[default]
    AuthorizationCode,
    /// The client has a secret and needs no person: the client credentials grant.
    ClientCredentials,
}

/// The place of the tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TokenPlace {
    /// In the system's keyring, or in a file on a machine without a keyring.
    #[default]
    #[serde(rename = "auto")]
    KeyringOrFile,
    /// In the system's keyring; a login fails without one.
    Keyring,
    /// In a file that only the user can read.
    File,
}
