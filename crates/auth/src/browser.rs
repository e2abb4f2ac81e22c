//! Asks a person for a login while calls wait: one page at a time for each login, and no page
//! again that led to nothing.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use url::Url;

use crate::error::AuthError;

/// The number of pages in [`PERIOD`] until another login appears. A server that names another
/// scope each time has no more pages shown, nor has one that accepts each login for a moment.
const MAX_PAGES: usize = 8;
const PERIOD: Duration = Duration::from_secs(30 * 60);

/// The page of a login. Its text says which server sends the person to which host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginPage {
    /// The name of the server that wants the login, in the configuration.
    pub server: String,
    /// The page. It holds no secret that is of use without this process.
    pub url: Url,
    /// The issuer of the login, by the metadata that the server names.
    pub issuer: String,
}

impl LoginPage {
    /// Tells whether the page is at the origin of its issuer.
    pub fn is_at_issuer(&self) -> bool {
        Url::parse(&self.issuer).is_ok_and(|issuer| issuer.origin() == self.url.origin())
    }
}

impl fmt::Display for LoginPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, issuer, .. } = self;
        let host = self.url.authority();
        write!(f, "server {server} sends you to {host} (issuer {issuer})")
    }
}

/// Shows the pages of logins to a person.
pub trait OpenUrl: Send + Sync {
    /// Shows a page, together with the server, the host and the issuer, and returns without
    /// waiting for the login's end.
    fn open<'a>(&'a self, page: &'a LoginPage) -> BoxFuture<'a, io::Result<()>>;

    /// Asks a person whether a page that is not at its issuer belongs to it. `None`: no person
    /// can be asked: the login then succeeds only if the browser comes back with the issuer's
    /// name (RFC 9207). Default: `None`.
    fn approve<'a>(&'a self, _page: &'a LoginPage) -> BoxFuture<'a, io::Result<Option<bool>>> {
        std::future::ready(Ok(None)).boxed()
    }
}

/// A shared [`OpenUrl`] for logins that calls wait for.
///
/// Clones share the memory of pages. A person who refused a page is not shown it again for the
/// same scopes of that server, nor is a page shown again whose login the server did not accept,
/// until another login appears, such as by the function `login`.
#[derive(Clone)]
pub struct Browser {
    opener: Arc<dyn OpenUrl>,
    /// By the file of the login.
    asked: Arc<Mutex<HashMap<PathBuf, Pages>>>,
}

/// The pages that were shown for one login.
#[derive(Default)]
struct Pages {
    /// Held while a page is open.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// The identifier of the login that the pages led to, or that was there before.
    login: Option<String>,
    /// The scopes of each page, and its result: [`Page::Granted`] or [`Page::Declined`].
    pages: HashMap<BTreeSet<String>, Page>,
    /// The times of the pages in the last [`PERIOD`].
    shown: Vec<Instant>,
    /// The last failure that says nothing of the next page.
    failed: Option<(Instant, AuthError)>,
}

/// The result of a page.
pub(crate) enum Page {
    /// A login with this identifier.
    Granted(String),
    /// The person or the authorization server refused it. The error is for later callers.
    Declined(AuthError),
    /// Something failed.
    Failed(AuthError),
}

impl Browser {
    /// A browser of one gate, or of whatever a person sees as one application.
    pub fn new(opener: Arc<dyn OpenUrl>) -> Self {
        Self {
            opener,
            asked: Arc::default(),
        }
    }

    pub(crate) fn opener(&self) -> Arc<dyn OpenUrl> {
        Arc::clone(&self.opener)
    }

    /// Waits until no other page is open for the login of this file.
    pub(crate) async fn turn(&self, file: &Path) -> OwnedMutexGuard<()> {
        let turn = Arc::clone(&self.asked.lock().entry(file.to_owned()).or_default().turn);
        turn.lock_owned().await
    }

    /// Checks whether to show a page with these scopes; none for those that the server names.
    /// `login` is the login that is there, and `since` the time when the caller began to wait.
    /// The error: why no page is shown; `useless` if the server did not accept the last login.
    pub(crate) fn check(
        &self,
        file: &Path,
        login: Option<&str>,
        scopes: &[String],
        since: Instant,
        useless: AuthError,
    ) -> Result<(), AuthError> {
        let mut all = self.asked.lock();
        let asked = all.entry(file.to_owned()).or_default();
        if asked.login.as_deref() != login {
            asked.login = login.map(str::to_owned);
            asked.pages.clear();
            asked.shown.clear();
        }
        if let Some((at, error)) = &asked.failed
            && since < *at
        {
            return Err(error.clone());
        }
        asked.shown.retain(|at| at.elapsed() < PERIOD);
        match asked.pages.get(&scopes.iter().cloned().collect()) {
            Some(Page::Declined(error)) => Err(error.clone()),
            None if asked.shown.len() < MAX_PAGES => Ok(()),
            _ => Err(useless),
        }
    }

    /// Notes the result of a page.
    pub(crate) fn note(&self, file: &Path, scopes: &[String], page: Page) {
        let mut all = self.asked.lock();
        let asked = all.entry(file.to_owned()).or_default();
        match page {
            Page::Failed(error) => {
                asked.failed = Some((Instant::now(), error));
                return;
            }
            Page::Granted(ref login) => asked.login = Some(login.clone()),
            Page::Declined(_) => {}
        }
        asked.shown.push(Instant::now());
        asked.pages.insert(scopes.iter().cloned().collect(), page);
    }

    /// Notes that the server accepted a login: when it ends, a page may be shown for another.
    pub(crate) fn accepted(&self, file: &Path, login: &str) {
        if let Some(asked) = self.asked.lock().get_mut(file)
            && asked.login.as_deref() == Some(login)
        {
            asked.pages.remove(&BTreeSet::new());
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
        fn open<'a>(&'a self, _page: &'a LoginPage) -> BoxFuture<'a, io::Result<()>> {
            std::future::ready(Ok(())).boxed()
        }
    }

    const FILE: &str = "login.json";

    fn error(problem: &str) -> AuthError {
        AuthError::new("s", problem.to_owned())
    }

    fn check(browser: &Browser, login: Option<&str>, scopes: &[&str]) -> String {
        let scopes: Vec<String> = scopes.iter().map(|&scope| scope.to_owned()).collect();
        let (file, useless) = (Path::new(FILE), error("useless"));
        match browser.check(file, login, &scopes, Instant::now(), useless) {
            Ok(()) => "shown".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    fn note(browser: &Browser, scopes: &[&str], page: Page) {
        let scopes: Vec<String> = scopes.iter().map(|&scope| scope.to_owned()).collect();
        browser.note(Path::new(FILE), &scopes, page);
    }

    #[test]
    fn page_at_issuer_has_the_same_origin() {
        for (url, issuer, expected) in [
            (
                "https://as.example/authorize",
                "https://as.example/tenant",
                true,
            ),
            ("https://AS.example:443/a", "https://as.EXAMPLE", true),
            ("https://login.as.example/a", "https://as.example", false),
            ("https://as.example:8443/a", "https://as.example", false),
            ("https://as.example./a", "https://as.example", false),
            ("http://as.example/a", "https://as.example", false),
            ("https://as.example.evil/a", "https://as.example", false),
            ("https://as.example/a", "https://as.example@evil", false),
            ("https://as.example/a", "as.example", false),
        ] {
            let page = LoginPage {
                server: "s".to_owned(),
                url: url.parse().expect("a URL"),
                issuer: issuer.to_owned(),
            };
            assert_eq!(page.is_at_issuer(), expected, "{page}");
        }
    }

    #[test]
    fn page_without_accepted_login_is_not_shown_again() {
        let browser = Browser::new(Arc::new(Shown));
        assert_eq!(check(&browser, None, &[]), "shown");
        note(&browser, &[], Page::Granted("a".to_owned()));
        assert_eq!(check(&browser, Some("a"), &[]), "useless");
        browser.accepted(Path::new(FILE), "another");
        assert_eq!(check(&browser, Some("a"), &[]), "useless");
        // The server accepted the login, so one may follow it.
        browser.accepted(Path::new(FILE), "a");
        assert_eq!(check(&browser, Some("a"), &[]), "shown");
        note(&browser, &["x", "y"], Page::Declined(error("declined")));
        assert_eq!(check(&browser.clone(), Some("a"), &["y", "x"]), "declined");
        assert_eq!(check(&browser, Some("a"), &["x"]), "shown");
        assert_eq!(
            check(&browser, Some("b"), &["x", "y"]),
            "shown",
            "another login"
        );
    }

    #[test]
    fn login_failure_reaches_only_earlier_waiters() {
        let browser = Browser::new(Arc::new(Shown));
        let since = Instant::now();
        note(&browser, &[], Page::Failed(error("failed")));
        let scopes = ["x".to_owned()];
        let waited = browser.check(Path::new(FILE), None, &scopes, since, error("useless"));
        assert_eq!(waited, Err(error("failed")));
        assert_eq!(check(&browser, None, &[]), "shown");
    }

    #[test]
    fn pages_are_bounded() {
        let shown = |scopes: bool| {
            let browser = Browser::new(Arc::new(Shown));
            for page in 0.. {
                let scope = format!("scope-{page}");
                let scopes: &[&str] = if scopes { &[&scope] } else { &[] };
                if check(&browser, Some("a"), scopes) != "shown" {
                    return page;
                }
                note(&browser, scopes, Page::Granted("a".to_owned()));
                browser.accepted(Path::new(FILE), "a");
            }
            0
        };
        assert_eq!((shown(false), shown(true)), (MAX_PAGES, MAX_PAGES));
    }
}
