//! What a host or a configuration says of the login at a server.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use tokio::sync::watch;

use super::error::{AuthError, AuthErrorKind};
use super::login::NoLogin;
use super::store::Login;
use crate::source::Source;

/// How many wider scopes a person may refuse at one login. A server that names
/// another one each time does not have more pages shown than that.
const MAX_IN_VAIN: usize = 8;

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
    /// [`OAuth::client_secret`] is sent then.
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
    /// [`crate::auth::AuthErrorKind::LoginRequired`].
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

/// Shows URLs to a person.
pub trait OpenUrl: Send + Sync {
    /// Shows the URL of a login, or opens it, and returns without waiting for
    /// the login's end. The URL holds no secret that is of use without this
    /// process.
    fn open<'a>(&'a self, url: &'a str) -> BoxFuture<'a, io::Result<()>>;
}

/// A shared [`OpenUrl`] for logins that calls wait for.
///
/// Clones share which logins were asked for in vain. A person who has refused
/// one is not asked again for the same scopes of that server, until there is
/// another login, such as by [`login`](fn@super::login).
#[derive(Clone)]
pub struct Browser {
    opener: Arc<dyn OpenUrl>,
    /// What people are being asked for or were in vain, by the login's place.
    asked: Arc<Mutex<HashMap<PathBuf, Asked>>>,
}

impl Browser {
    /// For one gate, or whatever else a person sees as one thing that asks.
    pub fn new(opener: Arc<dyn OpenUrl>) -> Self {
        Self {
            opener,
            asked: Arc::default(),
        }
    }

    /// Takes it on to ask a person for these scopes, empty for a login with those
    /// that the server names, unless that is being done.
    ///
    /// # Errors
    ///
    /// Why that is not to be done: they were asked for before, in vain.
    pub(super) fn ask(
        &self,
        place: PathBuf,
        made: Option<u64>,
        scopes: &[String],
    ) -> Result<Turn, AuthErrorKind> {
        let wish: BTreeSet<String> = scopes.iter().cloned().collect();
        let scope = (!scopes.is_empty()).then(|| scopes.join(" "));
        let mut all = self.asked();
        let asked = all.entry(place.clone()).or_default();
        if asked.made != made {
            *asked = Asked::default();
            asked.made = made;
        }
        match asked.wishes.get(&wish) {
            Some(Wish::UnderWay(outcome)) => return Ok(Turn::Another(outcome.clone())),
            Some(Wish::InVain) => return Err(AuthErrorKind::Declined { scope }),
            None => {}
        }
        if scope.is_some() && asked.wishes.len() >= MAX_IN_VAIN {
            let grant = Grant::AuthorizationCode;
            return Err(AuthErrorKind::InsufficientScope { scope, grant });
        }
        let (tell, outcome) = watch::channel(None);
        asked.wishes.insert(wish.clone(), Wish::UnderWay(outcome));
        drop(all);
        Ok(Turn::Own(Asking {
            browser: self.clone(),
            place,
            made,
            wish,
            tell,
        }))
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<PathBuf, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a person was asked for at one server.
#[derive(Default)]
struct Asked {
    /// When the login that was there then had been made.
    made: Option<u64>,
    wishes: HashMap<BTreeSet<String>, Wish>,
}

/// What has become of asking for some scopes.
enum Wish {
    /// A person is being asked.
    UnderWay(watch::Receiver<Option<Outcome>>),
    /// They refused.
    InVain,
}

/// What came of asking a person.
type Outcome = Result<Login, AuthError>;

/// Who asks a person.
pub(super) enum Turn {
    /// Whoever wants to know.
    Own(Asking),
    /// Another connection does already, and what comes of it is told here.
    Another(watch::Receiver<Option<Outcome>>),
}

/// A person is being asked for a login. Nobody else asks for the same meanwhile;
/// once this is dropped, it may be asked for again, unless it was in vain.
pub(super) struct Asking {
    browser: Browser,
    place: PathBuf,
    made: Option<u64>,
    wish: BTreeSet<String>,
    /// Tells whoever waits for what comes of it.
    tell: watch::Sender<Option<Outcome>>,
}

impl Asking {
    /// Who shows the page.
    pub(super) fn opener(&self) -> &dyn OpenUrl {
        &*self.browser.opener
    }

    /// Something has come of it, for all who wait for it.
    pub(super) fn has_come_to(self, made: Result<Login, NoLogin>) -> Outcome {
        let outcome = {
            let mut all = self.browser.asked();
            match made {
                Ok(login) => {
                    all.remove(&self.place);
                    Ok(login)
                }
                Err(NoLogin::Refused(error)) => {
                    if let Some(wish) = self.wish(&mut all) {
                        *wish = Wish::InVain;
                    }
                    Err(error)
                }
                Err(NoLogin::Failed(error)) => Err(error),
            }
        };
        self.tell.send_replace(Some(outcome.clone()));
        outcome
    }

    /// What it is, where there is no other login yet.
    fn wish<'a>(&self, all: &'a mut HashMap<PathBuf, Asked>) -> Option<&'a mut Wish> {
        let asked = all.get_mut(&self.place)?;
        let is_same = asked.made == self.made;
        asked.wishes.get_mut(&self.wish).filter(|_| is_same)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut all = self.browser.asked();
        if let Some(Wish::UnderWay(_)) = self.wish(&mut all)
            && let Some(asked) = all.get_mut(&self.place)
        {
            asked.wishes.remove(&self.wish);
        }
    }
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Browser")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shown;

    impl OpenUrl for Shown {
        fn open<'a>(&'a self, _url: &'a str) -> BoxFuture<'a, io::Result<()>> {
            Box::pin(std::future::ready(Ok(())))
        }
    }

    fn browser() -> Browser {
        Browser::new(Arc::new(Shown))
    }

    /// Why a person is not asked; nothing if one would be.
    fn refused(browser: &Browser, place: &str, made: Option<u64>, scope: &str) -> String {
        let scopes: Vec<String> = scope.split_whitespace().map(str::to_owned).collect();
        match browser.ask(PathBuf::from(place), made, &scopes) {
            Ok(Turn::Own(_)) => String::new(),
            Ok(Turn::Another(_)) => "another asks".to_owned(),
            Err(kind) => format!("{kind:?}"),
        }
    }

    /// A person is asked, at the place `/one`.
    fn asking(browser: &Browser, made: Option<u64>, scope: &str) -> Asking {
        let scopes: Vec<String> = scope.split_whitespace().map(str::to_owned).collect();
        match browser.ask(PathBuf::from("/one"), made, &scopes) {
            Ok(Turn::Own(asking)) => asking,
            _ => panic!("nobody is asked"),
        }
    }

    fn error() -> AuthError {
        AuthError {
            server: "s".to_owned(),
            kind: AuthErrorKind::Exchange {
                reason: "why".to_owned(),
            },
        }
    }

    fn refuse(browser: &Browser, made: Option<u64>, scope: &str) {
        let outcome = asking(browser, made, scope).has_come_to(Err(NoLogin::Refused(error())));
        assert_eq!(outcome.err(), Some(error()));
    }

    fn login() -> Login {
        let login = serde_json::json!({
            "server": "s", "url": "u", "resource": "u", "issuer": "i", "tokenEndpoint": "t",
            "client": "none", "clientId": "c", "kept": "file",
        });
        let tokens = serde_json::json!({ "accessToken": "a", "scopes": [] });
        Login {
            record: serde_json::from_value(login).expect("a record"),
            tokens: serde_json::from_value(tokens).expect("tokens"),
        }
    }

    #[test]
    fn a_person_is_asked_once_for_a_login() {
        let browser = browser();
        refuse(&browser, Some(1), "");
        // A clone, as each link to the server has one.
        let browser = browser.clone();
        assert_eq!(
            refused(&browser, "/one", Some(1), ""),
            "Declined { scope: None }"
        );
        assert_eq!(refused(&browser, "/other", Some(1), ""), "");
    }

    #[test]
    fn what_has_come_of_a_login_is_for_all_who_want_the_same() {
        let browser = browser();
        let outcomes = || -> [Result<Login, NoLogin>; 3] {
            [
                Ok(login()),
                Err(NoLogin::Refused(error())),
                Err(NoLogin::Failed(error())),
            ]
        };
        let then = ["", "Declined { scope: None }", ""];
        for (made, (outcome, then)) in (1..).zip(outcomes().into_iter().zip(then)) {
            let asking = asking(&browser, Some(made), "");
            let waits = match browser.clone().ask(PathBuf::from("/one"), Some(made), &[]) {
                Ok(Turn::Another(waits)) => waits,
                _ => panic!("a person is asked"),
            };
            assert!(waits.borrow().is_none());
            let outcome = asking.has_come_to(outcome).map(|login| login.tokens);
            let told = waits.borrow().clone().expect("it is told");
            assert!(told.map(|login| login.tokens) == outcome);
            assert_eq!(refused(&browser, "/one", Some(made), ""), then);
        }
    }

    #[test]
    fn another_login_is_asked_for_anew() {
        for made in [Some(2), None] {
            let browser = browser();
            refuse(&browser, Some(1), "");
            assert_eq!(refused(&browser, "/one", made, ""), "");
        }
    }

    #[test]
    fn what_was_refused_is_refused_for_its_scopes_alone() {
        let browser = browser();
        refuse(&browser, Some(1), "a b");
        assert_eq!(
            refused(&browser, "/one", Some(1), "b a"),
            r#"Declined { scope: Some("b a") }"#
        );
        for scope in ["", "a", "a c"] {
            assert_eq!(refused(&browser, "/one", Some(1), scope), "", "{scope}");
        }
    }

    #[test]
    fn what_failed_is_asked_for_again() {
        let browser = browser();
        let asking = asking(&browser, None, "");
        assert_eq!(refused(&browser, "/one", None, ""), "another asks");
        drop(asking);
        assert_eq!(refused(&browser, "/one", None, ""), "");
    }

    #[test]
    fn a_server_that_names_another_scope_each_time_is_not_followed_for_ever() {
        let browser = browser();
        for number in 0..MAX_IN_VAIN {
            refuse(&browser, Some(1), &format!("scope-{number}"));
        }
        assert_eq!(
            refused(&browser, "/one", Some(1), "more"),
            r#"InsufficientScope { scope: Some("more"), grant: AuthorizationCode }"#
        );
        assert_eq!(refused(&browser, "/one", Some(1), ""), "");
    }
}
