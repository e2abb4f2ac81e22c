//! Why there is no token, and what a person can do about it.

use std::fmt;

use super::settings::Grant;
use callgate_process::shell_word;

/// Why a server could not be authorized at.
///
/// Its `Display` names the server and says what to do. It never holds a token,
/// a code or a secret; what an authorization server said is in it only without
/// those, and cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthError {
    pub(crate) server: String,
    pub(crate) kind: AuthErrorKind,
    /// As in [`OAuth::login_flags`](super::OAuth::login_flags).
    login_flags: Vec<String>,
}

impl AuthError {
    /// An error about this server, which advises a login without flags, if it does.
    pub fn new(server: impl Into<String>, kind: AuthErrorKind) -> Self {
        Self {
            server: server.into(),
            kind,
            login_flags: Vec::new(),
        }
    }

    /// The same, with what a login is to be given.
    pub(crate) fn login_flags(mut self, flags: &[String]) -> Self {
        self.login_flags = flags.to_vec();
        self
    }

    /// The server's name in the configuration.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// What is wrong.
    pub fn kind(&self) -> &AuthErrorKind {
        &self.kind
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = &self.server;
        let login = auth_command("login", server, &self.login_flags);
        match &self.kind {
            AuthErrorKind::LoginRequired { reason } => {
                write!(f, "{reason}; run `{login}`")
            }
            AuthErrorKind::InsufficientScope { scope, grant } => {
                match scope {
                    Some(scope) => write!(f, "server `{server}` wants the scope {scope:?}; ")?,
                    None => write!(
                        f,
                        "server `{server}` wants a scope that its token does not have and does \
                         not name it; "
                    )?,
                }
                match grant {
                    Grant::AuthorizationCode => {
                        let scope = scope
                            .as_ref()
                            .map_or("SCOPE".into(), |scope| shell_word(scope));
                        write!(f, "run `{login} --scope {scope}`")
                    }
                    Grant::ClientCredentials => write!(
                        f,
                        "write it in \"scopes\" of the server's \"oauth\", and see that the \
                         authorization server grants it to the client"
                    ),
                }
            }
            AuthErrorKind::Declined { scope } => {
                match scope {
                    Some(scope) => write!(f, "server `{server}` wants the scope {scope:?}")?,
                    None => write!(f, "server `{server}` wants a login")?,
                }
                write!(
                    f,
                    "; its page was shown, no login has come of it, and it is not shown again; \
                     run `{login}"
                )?;
                match scope {
                    Some(scope) => write!(f, " --scope {}`", shell_word(scope)),
                    None => f.write_str("`"),
                }
            }
            AuthErrorKind::Awaited { scope } => {
                match scope {
                    Some(scope) => write!(
                        f,
                        "server `{server}` wants the scope {scope:?}, and a login with it"
                    )?,
                    None => write!(f, "server `{server}` wants a login, which")?,
                }
                write!(
                    f,
                    " has not come in time; log in on the page that was shown, or run `{login}"
                )?;
                if let Some(scope) = scope {
                    write!(f, " --scope {}", shell_word(scope))?;
                }
                f.write_str("`, and try again")
            }
            AuthErrorKind::Discovery { reason } => {
                write!(
                    f,
                    "cannot find how to log in at server `{server}`: {reason}"
                )
            }
            AuthErrorKind::Exchange { reason } => {
                write!(f, "the login at server `{server}` failed: {reason}")
            }
            AuthErrorKind::Renewal { reason } => write!(
                f,
                "the token of server `{server}` cannot be renewed: {reason}; try again later, or \
                 run `{login}`"
            ),
            AuthErrorKind::Store { reason } => write!(
                f,
                "the tokens of server `{server}` cannot be read or kept: {reason}"
            ),
            AuthErrorKind::NoLogin { reason } => {
                write!(f, "server `{server}` takes no login: {reason}")
            }
            AuthErrorKind::Settings { reason } => {
                write!(
                    f,
                    "the \"oauth\" of server `{server}` cannot be used: {reason}"
                )
            }
        }
    }
}

impl std::error::Error for AuthError {}

/// A command about a server's login, as it is given to a shell; `flags` as in
/// [`OAuth::login_flags`](super::OAuth::login_flags).
pub(super) fn auth_command(command: &str, server: &str, flags: &[String]) -> String {
    let words = std::iter::once(server).chain(flags.iter().map(String::as_str));
    let words: Vec<_> = words.map(shell_word).collect();
    format!("callgate auth {command} {}", words.join(" "))
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthErrorKind {
    /// A person has to log in: there is no token, or it is refused and cannot
    /// be renewed.
    LoginRequired {
        /// Why, as a clause.
        reason: String,
    },
    /// The server refused the token's scope: a person has to agree to a wider
    /// one, or the configuration has to ask for it.
    InsufficientScope {
        /// The scope that the server names, space-separated.
        scope: Option<String>,
        /// How the token was had, which says who can have one of a wider scope.
        grant: Grant,
    },
    /// A person was shown the page of a login, by a [`Browser`](super::Browser),
    /// and has refused it or not come back. The page of what was
    /// refused is not shown again by itself: that takes another login, such as by
    /// [`login`](fn@super::login), or another gate.
    Declined {
        /// The scope that the login is to have besides that of the one before,
        /// space-separated, if it is for a wider one.
        scope: Option<String>,
    },
    /// A person is being asked for a login, and the time of the call that waited for it
    /// was over. Its page is still there for some time.
    Awaited {
        /// As in [`AuthErrorKind::Declined`].
        scope: Option<String>,
    },
    /// The metadata of the server or of its authorization server is missing,
    /// unsafe or of no use.
    Discovery {
        /// Why.
        reason: String,
    },
    /// The authorization server refused a step of the login, or its answer
    /// cannot be trusted.
    Exchange {
        /// Why.
        reason: String,
    },
    /// The token has ended or is refused, and the authorization server gave no
    /// other one; it may another time.
    Renewal {
        /// Why.
        reason: String,
    },
    /// The keyring or the file of tokens failed.
    Store {
        /// Why.
        reason: String,
    },
    /// There is nothing to log in to: the server is none over HTTP, or says by its
    /// configuration that it takes no login.
    NoLogin {
        /// Why, and what to do.
        reason: String,
    },
    /// The configuration cannot work.
    Settings {
        /// Why and what to change.
        reason: String,
    },
}
