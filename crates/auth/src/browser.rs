//! Login pages that are shown while calls wait: one page at a time for each login, and not again
//! after a failure.

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

/// Pages of one login within [`PERIOD`]. The limit stops a server that names a new scope each time,
/// or that accepts each login only briefly.
const MAX_PAGES: usize = 8;
const PERIOD: Duration = Duration::from_secs(30 * 60);

/// The page of a login. `Display` says which server sends the person to which host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoginPage {
    /// The name of the server that requires the login, in the configuration.
    pub server: String,
    /// The URL of the page. Its secrets are useless outside this process.
    pub url: Url,
    /// The issuer of the login, from the metadata that the server names.
    pub issuer: String,
}

impl LoginPage {
    /// True if the page is at the origin of its issuer.
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
    /// Shows a page, together with the server, the host and the issuer. Returns without waiting for
    /// the login.
    fn open<'a>(&'a self, page: &'a LoginPage) -> BoxFuture<'a, io::Result<()>>;

    /// Asks a person whether a page that is not at its issuer belongs to it. `None` if there is no
    /// person to ask: then the login succeeds only if the browser comes back with the issuer's name
    /// (RFC 9207). Default: `None`.
    fn approve<'a>(&'a self, _page: &'a LoginPage) -> BoxFuture<'a, io::Result<Option<bool>>> {
        std::future::ready(Ok(None)).boxed()
    }
}

/// A shared [`OpenUrl`] for logins that calls wait for.
///
/// Clones share the history of pages. A page for the same scopes of a server is not shown again if
/// the person refused it, or if the server did not accept its login, until a new login appears, for
/// example through the function `login`.
#[derive(Clone)]
pub struct Browser {
    pub(crate) opener: Arc<dyn OpenUrl>,
    /// The pages of each login, by the login's file.
    history: Arc<Mutex<HashMap<PathBuf, Pages>>>,
}

/// The pages of one login.
#[derive(Default)]
struct Pages {
    /// Held while a page is open.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// The identifier of the login from the pages, or of the one before them.
    login: Option<String>,
    /// The result of the page for each set of scopes: [`PageResult::Granted`] or
    /// [`PageResult::Declined`].
    results: HashMap<BTreeSet<String>, PageResult>,
    /// The times of the pages in the last [`PERIOD`].
    shown: Vec<Instant>,
    /// The last failure that does not exclude a new page.
    failed: Option<(Instant, AuthError)>,
}

/// The result of a page.
pub(crate) enum PageResult {
    /// A login with this identifier.
    Granted(String),
    /// The person or the authorization server refused the login. The error is for later callers.
    Declined(AuthError),
    /// Anything else failed.
    Failed(AuthError),
}

impl Browser {
    /// A browser for one gate, or for one application from the person's view.
    pub fn new(opener: Arc<dyn OpenUrl>) -> Self {
        Self {
            opener,
            history: Arc::default(),
        }
    }

    /// Waits until no other page is open for the login of this file.
    pub(crate) async fn turn(&self, file: &Path) -> OwnedMutexGuard<()> {
        let turn = Arc::clone(&self.history.lock().entry(file.to_owned()).or_default().turn);
        turn.lock_owned().await
    }

    /// Checks that a page for these scopes may be shown. `login` is the current login, and `since`
    /// the time when the caller began to wait. The error says why no page is shown; it is `useless`
    /// if the server did not accept the last login.
    pub(crate) fn check(
        &self,
        file: &Path,
        login: Option<&str>,
        scopes: &[String],
        since: Instant,
        useless: AuthError,
    ) -> Result<(), AuthError> {
        let mut history = self.history.lock();
        let pages = history.entry(file.to_owned()).or_default();
        if pages.login.as_deref() != login {
            pages.login = login.map(str::to_owned);
            pages.results.clear();
            pages.shown.clear();
        }
        if let Some((at, error)) = &pages.failed
            && since < *at
        {
            return Err(error.clone());
        }
        pages.shown.retain(|at| at.elapsed() < PERIOD);
        match pages.results.get(&scopes.iter().cloned().collect()) {
            Some(PageResult::Declined(error)) => Err(error.clone()),
            None if pages.shown.len() < MAX_PAGES => Ok(()),
            _ => Err(useless),
        }
    }

    /// Records the result of a page.
    pub(crate) fn record(&self, file: &Path, scopes: &[String], page: PageResult) {
        let mut history = self.history.lock();
        let pages = history.entry(file.to_owned()).or_default();
        match page {
            PageResult::Failed(error) => {
                pages.failed = Some((Instant::now(), error));
                return;
            }
            PageResult::Granted(ref login) => pages.login = Some(login.clone()),
            PageResult::Declined(_) => {}
        }
        pages.shown.push(Instant::now());
        pages.results.insert(scopes.iter().cloned().collect(), page);
    }

    /// Records that the server accepted a login. After its end, a new page may be shown.
    pub(crate) fn accepted(&self, file: &Path, login: &str) {
        if let Some(pages) = self.history.lock().get_mut(file)
            && pages.login.as_deref() == Some(login)
        {
            pages.results.remove(&BTreeSet::new());
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

    fn record(browser: &Browser, scopes: &[&str], page: PageResult) {
        let scopes: Vec<String> = scopes.iter().map(|&scope| scope.to_owned()).collect();
        browser.record(Path::new(FILE), &scopes, page);
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
        record(&browser, &[], PageResult::Granted("a".to_owned()));
        assert_eq!(check(&browser, Some("a"), &[]), "useless");
        browser.accepted(Path::new(FILE), "other");
        assert_eq!(check(&browser, Some("a"), &[]), "useless");
        // The server accepted the login, so a new one may follow.
        browser.accepted(Path::new(FILE), "a");
        assert_eq!(check(&browser, Some("a"), &[]), "shown");
        record(
            &browser,
            &["x", "y"],
            PageResult::Declined(error("declined")),
        );
        assert_eq!(check(&browser.clone(), Some("a"), &["y", "x"]), "declined");
        assert_eq!(check(&browser, Some("a"), &["x"]), "shown");
        assert_eq!(
            check(&browser, Some("b"), &["x", "y"]),
            "shown",
            "a new login"
        );
    }

    #[test]
    fn login_failure_reaches_only_earlier_waiters() {
        let browser = Browser::new(Arc::new(Shown));
        let since = Instant::now();
        record(&browser, &[], PageResult::Failed(error("failed")));
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
                record(&browser, scopes, PageResult::Granted("a".to_owned()));
                browser.accepted(Path::new(FILE), "a");
            }
            0
        };
        assert_eq!((shown(false), shown(true)), (MAX_PAGES, MAX_PAGES));
    }
}
