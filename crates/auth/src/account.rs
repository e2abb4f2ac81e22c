//! One server's login: its settings, its store, and its HTTP client.

use tokio::sync::OnceCell;
use url::Url;

use crate::error::{AuthError, auth_command};
use crate::http::Web;
use crate::record::Login;
use crate::redact::Redact;
use crate::settings::{Endpoint, OAuth};
use crate::store::Store;

#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) server: String,
    /// Without query and fragment, which may hold a key: the URL may become the resource that the
    /// authorization server gets.
    pub(crate) url: Url,
    pub(crate) settings: OAuth,
    pub(crate) redact: Redact,
    pub(crate) store: Store,
    web: OnceCell<Web>,
}

impl Account {
    pub(crate) fn new(endpoint: &Endpoint, redact: &Redact) -> Result<Self, AuthError> {
        let mut url = endpoint.url.clone();
        url.set_query(None);
        url.set_fragment(None);
        Ok(Self {
            store: Store::new(&endpoint.server, url.as_str(), &endpoint.oauth)?,
            server: endpoint.server.clone(),
            url,
            settings: endpoint.oauth.clone(),
            redact: redact.clone(),
            web: OnceCell::new(),
        })
    }

    /// The HTTP client, made at the first use with the server's addresses of that time.
    pub(crate) async fn web(&self) -> Result<&Web, AuthError> {
        let web = self.web.get_or_try_init(|| Web::new(&self.url)).await;
        web.map_err(|error| self.discovery(error))
    }

    /// Refuses any issuer but the configured one.
    pub(crate) fn check_issuer(&self, issuer: &str) -> Result<(), AuthError> {
        match &self.settings.issuer {
            Some(configured) if !is_same_issuer(configured, issuer) => Err(self.settings(format!(
                "its authorization server is {issuer:?}, and the \"issuer\" is {configured:?}"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses to use the configured client at an issuer other than that of the current login.
    pub(crate) async fn check_client(&self, id: &str, issuer: &str) -> Result<(), AuthError> {
        if self.settings.issuer.is_some() {
            return Ok(());
        }
        match self.store.record().await {
            Some(record) if record.client_id == id && !is_same_issuer(&record.issuer, issuer) => {
                Err(self.settings(format!(
                    "its \"clientId\" was used at {:?} before, and the server names {issuer:?} \
                     now; write the \"issuer\" that the client is registered at",
                    record.issuer
                )))
            }
            _ => Ok(()),
        }
    }

    /// Why a login must not be used for this server, if so.
    pub(crate) fn unfit(&self, login: &Login) -> Option<&'static str> {
        if !covers(&login.record.resource, self.url.as_str()) {
            Some("has a login that is for a different resource")
        } else if self.check_issuer(&login.record.issuer).is_err() {
            Some("has a login at an authorization server that is not its \"issuer\"")
        } else {
            None
        }
    }

    /// The stored login, if it may be used for this server.
    pub(crate) async fn fitting(&self) -> Result<Option<Login>, AuthError> {
        let login = self.store.load().await?;
        Ok(login.filter(|login| self.unfit(login).is_none()))
    }

    /// The secret of the configured client, only for its own issuer.
    pub(crate) async fn client_secret(&self, issuer: &str) -> Result<Option<String>, AuthError> {
        let Some(source) = &self.settings.client_secret else {
            return Ok(None);
        };
        if self.settings.issuer.is_none() {
            return Err(self.settings(
                "a \"clientSecret\" is for one authorization server; write its \"issuer\"",
            ));
        }
        self.check_issuer(issuer)?;
        let secret = source.resolve("clientSecret", &self.redact).await;
        let secret = secret.map_err(|error| {
            self.settings(format!("there is no value for \"clientSecret\": {error}"))
        })?;
        Ok(Some(secret))
    }

    /// The client's secret for requests with this login.
    pub(crate) async fn secret_of(&self, login: &Login) -> Result<Option<String>, AuthError> {
        match &login.tokens.client_secret {
            Some(secret) => Ok(Some(secret.clone())),
            None if self.settings.client_id.as_ref() == Some(&login.record.client_id) => {
                self.client_secret(&login.record.issuer).await
            }
            None => Ok(None),
        }
    }

    /// Hides a login's secrets in messages.
    pub(crate) async fn hide(&self, login: &Login) {
        let tokens = &login.tokens;
        let secrets = [
            ("access token", Some(&tokens.access_token)),
            ("refresh token", tokens.refresh_token.as_ref()),
            ("client secret", tokens.client_secret.as_ref()),
        ];
        for (name, secret) in secrets {
            if let Some(secret) = secret {
                self.redact.learn(name, secret).await;
            }
        }
    }

    /// The command for a login with additional scopes.
    pub(crate) fn login_command(&self, scopes: &[String]) -> String {
        let mut flags = self.settings.login_flags.clone();
        if !scopes.is_empty() {
            flags.extend(["--scope".to_owned(), scopes.join(" ")]);
        }
        auth_command("login", &self.server, &flags)
    }

    pub(crate) fn login_required(&self, reason: &str) -> AuthError {
        AuthError::login_required(&self.server, reason, &self.settings.login_flags)
    }

    /// An error of a step of the login at the authorization server.
    pub(crate) fn exchange(&self, reason: impl AsRef<str>) -> AuthError {
        let reason = self.redact.message(reason.as_ref());
        let problem = format!("the login at server `{}` failed: {reason}", self.server);
        AuthError::new(&self.server, problem)
    }

    /// An error about the metadata of the server or of its authorization server.
    pub(crate) fn discovery(&self, reason: impl AsRef<str>) -> AuthError {
        let reason = self.redact.message(reason.as_ref());
        let problem = format!(
            "cannot find how to log in at server `{}`: {reason}",
            self.server
        );
        AuthError::new(&self.server, problem)
    }

    /// An error about the configured settings.
    pub(crate) fn settings(&self, reason: impl AsRef<str>) -> AuthError {
        AuthError::settings(&self.server, &self.redact.message(reason.as_ref()))
    }
}

/// True if two issuers are equal, apart from the slash of a URL without a path.
pub(crate) fn is_same_issuer(one: &str, other: &str) -> bool {
    let bare = |issuer: &str| {
        let is_origin = |url: Url| url.path() == "/" && url.query().is_none();
        let bare = issuer.strip_suffix('/');
        let bare = bare.filter(|bare| Url::parse(bare).is_ok_and(is_origin));
        bare.unwrap_or(issuer).to_owned()
    };
    bare(one) == bare(other)
}

/// True if a token for `resource` may be sent to `url`: the same origin, and the resource's path or
/// one below it.
pub(crate) fn covers(resource: &str, url: &str) -> bool {
    let (Ok(resource), Ok(url)) = (Url::parse(resource), Url::parse(url)) else {
        return false;
    };
    if resource.origin() != url.origin() || !resource.origin().is_tuple() {
        return false;
    }
    let folder = resource.path().strip_suffix('/').unwrap_or(resource.path());
    let rest = url.path().strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_covers_urls_below_its_resource() {
        for (resource, url, expected) in [
            ("https://a.example/mcp", "https://a.example/mcp", true),
            ("https://a.example/mcp", "https://a.example/mcp/x?y=1", true),
            ("https://a.example/mcp/", "https://a.example/mcp", true),
            ("https://a.example:443/", "https://a.example/mcp", true),
            ("https://a.example/mcp", "https://a.example/mcp2", false),
            ("https://a.example/mcp", "https://a.example/mcp/../x", false),
            ("https://a.example/mcp", "http://a.example/mcp", false),
            ("https://a.example/mcp", "https://a.example:8443/mcp", false),
            ("https://a.example", "https://a.example.evil/mcp", false),
            ("https://a.example", "https://a.example@evil/mcp", false),
            ("data:x", "data:x", false),
        ] {
            assert_eq!(covers(resource, url), expected, "{resource} {url}");
        }
    }

    #[test]
    fn issuers_match_apart_from_root_slash() {
        assert!(is_same_issuer("https://a.example", "https://a.example/"));
        for other in [
            "https://a.example//",
            "https://a.example/b",
            "https://A.example",
            "",
        ] {
            assert!(!is_same_issuer("https://a.example", other), "{other}");
        }
        assert!(!is_same_issuer(
            "https://a.example/b",
            "https://a.example/b/"
        ));
    }
}
