//! Asking a person for a login while calls wait: one page at a time for each login, and none
//! again for what was refused, or granted and of no use.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::future::BoxFuture;
use tokio::sync::watch;

use super::bearer::RIGHT_AWAY;
use super::error::{AuthError, AuthErrorKind};
use super::login::NoLogin;
use super::settings::Grant;
use super::store::Login;

/// How many pages are shown for wider scopes, or for a login in place of one that a page has only
/// just led to, whatever comes of them. A server that names another scope each time, or takes
/// each login for a moment, has no more pages shown than that.
const MAX_PAGES: usize = 8;

/// How many wishes of one login are remembered before those that failed are forgotten.
const MAX_WISHES: usize = 32;

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
/// one is not asked again for the same scopes of that server, nor is one whose login
/// turned out to be of no use, until there is another login, such as by
/// [`login`](fn@super::login). Until then wider scopes, and logins in place of those that pages
/// have only just led to, are asked for eight times at most, whatever comes of it.
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

    /// Takes it on to ask a person, unless they are being asked for the same or for something
    /// else: of two logins, the later one would be in the place of the other.
    ///
    /// # Errors
    ///
    /// Why that is not to be done.
    pub(super) fn ask(&self, request: Request<'_>) -> Result<Turn, NotAsked> {
        let Request {
            place,
            made,
            scopes,
            since,
            refused,
        } = request;
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
        // What the server takes nothing of that a page has led to just now, another one would not
        // mend.
        if refused && scope.is_none() && asked.is_untried() {
            asked.is_of_no_use();
        }
        let is_more = scope.is_some() || asked.is_new();
        match asked.wishes.get_mut(&wish) {
            Some(Wish::Declined) => {
                return Err(NotAsked::For(AuthErrorKind::Declined { scope }));
            }
            // A wider scope that the login should have by now. A login that has ended in its time
            // is made anew.
            Some(granted @ Wish::Granted) if scope.is_some() => {
                *granted = Wish::OfNoUse;
                return Err(NotAsked::OfNoUse);
            }
            Some(Wish::OfNoUse) => return Err(NotAsked::OfNoUse),
            Some(Wish::Failed(at, error)) if since < *at => {
                return Err(NotAsked::Failed(error.clone()));
            }
            _ => {}
        }
        if is_more && asked.pages() >= MAX_PAGES {
            if scope.is_none() {
                return Err(NotAsked::OfNoUse);
            }
            let grant = Grant::AuthorizationCode;
            let kind = AuthErrorKind::InsufficientScope { scope, grant };
            return Err(NotAsked::For(kind));
        }
        if asked.wishes.len() >= MAX_WISHES {
            asked
                .wishes
                .retain(|_, wish| !matches!(wish, Wish::Failed(..)));
        }
        let (tell, outcome) = watch::channel(None);
        asked.wishes.insert(wish.clone(), Wish::UnderWay(outcome));
        drop(all);
        Ok(Turn::Own(Asking {
            browser: self.clone(),
            place,
            made,
            wish,
            is_more,
            tell,
        }))
    }

    /// The server has taken what the login gave that was made then.
    pub(super) fn taken(&self, place: &Path, made: u64) {
        let mut all = self.asked();
        if let Some(asked) = all.get_mut(place)
            && asked.made == Some(made)
        {
            asked.taken = true;
        }
    }

    /// The server has just refused, for good, the login that was made then. If a page has only
    /// now led to it, another page would lead no further.
    pub(super) fn of_no_use(&self, place: &Path, made: u64) {
        let mut all = self.asked();
        if let Some(asked) = all.get_mut(place)
            && asked.made == Some(made)
            && asked.is_untried()
        {
            asked.is_of_no_use();
        }
    }

    fn asked(&self) -> MutexGuard<'_, HashMap<PathBuf, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a person is to be asked for, and why.
pub(super) struct Request<'a> {
    /// Where the login is kept.
    pub(super) place: PathBuf,
    /// When the one that is there was made.
    pub(super) made: Option<u64>,
    /// Empty for a login with those that the server names.
    pub(super) scopes: &'a [String],
    /// Since when a call has waited.
    pub(super) since: Instant,
    /// Whether the server has refused the login that is there.
    pub(super) refused: bool,
}

/// Why a person is not asked.
#[derive(Debug)]
pub(super) enum NotAsked {
    /// They refused, or were asked for too much.
    For(AuthErrorKind),
    /// Asking them has failed since a call began to wait.
    Failed(AuthError),
    /// They have agreed to just that, and it was of no use.
    OfNoUse,
}

/// What a person was asked for at one server.
#[derive(Default)]
struct Asked {
    /// When the login that was there then had been made.
    made: Option<u64>,
    wishes: HashMap<BTreeSet<String>, Wish>,
    /// When a person agreed to it, if that was at a page of this browser's.
    agreed: Option<Instant>,
    /// Whether the server has taken what it gave.
    taken: bool,
    /// How many pages have led to it, one after the other, that there are [`MAX_PAGES`] of.
    granted: usize,
}

impl Asked {
    /// What a person is being asked for, and where it is told what comes of that.
    fn under_way(&self) -> Option<(&BTreeSet<String>, &watch::Receiver<Option<Outcome>>)> {
        self.wishes.iter().find_map(|(wish, state)| match state {
            Wish::UnderWay(outcome) => Some((wish, outcome)),
            _ => None,
        })
    }

    /// Whether a person has only just agreed to what is there.
    fn is_new(&self) -> bool {
        self.agreed.is_some_and(|at| at.elapsed() < RIGHT_AWAY)
    }

    /// Whether the server, moreover, has taken nothing of it yet.
    fn is_untried(&self) -> bool {
        self.is_new() && !self.taken
    }

    /// The login that is there is good for nothing. What is being asked for still may be.
    fn is_of_no_use(&mut self) {
        let login = self.wishes.entry(BTreeSet::new());
        let login = login.or_insert(Wish::OfNoUse);
        if !matches!(login, Wish::UnderWay(_)) {
            *login = Wish::OfNoUse;
        }
    }

    /// How many pages were shown that there are [`MAX_PAGES`] of, but for those that failed.
    fn pages(&self) -> usize {
        let wishes = self.wishes.values();
        let declined = wishes.filter(|wish| matches!(wish, Wish::Declined));
        self.granted + declined.count()
    }
}

/// What has become of asking for some scopes.
enum Wish {
    /// A person is being asked.
    UnderWay(watch::Receiver<Option<Outcome>>),
    /// They refused.
    Declined,
    /// They agreed, and it is what the login that is there was made for.
    Granted,
    /// They agreed, and the server wants the same again.
    OfNoUse,
    /// Something failed then, which is told to whoever waited already.
    Failed(Instant, AuthError),
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
    /// Whether its page is one of those that there are [`MAX_PAGES`] of.
    is_more: bool,
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
                    let before = all.get(&self.place).filter(|asked| asked.made == self.made);
                    let before = before.map_or(0, |before| before.pages());
                    // What another login was refused or granted says nothing of this one.
                    let asked = Asked {
                        made: Some(login.record.made),
                        wishes: HashMap::from([(self.wish.clone(), Wish::Granted)]),
                        agreed: Some(Instant::now()),
                        taken: false,
                        granted: before + usize::from(self.is_more),
                    };
                    all.insert(self.place.clone(), asked);
                    Ok(login)
                }
                Err(NoLogin::Refused(error)) => {
                    if let Some(wish) = self.wish(&mut all) {
                        *wish = Wish::Declined;
                    }
                    Err(error)
                }
                Err(NoLogin::Failed(error)) => {
                    // Whoever asks after this may ask for it at once.
                    if let Some(wish) = self.wish(&mut all) {
                        *wish = Wish::Failed(Instant::now(), error.clone());
                    }
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
mod tests;
