//! Errors of authorization, with the command that helps.

use callgate_text::shell_word;

/// Why a request cannot be authorized.
///
/// It never contains a token, a code, a secret, or text of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}{advice}")]
pub struct AuthError {
    server: String,
    problem: String,
    /// The command or the setting that helps, for the operator; empty if `problem` names it.
    advice: String,
    pub(crate) remedy: Remedy,
}

/// The action that resolves an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// A login. Its page may be shown.
    Login,
    /// The login command: the page was not completed, or the stored login may still work.
    LoginCommand,
    /// The login on the open page.
    OpenPage,
    /// Nothing: by its configuration, the server takes no login.
    NoLogin,
    /// A new login later: the person or the authorization server refused this one.
    Declined,
    /// A change of the configuration, or outside of Callgate.
    Repair,
}

impl AuthError {
    /// An error that a login does not resolve.
    pub(crate) fn new(server: &str, problem: String) -> Self {
        Self {
            server: server.to_owned(),
            problem,
            advice: String::new(),
            remedy: Remedy::Repair,
        }
    }

    /// A required login: there is no token, or it is refused and cannot be renewed. `flags` are
    /// [`OAuth::login_flags`](crate::OAuth::login_flags).
    pub fn login_required(server: &str, reason: &str, flags: &[String]) -> Self {
        let command = auth_command("login", server, flags);
        let error = Self::new(server, format!("server `{server}` {reason}"));
        error.advise(Remedy::Login, &format!("run `{command}`"))
    }

    /// An unusable configuration of a server's login.
    pub fn settings(server: &str, reason: &str) -> Self {
        let problem = format!("the \"oauth\" of server `{server}` cannot be used: {reason}");
        Self::new(server, problem)
    }

    /// A server that takes no login by its configuration. `reason` includes the advice.
    pub fn no_login(server: &str, reason: &str) -> Self {
        let problem = format!("server `{server}` takes no login: {reason}");
        Self::new(server, problem).with(Remedy::NoLogin)
    }

    pub(crate) fn with(self, remedy: Remedy) -> Self {
        Self { remedy, ..self }
    }

    /// Adds a remedy and advice for the operator.
    pub(crate) fn advise(mut self, remedy: Remedy, advice: &str) -> Self {
        self.remedy = remedy;
        self.advice = format!("; {advice}");
        self
    }

    /// True if the server takes no login by its configuration.
    pub fn is_no_login(&self) -> bool {
        self.remedy == Remedy::NoLogin
    }

    /// The text for a reader without a command line, such as a model.
    pub fn for_model(&self) -> String {
        let Self {
            server, problem, ..
        } = self;
        match self.remedy {
            Remedy::OpenPage => format!(
                "{problem}; try again once the user has logged in on the page that was shown"
            ),
            Remedy::Login | Remedy::LoginCommand => format!(
                "{problem}; the person who runs Callgate must log in to server `{server}`: use \
                 other servers, or tell the user"
            ),
            Remedy::NoLogin | Remedy::Declined | Remedy::Repair => format!(
                "{problem}; only the person who runs Callgate can mend that: use other servers, or \
                 tell the user"
            ),
        }
    }
}

/// A `callgate auth` command for a shell.
pub(crate) fn auth_command(command: &str, server: &str, flags: &[String]) -> String {
    let words = std::iter::once(server).chain(flags.iter().map(String::as_str));
    let words: Vec<_> = words.map(shell_word).collect();
    format!("callgate auth {command} {}", words.join(" "))
}
