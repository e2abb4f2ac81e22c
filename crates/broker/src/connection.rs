//! One server that is up: requests to it, and what became of them.

mod anew;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use anew::Lessons;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::broker::Ready;
use crate::calls::Call;
use crate::failure::Failure;
use crate::link::{LinkError, LinkErrorKind};
use crate::listing::{Listing, USUALLY_FRESH};
use crate::patience::{Clock, Patience};
use crate::process::Process;
use crate::session::{Agreed, Request, Session};
use crate::tools::Specials;
use callgate_auth::Redact;

/// How long a lost connection's process has to say how it ended, for the
/// message.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// How often a list is asked for again because of a login meanwhile.
const MAX_LOGINS: usize = 3;

/// The most pages of a list, beside the bounds on what they have.
const MAX_PAGES: usize = 1_000;

/// A server that is up.
#[derive(Debug)]
pub(crate) struct Connection {
    session: Arc<Session>,
    process: Option<Process>,
    secrets: Redact,
    lessons: Lessons,
}

impl Connection {
    /// A session that has been agreed on, and the process behind it, if it is
    /// one.
    pub(crate) fn new(session: Arc<Session>, process: Option<Process>) -> Self {
        Self {
            secrets: session.secrets.clone(),
            session,
            process,
            lessons: Lessons::default(),
        }
    }

    /// The session.
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// What the server said of itself.
    pub(crate) fn agreed(&self) -> Option<Agreed> {
        self.session.agreed().cloned()
    }

    /// The end of its stderr.
    pub(crate) fn stderr(&self) -> String {
        self.process.as_ref().map_or_else(String::new, |process| {
            self.secrets.redact(&process.stderr_tail())
        })
    }

    /// What it sent that was no message, so far.
    pub(crate) fn junk(&self) -> u64 {
        self.session.inbox.junk()
    }

    /// Calls a tool and returns the `result` member of the answer.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Box<RawValue>, Failure> {
        let clock = Clock::start(call.patience, &self.session.asked);
        let mut called = self.session.call(call).await;
        if let Err(Failure::Headers(_, rounds)) = &mut called
            && self.mirrors()
        {
            let rounds = std::mem::take(rounds);
            called = match self.learn_anew(call, &clock).await {
                Ok(Some(again)) => self.session.go_on(&again, *rounds).await,
                Ok(None) => called,
                Err(failure) => Err(rounds.failed(failure)),
            };
        }
        let Patience { idle, most } = call.patience;
        match called {
            Err(Failure::Lost(error)) => {
                let told = self.with_last_words(error.clone()).await;
                if error.kind == LinkErrorKind::Closed && !error.sent {
                    // It takes no more requests, and may go on for long: with what it still works
                    // on, and then whoever keeps it up has to hear of that.
                    self.session.inbox.shut(error);
                }
                Err(Failure::Lost(told))
            }
            Err(Failure::Headers(error, _)) => Err(Failure::Refused(error)),
            Err(Failure::Changed { what, sent, .. }) => Err(Failure::Changed {
                what,
                sent,
                spent: clock.spent(&self.session.asked),
            }),
            // Of the whole, not of what was left of it.
            Err(Failure::Timeout(limit)) if limit != idle => Err(Failure::Timeout(most)),
            called => called,
        }
    }

    /// Lists every page of tools. Each request may take up to `limit`. Calls are made as
    /// before until the list is taken.
    pub(crate) async fn list_tools(&self, limit: Duration) -> Result<Listing, Failure> {
        self.list_noting(limit, &|_| {}).await
    }

    /// [`Connection::list_tools`] that tells the id of each request before it is sent.
    async fn list_noting(
        &self,
        limit: Duration,
        asks: &(dyn Fn(u64) + Sync),
    ) -> Result<Listing, Failure> {
        for _ in 0..MAX_LOGINS {
            let login = self.session.login();
            let mut listing = self.list_pages(limit, asks).await?;
            if login != self.session.login() {
                // What came may be for somebody else, or a part of it.
                continue;
            }
            let (mirrored, dropped) = (self.mirrors(), &mut listing.dropped);
            listing.specials = Specials::read(&mut listing.tools, mirrored, dropped);
            listing.warnings.extend(listing.dropped.said());
            listing.login = login;
            return Ok(listing);
        }
        let reason = "each time that it was asked for, there was another login meanwhile";
        Err(Failure::Malformed(reason.to_owned()))
    }

    /// Has calls made by a list from now on, which `publish` makes known in the place of
    /// `before`.
    pub(crate) fn take(&self, listing: Listing, before: &Ready, publish: impl FnOnce(Ready)) {
        let ready = Ready {
            fresh_for: self.fresh_for(&listing),
            ttl: listing.ttl(),
            login: listing.login,
            tools: listing.tools,
            warnings: listing.warnings,
            ..before.clone()
        };
        let tools = &self.session.tools;
        tools.take(listing.specials, || publish(ready));
    }

    /// Whether arguments may have to be sent as headers, too.
    fn mirrors(&self) -> bool {
        self.process.is_none() && self.session.is_stateless()
    }

    /// Whether the server has said that it has tools.
    pub(crate) fn announces_tools(&self) -> bool {
        let agreed = self.session.agreed();
        agreed.is_some_and(|agreed| agreed.abilities.tools)
    }

    async fn list_pages(
        &self,
        limit: Duration,
        asks: &(dyn Fn(u64) + Sync),
    ) -> Result<Listing, Failure> {
        let mut listing = Listing::new();
        let mut cursor = None;
        let mut seen = HashSet::new();
        for _ in 0..MAX_PAGES {
            let page = match self.page(cursor.take(), limit, asks).await {
                Ok(page) => page,
                Err(Failure::Refused(error)) if error.code.0 == -32601 && seen.is_empty() => {
                    listing
                        .warnings
                        .push("it has no tools: it does not know tools/list".to_owned());
                    return Ok(listing);
                }
                Err(failure) if listing.tools.is_empty() => return Err(failure),
                Err(failure) => {
                    let reason = self.describe_list(&failure);
                    listing
                        .warnings
                        .push(format!("its list of tools breaks off: {reason}"));
                    listing.whole = false;
                    return Ok(listing);
                }
            };
            let next = match listing.take_page(&page) {
                Ok(next) => next,
                Err(reason) if listing.tools.is_empty() => return Err(Failure::Malformed(reason)),
                Err(reason) => {
                    listing
                        .warnings
                        .push(format!("its list of tools breaks off: {reason}"));
                    listing.whole = false;
                    return Ok(listing);
                }
            };
            // Servers of older revisions write it where there is none; since 2026-07-28 it is
            // a cursor like any other.
            let next = next.filter(|cursor| !cursor.is_empty() || self.session.is_stateless());
            let goes_on = next.is_some() && listing.is_full();
            if listing.cut || goes_on {
                let used = listing.seen;
                listing.warnings.push(format!(
                    "its list of tools is too long; only the first {used} are used"
                ));
                return Ok(listing);
            }
            let Some(next) = next else {
                return Ok(listing);
            };
            if !seen.insert(next.clone()) {
                listing.warnings.push(
                    "its list of tools repeats a cursor; what came before is used".to_owned(),
                );
                return Ok(listing);
            }
            cursor = Some(next);
        }
        listing.warnings.push(format!(
            "only the first {MAX_PAGES} pages of its tools are used"
        ));
        Ok(listing)
    }

    async fn page(
        &self,
        cursor: Option<String>,
        limit: Duration,
        asks: &(dyn Fn(u64) + Sync),
    ) -> Result<Box<RawValue>, Failure> {
        let members = match cursor {
            Some(cursor) => format!(r#""cursor":{}"#, Value::from(cursor)),
            None => String::new(),
        };
        let request = Request::new("tools/list", &members);
        let patience = Patience::exactly(limit);
        let mut flight = self.session.open(&request)?;
        let id = flight.id();
        asks(id);
        let last_sign = || self.session.inbox.progressed_at(id);
        let page = self.session.fly(&mut flight, &request, patience, last_sign);
        self.session.whole(page.await?)
    }

    /// For how long a list of its tools holds; `None` if that is told otherwise,
    /// or not at all.
    pub(crate) fn fresh_for(&self, listing: &Listing) -> Option<Duration> {
        let agreed = self.agreed()?;
        match listing.ttl() {
            _ if agreed.version.has_initialize() => None,
            Some(ttl) => Some(ttl),
            None => (!self.is_told()).then_some(USUALLY_FRESH),
        }
    }

    /// Whether the server has agreed to tell of changes, and is listened to.
    fn is_told(&self) -> bool {
        let acknowledged = self.session.changes.borrow().acknowledged;
        acknowledged.is_some_and(|id| self.session.inbox.is_listening(id))
    }

    /// Whether it takes calls, as far as is known.
    pub(crate) fn takes_calls(&self) -> bool {
        self.session.inbox.is_open()
    }

    /// How often its list of tools has changed, or may have, by what the server said.
    pub(crate) fn list_changes(&self) -> u64 {
        self.session.watch_changes().borrow().tools
    }

    /// Waits for the end of the process; for ever, if there is none.
    pub(crate) fn exited(&self) -> impl Future<Output = ()> + use<> {
        let exit = self.process.as_ref().map(Process::watch_exit);
        async move {
            match exit {
                Some(mut exit) => drop(exit.wait_for(Option::is_some).await),
                None => std::future::pending().await,
            }
        }
    }

    /// How its process ended, if it does within a moment.
    pub(crate) async fn status(&self) -> Option<String> {
        self.process.as_ref()?.ended(LAST_WORDS).await
    }

    /// How it ended, without secrets.
    pub(crate) async fn epitaph(&self) -> String {
        let lost = match &*self.session.watch_lost().borrow() {
            Some(error) => self.secrets.redact(&error.to_string()),
            None => "the server closed the connection".to_owned(),
        };
        let Some(process) = &self.process else {
            return lost;
        };
        let mut words = match process.ended(LAST_WORDS).await {
            Some(status) => format!("the server ended with {status}"),
            None => lost,
        };
        let stderr = self.stderr();
        if !stderr.is_empty() {
            words.push_str("; its last words on stderr: ");
            words.push_str(&stderr);
        }
        words
    }

    /// Ends the connection and the process.
    pub(crate) async fn shut_down(&self) {
        self.session.close().await;
        if let Some(process) = &self.process {
            process.shut_down().await;
        }
    }

    /// One line about a failure, with no secrets in it.
    pub(crate) fn describe(&self, failure: &Failure) -> String {
        self.secrets.redact(&failure.to_string())
    }

    /// [`Connection::describe`] for a failure to list tools.
    pub(crate) fn describe_list(&self, failure: &Failure) -> String {
        match failure {
            // There is no tool that could be asked for less.
            Failure::TooLarge(limit) => {
                format!("it is over the limit of {limit} bytes; raise `limits.result`")
            }
            failure => self.describe(failure),
        }
    }

    /// What to say of a connection that is gone.
    async fn with_last_words(&self, mut error: LinkError) -> LinkError {
        if error.kind != LinkErrorKind::Closed {
            return error;
        }
        let when = if error.sent {
            "during the call"
        } else {
            "before the call"
        };
        let Some(process) = &self.process else {
            error.reason = format!("{} {when}", error.reason);
            return error;
        };
        let mut words = match process.ended(LAST_WORDS).await {
            Some(status) => format!("the server ended with {status} {when}"),
            None => format!("{} {when}", error.reason),
        };
        let stderr = self.stderr();
        if !stderr.is_empty() {
            words.push_str("; its last words on stderr: ");
            words.push_str(&stderr);
        }
        error.reason = words;
        error
    }
}

#[cfg(test)]
mod tests;
