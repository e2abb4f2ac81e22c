//! Asking a person for a login while calls wait: one page at a time for each login, and none
//! again for what was refused.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use tokio::sync::watch;

use super::error::{AuthError, AuthErrorKind};
use super::login::NoLogin;
use super::settings::Grant;
use super::store::Login;

/// How many wider scopes a person may refuse at one login. A server that names
/// another one each time does not have more pages shown than that.
const MAX_IN_VAIN: usize = 8;

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
    /// that the server names, unless they are being asked for these or for others: of two
    /// logins, the later one would be in the place of the other.
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
        if let Some((under_way, outcome)) = asked.under_way() {
            return Ok(Turn::Another {
                outcome: outcome.clone(),
                same: *under_way == wish && asked.made == made,
            });
        }
        if asked.made != made {
            *asked = Asked::default();
            asked.made = made;
        }
        if let Some(Wish::InVain) = asked.wishes.get(&wish) {
            return Err(AuthErrorKind::Declined { scope });
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

impl Asked {
    /// What a person is being asked for, and where it is told what comes of that.
    fn under_way(&self) -> Option<(&BTreeSet<String>, &watch::Receiver<Option<Outcome>>)> {
        self.wishes.iter().find_map(|(wish, state)| match state {
            Wish::UnderWay(outcome) => Some((wish, outcome)),
            Wish::InVain => None,
        })
    }
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
    Another {
        outcome: watch::Receiver<Option<Outcome>>,
        /// Whether it asks for the same.
        same: bool,
    },
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
                Err(NoLogin::Failed(error)) => {
                    // Whoever is told may ask for it at once.
                    self.forget(&mut all);
                    Err(error)
                }
            }
        };
        self.tell.send_replace(Some(outcome.clone()));
        outcome
    }

    /// Nobody is asked for it any more.
    fn forget(&self, all: &mut HashMap<PathBuf, Asked>) {
        if let Some(Wish::UnderWay(_)) = self.wish(all)
            && let Some(asked) = all.get_mut(&self.place)
        {
            asked.wishes.remove(&self.wish);
        }
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
        self.forget(&mut self.browser.asked());
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
            Ok(Turn::Another { same: true, .. }) => "another asks".to_owned(),
            Ok(Turn::Another { same: false, .. }) => "another asks for another".to_owned(),
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
                Ok(Turn::Another { outcome, .. }) => outcome,
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
    fn a_person_is_asked_for_one_thing_at_a_time() {
        let browser = browser();
        refuse(&browser, Some(1), "in vain");
        let asking = asking(&browser, Some(1), "a");
        for (made, scope) in [(Some(1), ""), (Some(1), "b"), (Some(2), "a"), (None, "a")] {
            let refused = refused(&browser, "/one", made, scope);
            assert_eq!(refused, "another asks for another", "{made:?} {scope}");
        }
        assert_eq!(refused(&browser, "/one", Some(1), "a"), "another asks");
        assert_eq!(refused(&browser, "/other", Some(1), "b"), "");
        drop(asking);
        assert_eq!(refused(&browser, "/one", Some(1), "b"), "");
        // What was refused before still is.
        assert_eq!(
            refused(&browser, "/one", Some(1), "in vain"),
            r#"Declined { scope: Some("in vain") }"#
        );
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
