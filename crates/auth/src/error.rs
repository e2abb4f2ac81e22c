//! Errors of authorization, with the command that helps.

use std::fmt;

use callgate_process::shell_word;

use crate::settings::Grant;

/// The reason why a request cannot be authorized.
///
/// Its `Display` never holds a token, a code or a secret, nor text of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthError {
    server: String,
    kind: AuthErrorKind,
    /// As in [`OAuth::login_flags`](crate::OAuth::login_flags).
    login_flags: Vec<String>,
}

/// The kinds of errors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthErrorKind {
    /// A person has to log in: there is no token, or it is refused and cannot be renewed.
    LoginRequired {
        /// Why, as a clause.
        reason: String,
    },
    /// The server refused the token's scope: a person has to agree to a wider one, or the
    /// configuration has to ask for it.
    InsufficientScope {
        /// The scope that the server names, space-separated.
        scope: Option<String>,
        /// The grant of the token, which decides who can widen its scope.
        grant: Grant,
    },
    /// A [`Browser`](crate::Browser) showed a login's page, and the person refused it or did not
    /// come back.
    Declined {
        /// The scope to add to the current login, space-separated, if the page was for that.
        scope: Option<String>,
    },
    /// The call's time was over while a person was asked to log in. The page is still open.
    Awaited {
        /// As in [`AuthErrorKind::Declined`].
        scope: Option<String>,
    },
    /// The metadata of the server or of its authorization server is missing, unsafe or unusable.
    Discovery {
        /// Why.
        reason: String,
    },
    /// The authorization server refused a step of the login, or its answer cannot be trusted.
    Exchange {
        /// Why.
        reason: String,
    },
    /// The token has ended or is refused, and the authorization server issued no other one.
    Renewal {
        /// Why.
        reason: String,
    },
    /// The keyring or the file of tokens failed.
    Store {
        /// Why.
        reason: String,
    },
    /// The server takes no login by its configuration.
    NoLogin {
        /// Why, and what to do.
        reason: String,
    },
    /// The configuration cannot work.
    Settings {
        /// Why, and what to change.
        reason: String,
    },
}

impl AuthError {
    /// An error about this server. A login that it advises has no flags.
    pub fn new(server: impl Into<String>, kind: AuthErrorKind) -> Self {
        Self {
            server: server.into(),
            kind,
            login_flags: Vec::new(),
        }
    }

    /// The same error with the flags of a login that it advises.
    pub(crate) fn login_flags(mut self, flags: &[String]) -> Self {
        self.login_flags = flags.to_vec();
        self
    }

    /// The server's name in the configuration.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The kind of the error.
    pub fn kind(&self) -> &AuthErrorKind {
        &self.kind
    }
}

impl AuthError {
    /// The error for a reader without a command line, such as a model.
    pub fn for_model(&self) -> String {
        let problem = self.problem();
        let server = &self.server;
        match &self.kind {
            AuthErrorKind::Awaited { .. } => format!(
                "{problem}; try again once the user has logged in on the page that was shown"
            ),
            kind if kind.is_solved_by_login() => format!(
                "{problem}; the person who runs Callgate must log in to server `{server}`: use \
                 other servers, or tell the user"
            ),
            _ => format!(
                "{problem}; only the person who runs Callgate can mend that: use other servers, or \
                 tell the user"
            ),
        }
    }

    fn problem(&self) -> String {
        use AuthErrorKind as Kind;

        let server = &self.server;
        match &self.kind {
            Kind::LoginRequired { reason } => reason.clone(),
            Kind::InsufficientScope {
                scope: Some(scope), ..
            } => format!("server `{server}` wants the scope {scope:?}"),
            Kind::InsufficientScope { scope: None, .. } => format!(
                "server `{server}` wants a scope that its token does not have and does not name it"
            ),
            Kind::Declined { scope } => {
                let wants = match scope {
                    Some(scope) => format!("the scope {scope:?}"),
                    None => "a login".to_owned(),
                };
                format!(
                    "server `{server}` wants {wants}; its page was shown, no login has come of \
                     it, and it is not shown again"
                )
            }
            Kind::Awaited { scope } => {
                let wants = match scope {
                    Some(scope) => format!("the scope {scope:?}, and a login with it"),
                    None => "a login, which".to_owned(),
                };
                format!("server `{server}` wants {wants} has not come in time")
            }
            Kind::Discovery { reason } => {
                format!("cannot find how to log in at server `{server}`: {reason}")
            }
            Kind::Exchange { reason } => format!("the login at server `{server}` failed: {reason}"),
            Kind::Renewal { reason } => {
                format!("the token of server `{server}` cannot be renewed: {reason}")
            }
            Kind::Store { reason } => {
                format!("the tokens of server `{server}` cannot be read or kept: {reason}")
            }
            Kind::NoLogin { reason } => format!("server `{server}` takes no login: {reason}"),
            Kind::Settings { reason } => {
                format!("the \"oauth\" of server `{server}` cannot be used: {reason}")
            }
        }
    }
}

impl AuthErrorKind {
    fn is_solved_by_login(&self) -> bool {
        match self {
            Self::InsufficientScope { grant, .. } => *grant != Grant::ClientCredentials,
            Self::LoginRequired { .. } | Self::Declined { .. } | Self::Renewal { .. } => true,
            _ => false,
        }
    }
}

/// The words for the operator: the problem, and the command or the setting that helps.
impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use AuthErrorKind as Kind;

        f.write_str(&self.problem())?;
        let login = auth_command("login", &self.server, &self.login_flags);
        let login_for = |scope: &Option<String>| match scope {
            Some(scope) => format!("{login} --scope {}", shell_word(scope)),
            None => login.clone(),
        };
        match &self.kind {
            Kind::LoginRequired { .. } => write!(f, "; run `{login}`"),
            Kind::InsufficientScope {
                grant: Grant::ClientCredentials,
                ..
            } => f.write_str(
                "; write it in \"scopes\" of the server's \"oauth\", and see that the authorization \
                 server grants it to the client",
            ),
            Kind::InsufficientScope { scope: None, .. } => {
                write!(f, "; run `{login} --scope SCOPE`")
            }
            Kind::InsufficientScope { scope, .. } | Kind::Declined { scope } => {
                write!(f, "; run `{}`", login_for(scope))
            }
            Kind::Awaited { scope } => write!(
                f,
                "; log in on the page that was shown, or run `{}`, and try again",
                login_for(scope)
            ),
            Kind::Renewal { .. } => write!(f, "; try again later, or run `{login}`"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for AuthError {}

/// A `callgate auth` command about a server, as a shell takes it.
pub(crate) fn auth_command(command: &str, server: &str, flags: &[String]) -> String {
    let words = std::iter::once(server).chain(flags.iter().map(String::as_str));
    let words: Vec<_> = words.map(shell_word).collect();
    format!("callgate auth {command} {}", words.join(" "))
}
