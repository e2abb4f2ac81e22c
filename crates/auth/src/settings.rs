//! What a host or a configuration says of the login at a server.

use std::fmt;
use std::path::PathBuf;

use url::Url;

use super::browser::Browser;
use crate::source::Source;

/// An HTTP server at which to log in.
#[derive(Clone)]
pub struct Endpoint {
    /// The server's name in the configuration.
    pub server: String,
    /// The server's URL, with its query.
    pub url: Url,
    /// How to log in there.
    pub oauth: OAuth,
}

/// How to log in at an HTTP server.
///
/// With the default, everything is found out from the server, and the client
/// registers itself.
#[derive(Clone, Default)]
pub struct OAuth {
    /// The identifier of a client that is registered with the authorization
    /// server. Default: none; see [`OAuth::client_metadata_url`].
    pub client_id: Option<String>,
    /// The issuer of the authorization server at which that client is
    /// registered. A login at another one fails. Default: any, and no
    /// [`OAuth::client_secret`] is sent then; a [`OAuth::client_id`] is good at the one
    /// that there is a login at, if there is one.
    pub issuer: Option<String>,
    /// The secret of that client. Needs [`OAuth::issuer`]: which authorization
    /// server there is, a server says. Default: none, a public client.
    pub client_secret: Option<Source>,
    /// The `https` URL of a client ID metadata document, used as the client's
    /// identifier where the authorization server takes such ones. Default:
    /// none, and the client is registered anew at each login.
    pub client_metadata_url: Option<String>,
    /// The scopes to ask for. Default: those that the server names.
    pub scopes: Vec<String>,
    /// Whose login it is, where one process serves several users. A login is
    /// found only by the user it was made for. Default: nobody in particular.
    pub user: Option<String>,
    /// What messages say that `callgate auth login` and `logout` are to be given besides the
    /// server, such as `--config` and a file, so that it is this login which they make or
    /// end. Default: nothing.
    pub login_flags: Vec<String>,
    /// How a token is had. Default: a person logs in.
    pub grant: Grant,
    /// The port on 127.0.0.1 to which the browser comes back, for clients that
    /// are registered with a fixed one. Default: any free port.
    pub redirect_port: Option<u16>,
    /// Where tokens are kept. Default: the system's keyring, or else a file.
    pub place: TokenPlace,
    /// The folder of what is known of logins. Default: `callgate/auth` in
    /// `$XDG_STATE_HOME`, which is `~/.local/state` when it is not set.
    pub folder: Option<PathBuf>,
    /// Who shows a login's URL to a person while calls wait. Default: nobody,
    /// and a call that needs a login fails with
    /// [`crate::AuthErrorKind::LoginRequired`].
    pub browser: Option<Browser>,
}

impl fmt::Debug for OAuth {
    /// Only what is set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("OAuth");
        if let Some(id) = &self.client_id {
            shown.field("client_id", id);
        }
        if let Some(issuer) = &self.issuer {
            shown.field("issuer", issuer);
        }
        if let Some(secret) = &self.client_secret {
            shown.field("client_secret", secret);
        }
        if let Some(url) = &self.client_metadata_url {
            shown.field("client_metadata_url", url);
        }
        if !self.scopes.is_empty() {
            shown.field("scopes", &self.scopes);
        }
        if let Some(user) = &self.user {
            shown.field("user", user);
        }
        if !self.login_flags.is_empty() {
            shown.field("login_flags", &self.login_flags);
        }
        if self.grant != Grant::default() {
            shown.field("grant", &self.grant);
        }
        if let Some(port) = self.redirect_port {
            shown.field("redirect_port", &port);
        }
        if self.place != TokenPlace::default() {
            shown.field("place", &self.place);
        }
        if let Some(folder) = &self.folder {
            shown.field("folder", folder);
        }
        if self.browser.is_some() {
            shown.field("browser", &self.browser);
        }
        shown.finish()
    }
}

/// How a token is had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grant {
    /// A person logs in, once: the authorization code grant, with PKCE.
    #[default]
    AuthorizationCode,
    /// The client has a secret and needs nobody: the client credentials grant.
    ClientCredentials,
}

/// Where tokens are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenPlace {
    /// In the system's keyring; where there is none, in a file.
    #[default]
    KeyringOrFile,
    /// In the system's keyring; without one a login fails.
    Keyring,
    /// In a file that only the user can read.
    File,
}
