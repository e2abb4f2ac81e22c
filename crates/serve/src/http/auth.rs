//! Who sends a request, and with what roles.

use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use callgate::config::{HttpConfig, UsersConfig, subject_user, token_user};
use serde_json::Value;

use super::bearer::Tokens;
use super::oauth::{Claims, Rejected, Resource};
use super::refusal::Refusal;

/// Somebody who may be served.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Under what they are known: no two have the same. Without any
    /// protection, `None`: everybody is the one user there is.
    pub user: Option<String>,
    /// Their roles, of those that the configuration has, in order.
    pub roles: Vec<String>,
}

/// What decides who may be served.
#[derive(Debug)]
pub(crate) struct Auth {
    tokens: Option<Tokens>,
    resource: Option<Resource>,
    users: UsersConfig,
}

impl Auth {
    /// Looks the tokens up. `url` is our URL where the configuration names none.
    ///
    /// # Errors
    ///
    /// What is wrong with the configuration; never a token.
    pub(crate) async fn new(
        config: &HttpConfig,
        users: &UsersConfig,
        url: &str,
    ) -> Result<Self, String> {
        let tokens = match config.bearer.is_empty() {
            true => None,
            false => Some(Tokens::look_up(&config.bearer).await?),
        };
        let resource = config.oauth.as_ref();
        Ok(Self {
            tokens,
            resource: resource
                .map(|oauth| Resource::new(oauth, url))
                .transpose()?,
            users: users.clone(),
        })
    }

    /// Whether nobody has to show anything.
    pub(crate) fn is_open(&self) -> bool {
        self.tokens.is_none() && self.resource.is_none()
    }

    /// What takes access tokens, if something does.
    pub(crate) fn resource(&self) -> Option<&Resource> {
        self.resource.as_ref()
    }

    /// Who sends a request with these headers.
    pub(crate) async fn identify(&self, headers: &HeaderMap) -> Result<Identity, Refusal> {
        if self.is_open() {
            return Ok(Identity {
                user: None,
                roles: self.users.default.clone(),
            });
        }
        let token = bearer(headers).map_err(|wrong| self.challenge(wrong))?;
        if let Some(name) = self.tokens.as_ref().and_then(|tokens| tokens.owner(token)) {
            let roles = self.users.named.get(name).cloned().unwrap_or_default();
            return Ok(self.identity(token_user(name), roles));
        }
        let Some(resource) = &self.resource else {
            return Err(self.challenge(Wrong::Token("the token is not known".to_owned())));
        };
        match resource.check(token).await {
            Ok(claims) => {
                let user = subject_user(resource.issuer(), &claims.subject);
                Ok(self.identity(user, self.claimed(&claims)))
            }
            Err(Rejected::Invalid(why)) => Err(self.challenge(Wrong::Token(why))),
            Err(Rejected::Scope(scope)) => Err(self.challenge(Wrong::Scope(scope))),
            Err(Rejected::Away(why)) => Err(Refusal::unavailable(
                format!(
                    "whether the token is good cannot be told now: the keys of the authorization \
                     server {} cannot be had: {why}",
                    resource.issuer()
                ),
                10,
            )),
        }
    }

    /// The roles of an access token's owner.
    fn claimed(&self, claims: &Claims) -> Vec<String> {
        let claim = &self.users.claim;
        let value = match claim.strip_prefix('/') {
            Some(path) => path
                .split('/')
                .try_fold(None, |found: Option<&Value>, step| {
                    let step = step.replace("~1", "/").replace("~0", "~");
                    match found {
                        None => claims.all.get(&step).map(Some),
                        Some(value) => value.get(&step).map(Some),
                    }
                }),
            None => Some(claims.all.get(claim)),
        };
        let mut roles: Vec<String> = match value.flatten() {
            Some(Value::String(text)) => text.split(' ').map(str::to_owned).collect(),
            Some(Value::Array(list)) => {
                let words = list.iter().filter_map(Value::as_str);
                words.map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        roles.extend(
            self.users
                .subjects
                .get(&claims.subject)
                .cloned()
                .unwrap_or_default(),
        );
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

    /// What says how to come in (RFC 6750, section 3; RFC 9728, section 5.1).
    fn challenge(&self, wrong: Wrong) -> Refusal {
        let mut parts = Vec::new();
        if let Some(resource) = &self.resource {
            parts.push(format!("resource_metadata=\"{}\"", resource.metadata_url()));
            if let (Some(scope), Wrong::Missing | Wrong::Token(_)) = (resource.scope(), &wrong) {
                parts.push(format!("scope=\"{scope}\""));
            }
        }
        let (status, message) = match &wrong {
            Wrong::Header(why) => return Refusal::bad(*why),
            Wrong::Missing => (
                StatusCode::UNAUTHORIZED,
                "a token is needed; send it in the header \"Authorization: Bearer …\"".to_owned(),
            ),
            Wrong::Token(why) => {
                parts.push("error=\"invalid_token\"".to_owned());
                parts.push(format!(
                    "error_description=\"{}\"",
                    why.replace(['"', '\\'], "'")
                ));
                (StatusCode::UNAUTHORIZED, why.clone())
            }
            Wrong::Scope(scope) => {
                parts.push("error=\"insufficient_scope\"".to_owned());
                parts.push(format!("scope=\"{scope}\""));
                let message = format!("the token needs the scopes {scope:?}");
                (StatusCode::FORBIDDEN, message)
            }
        };
        let challenge = match parts.is_empty() {
            true => "Bearer".to_owned(),
            false => format!("Bearer {}", parts.join(", ")),
        };
        let refusal = Refusal::new(status, message);
        match HeaderValue::from_str(&challenge) {
            Ok(value) => refusal.with(WWW_AUTHENTICATE, value),
            Err(_) => refusal.with(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")),
        }
    }
}

/// What is wrong with what was shown.
enum Wrong {
    Header(&'static str),
    Missing,
    Token(String),
    Scope(String),
}

/// The token of a request. One in the query is not taken (MCP, "Access Token
/// Usage").
fn bearer(headers: &HeaderMap) -> Result<&str, Wrong> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = given.next() else {
        return Err(Wrong::Missing);
    };
    if given.next().is_some() {
        return Err(Wrong::Header("the request has two Authorization headers"));
    }
    let text = value.to_str().unwrap_or_default();
    let token = match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => return Err(Wrong::Missing),
    };
    match token.is_empty() || token.contains(' ') {
        true => Err(Wrong::Missing),
        false => Ok(token),
    }
}
