//! OAuth resource server (MCP 2026-07-28, "Authorization"): access tokens that
//! an authorization server signs for us.

mod issuer;
mod keys;
mod token;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use callgate::config::ResourceConfig;
use serde_json::{Map, Value, json};
use url::Url;

use issuer::Issuer;
pub(crate) use keys::Away;

/// Where the metadata of the resource is (RFC 9728, section 3.1).
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// What takes access tokens.
#[derive(Debug)]
pub(crate) struct Resource {
    issuer: Arc<Issuer>,
    /// Our own URL, which clients ask tokens for.
    resource: String,
    audience: String,
    scopes: Vec<String>,
}

/// The claims of a token that is good.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claims {
    /// Whose token it is, among those of the issuer.
    pub(crate) subject: String,
    pub(crate) all: Map<String, Value>,
}

/// Why a token is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// It is none, or not for us, or not any more; with what is wrong.
    Invalid(String),
    /// It is good, and does not have these scopes.
    Scope(String),
    /// Nobody can tell at the moment.
    Away(String),
}

impl Resource {
    /// `url` is our URL where the configuration names none.
    ///
    /// # Errors
    ///
    /// What is wrong with the configuration.
    pub(crate) fn new(config: &ResourceConfig, url: &str) -> Result<Self, String> {
        let resource = config.resource.clone().unwrap_or_else(|| url.to_owned());
        Ok(Self {
            issuer: Arc::new(Issuer::new(&config.issuer, &config.algorithms)?),
            audience: config.audience.clone().unwrap_or_else(|| resource.clone()),
            resource,
            scopes: config.scopes.clone(),
        })
    }

    /// Looks at a token.
    pub(crate) async fn check(&self, token: &str) -> Result<Claims, Rejected> {
        let read = token::read(token, self.issuer.algorithms()).map_err(Rejected::Invalid)?;
        let keys = self.issuer.keys(read.kid.as_deref(), read.algorithm).await;
        let keys = match keys {
            Ok(keys) => keys,
            Err(Away(why)) => return Err(Rejected::Away(why)),
        };
        let all = token::verify(token, &read, &keys, self.issuer.name(), &self.audience)
            .map_err(Rejected::Invalid)?;
        let has = token::scopes(&all);
        if !self
            .scopes
            .iter()
            .all(|scope| has.contains(&scope.as_str()))
        {
            return Err(Rejected::Scope(self.scopes.join(" ")));
        }
        let subject = token::subject(&all).map_err(Rejected::Invalid)?;
        Ok(Claims { subject, all })
    }

    /// The authorization server, as its tokens name it.
    pub(crate) fn issuer(&self) -> &str {
        self.issuer.name()
    }

    /// The scopes that a token must have, as they stand in a header.
    pub(crate) fn scope(&self) -> Option<String> {
        (!self.scopes.is_empty()).then(|| self.scopes.join(" "))
    }

    /// The metadata of the resource (RFC 9728, section 2).
    pub(crate) fn metadata(&self) -> Value {
        let mut metadata = json!({
            "resource": self.resource,
            "authorization_servers": [self.issuer.name()],
            "bearer_methods_supported": ["header"],
            "resource_name": "Callgate",
        });
        if !self.scopes.is_empty() {
            metadata["scopes_supported"] = json!(self.scopes);
        }
        metadata
    }

    /// Where clients find the metadata.
    pub(crate) fn metadata_url(&self) -> String {
        match Url::parse(&self.resource) {
            Ok(url) => {
                let path = url.path().trim_end_matches('/');
                format!(
                    "{}{METADATA_PATH}{path}",
                    url.origin().ascii_serialization()
                )
            }
            // The configuration takes no other.
            Err(_) => String::new(),
        }
    }
}
