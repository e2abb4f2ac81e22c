//! OAuth resource server (MCP 2026-07-28, "Authorization"): checks access tokens that an
//! authorization server signs.

mod issuer;
mod token;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use url::Url;

use issuer::Issuer;

use crate::config::ResourceConfig;

/// The path of the resource's metadata (RFC 9728, section 3.1).
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) issuer: Arc<Issuer>,
    /// The resource's URL, which clients ask tokens for.
    resource: String,
    pub(crate) metadata_url: String,
    audience: String,
    scopes: Vec<String>,
}

/// The reason why credentials are rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// There is no token.
    Missing,
    /// The token is malformed, foreign or out of date.
    Invalid(String),
    /// The token lacks one of these scopes.
    Scope(String),
    /// The token cannot be checked, because the keys cannot be fetched.
    NoKeys(String),
}

impl Resource {
    /// `url`: the resource's URL, if the configuration does not set it.
    pub(crate) fn new(config: &ResourceConfig, url: &str) -> Result<Self, String> {
        let resource = config.resource.clone().unwrap_or_else(|| url.to_owned());
        let url = Url::parse(&resource).map_err(|error| format!("the resource: {error}"))?;
        let (origin, path) = (url.origin().ascii_serialization(), url.path());
        Ok(Self {
            metadata_url: format!("{origin}{METADATA_PATH}{}", path.trim_end_matches('/')),
            issuer: Arc::new(Issuer::new(&config.issuer, &config.algorithms)?),
            audience: config.audience.clone().unwrap_or_else(|| resource.clone()),
            resource,
            scopes: config.scopes.clone(),
        })
    }

    /// Checks a token. Returns its owner, which is unique for the issuer, and its claims.
    pub(crate) async fn check(
        &self,
        token: &str,
    ) -> Result<(String, Map<String, Value>), Rejected> {
        let header = token::read_header(token, &self.issuer.algorithms);
        let header = header.map_err(Rejected::Invalid)?;
        let keys = self.issuer.keys(header.kid.as_deref(), header.alg).await;
        let keys = keys.map_err(|why| {
            Rejected::NoKeys(format!(
                "the token cannot be checked now: the keys of the authorization server {} cannot be \
                 fetched: {why}",
                self.issuer.name
            ))
        })?;
        let all = token::verify(token, header.alg, &keys, &self.issuer.name, &self.audience)
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
        Ok((subject, all))
    }

    /// The scopes that a token must have, for a header.
    pub(crate) fn scope(&self) -> Option<String> {
        (!self.scopes.is_empty()).then(|| self.scopes.join(" "))
    }

    /// The resource's metadata (RFC 9728, section 2).
    pub(crate) fn metadata(&self) -> Value {
        let mut metadata = json!({
            "resource": self.resource,
            "authorization_servers": [self.issuer.name],
            "bearer_methods_supported": ["header"],
            "resource_name": "Callgate",
        });
        if !self.scopes.is_empty() {
            metadata["scopes_supported"] = json!(self.scopes);
        }
        metadata
    }
}
