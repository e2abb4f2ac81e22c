//! Authentication of HTTP requests: the user, and the user's roles.

use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Map, Value};

use super::bearer::Tokens;
use super::oauth::{Rejected, Resource};
use super::operators::{Operator, Operators};
use super::refusal::HttpRefusal;
use crate::config::{ServeConfig, UsersConfig, subject_user, token_user};

/// A user who may be served.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The unique name. `None` for the only user of a server without authentication.
    pub user: Option<String>,
    /// The user's roles that the configuration knows, sorted.
    pub roles: Vec<String>,
}

/// Authentication by configured tokens or by access tokens.
pub(crate) struct Auth {
    tokens: Tokens,
    operators: Operators,
    /// The protected resource, if access tokens are accepted.
    pub(crate) resource: Option<Resource>,
    users: UsersConfig,
}

impl Auth {
    /// Looks up the tokens. `url`: the server's URL, if the configuration does not set it.
    pub(crate) async fn new(config: &ServeConfig, url: &str) -> Result<Self, String> {
        let tokens = Tokens::look_up(&config.http.bearer).await?;
        let operators = Operators::look_up(config, &tokens).await?;
        let oauth = config.http.oauth.as_ref();
        let resource = oauth.map(|oauth| Resource::new(oauth, url));
        Ok(Self {
            tokens,
            operators,
            resource: resource.transpose()?,
            users: config.users.clone(),
        })
    }

    /// True if requests need no credentials.
    pub(crate) fn is_open(&self) -> bool {
        self.tokens.is_empty() && self.resource.is_none()
    }

    /// True if there are operators.
    pub(crate) fn has_operators(&self) -> bool {
        !self.operators.is_empty()
    }

    /// The operator who sends a request with these headers.
    pub(crate) fn operator(&self, headers: &HeaderMap) -> Result<Arc<Operator>, HttpRefusal> {
        let operator = bearer(headers).and_then(|token| self.operators.owner(token));
        operator.ok_or_else(|| {
            let message = "the token of an operator is required here, in the header \
                           \"Authorization: Bearer …\"; tokens of users do not work";
            HttpRefusal::new(StatusCode::UNAUTHORIZED, message)
                .with(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
        })
    }

    /// The user who sends a request with these headers.
    pub(crate) async fn identify(&self, headers: &HeaderMap) -> Result<Identity, HttpRefusal> {
        let token = bearer(headers);
        if token.is_some_and(|token| self.operators.owner(token).is_some()) {
            let message = "this is the token of an operator, which works at /v1/admin only; send the \
                           token of a user";
            return Err(HttpRefusal::new(StatusCode::FORBIDDEN, message));
        }
        if self.is_open() {
            return Ok(Identity {
                user: None,
                roles: self.users.default.clone(),
            });
        }
        let token = token.ok_or_else(|| self.challenge(Rejected::Missing))?;
        if let Some(name) = self.tokens.owner(token) {
            let roles = self.users.named.get(name).cloned().unwrap_or_default();
            return Ok(self.identity(token_user(name), roles));
        }
        let Some(resource) = &self.resource else {
            return Err(self.challenge(Rejected::Invalid("the token is unknown".to_owned())));
        };
        let checked = resource.check(token).await;
        let (subject, claims) = checked.map_err(|rejected| self.challenge(rejected))?;
        let roles = self.claimed_roles(&subject, claims);
        Ok(self.identity(subject_user(&resource.issuer.name, &subject), roles))
    }

    /// The roles in an access token's claims, and those that the configuration gives its owner.
    fn claimed_roles(&self, subject: &str, claims: Map<String, Value>) -> Vec<String> {
        let (name, claims) = (&self.users.claim, Value::Object(claims));
        let claim = if name.starts_with('/') {
            claims.pointer(name)
        } else {
            claims.get(name)
        };
        let mut roles: Vec<String> = match claim {
            Some(Value::String(text)) => text.split(' ').map(str::to_owned).collect(),
            Some(Value::Array(list)) => {
                let words = list.iter().filter_map(Value::as_str);
                words.map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        let own = self.users.subjects.get(subject);
        roles.extend(own.cloned().unwrap_or_default());
        roles
    }

    fn identity(&self, user: String, mut roles: Vec<String>) -> Identity {
        let known = self.users.roles.as_ref();
        roles.retain(|role| known.is_some_and(|known| known.contains_key(role)));
        if roles.is_empty() {
            roles.clone_from(&self.users.default);
        }
        roles.sort_unstable();
        roles.dedup();
        Identity {
            user: Some(user),
            roles,
        }
    }

    /// The refusal that says how to authenticate (RFC 6750, section 3; RFC 9728, section 5.1).
    fn challenge(&self, rejected: Rejected) -> HttpRefusal {
        let mut parts = Vec::new();
        if let Some(resource) = &self.resource {
            parts.push(format!("resource_metadata=\"{}\"", resource.metadata_url));
            if let Some(scope) = resource.scope()
                && !matches!(rejected, Rejected::Scope(_))
            {
                parts.push(format!("scope=\"{scope}\""));
            }
        }
        let (status, message) = match rejected {
            Rejected::NoKeys(why) => return HttpRefusal::unavailable(why, 10),
            Rejected::Missing => (
                StatusCode::UNAUTHORIZED,
                "a token is required; send it in the header \"Authorization: Bearer …\"".to_owned(),
            ),
            Rejected::Invalid(why) => {
                let description = why.replace(['"', '\\'], "'");
                parts.push("error=\"invalid_token\"".to_owned());
                parts.push(format!("error_description=\"{description}\""));
                (StatusCode::UNAUTHORIZED, why)
            }
            Rejected::Scope(scope) => {
                parts.push("error=\"insufficient_scope\"".to_owned());
                parts.push(format!("scope=\"{scope}\""));
                (
                    StatusCode::FORBIDDEN,
                    format!("the token needs the scopes {scope:?}"),
                )
            }
        };
        let challenge = format!("Bearer {}", parts.join(", "));
        let challenge = HeaderValue::from_str(challenge.trim_end());
        let challenge = challenge.unwrap_or(HeaderValue::from_static("Bearer"));
        HttpRefusal::new(status, message).with(WWW_AUTHENTICATE, challenge)
    }
}

/// The token of a request. The guard has refused a second such header. Tokens in the query are
/// ignored (MCP, "Access Token Usage").
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = given.split_once(' ')?;
    let token = token.trim();
    let is_token = !token.is_empty() && !token.contains(' ');
    (is_token && scheme.eq_ignore_ascii_case("bearer")).then_some(token)
}
