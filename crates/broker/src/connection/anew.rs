//! How tools are to be called, learnt anew when a server refuses calls for their headers.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Connection;
use crate::calls::Call;
use crate::failure::Failure;
use crate::link::{LinkError, LinkErrorKind};
use crate::patience::Clock;
use crate::session::Changes;

/// What is asked for because calls were refused, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Lessons {
    /// Held by whoever asks for a list.
    last: Mutex<Option<Lesson>>,
    asking: std::sync::Mutex<Asking>,
}

/// What those wait for whose time may be over before there is a list.
#[derive(Debug, Default)]
struct Asking {
    /// The last request for one, or for a page of it.
    id: Option<u64>,
    /// Until when one was held up that did not come, and why.
    held_up: Option<(Instant, LinkError)>,
}

impl Lessons {
    fn asking(&self) -> MutexGuard<'_, Asking> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What came of the last list that was asked for because calls were refused, if the server
/// answered that.
#[derive(Debug)]
struct Lesson {
    asked: Instant,
    /// The names on it; none if there was no list to go by.
    names: HashSet<String>,
    /// Whether it was made known what its tools are.
    published: bool,
}

impl Lesson {
    /// Whether it does for a call that was begun then.
    fn does_for(&self, call: &Call<'_>, began: Instant) -> bool {
        self.asked >= began && (self.published || call.decided.is_none())
    }
}

impl Connection {
    /// Learns anew how the tool of a call is to be called, in what is left of its time:
    /// the call to be made, if there is still such a tool. It is held to what was decided
    /// about like any other, by the list that this takes.
    ///
    /// # Errors
    ///
    /// The time is over, or a login is wanted for it.
    pub(super) async fn learn_anew<'a>(
        &self,
        call: &Call<'a>,
        clock: &Clock,
    ) -> Result<Option<Call<'a>>, Failure> {
        let asked = &self.session.asked;
        let rest = clock.left(asked)?;
        let listed = pin!(self.is_listed(call, clock.started(), rest.idle));
        let listed = Clock::start(rest, asked).limit(listed, || None, asked);
        // The request for the list is still there, if it is this call's.
        let held_up = |failure| self.held_up(failure, clock.started());
        if !listed.await.map_err(held_up)? {
            return Ok(None);
        }
        Ok(Some(Call {
            patience: clock.left(asked)?,
            ..call.clone()
        }))
    }

    /// Why a call that was begun then has no list. Whoever asks for it, it is one login that
    /// all wait for.
    fn held_up(&self, failure: Failure, began: Instant) -> Failure {
        let mut asking = self.lessons.asking();
        let error = match failure {
            Failure::Timeout(_) => {
                let held_up = asking.id.and_then(|id| self.session.link.held_up(id));
                match (held_up, &asking.held_up) {
                    (Some(error), _) => LinkError::from(error),
                    // It asks itself since another one gave up, for the lesser part of its time.
                    (None, Some((until, error)))
                        if until.saturating_duration_since(began) > until.elapsed() =>
                    {
                        return Failure::Lost(error.clone());
                    }
                    _ => return failure,
                }
            }
            Failure::Lost(error) => error,
            _ => return failure,
        };
        asking.held_up = Some((Instant::now(), error.clone()));
        Failure::Lost(error)
    }

    /// Whether the tool of a call is on a list that was asked for after the call had begun.
    /// Calls that are refused together have one list: each would cost its time and memory.
    ///
    /// # Errors
    ///
    /// The list did not come in time, or a login is wanted for it.
    async fn is_listed(
        &self,
        call: &Call<'_>,
        began: Instant,
        limit: Duration,
    ) -> Result<bool, Failure> {
        let mut last = self.lessons.last.lock().await;
        if let Some(lesson) = last.as_ref().filter(|last| last.does_for(call, began)) {
            return Ok(lesson.names.contains(call.tool));
        }
        let known = call.decided.as_ref().map(|decided| &decided.listed);
        let known = known.and_then(|known| Some((known, known.ready()?)));
        let mut lesson = Lesson {
            asked: Instant::now(),
            names: HashSet::new(),
            published: known.is_some(),
        };
        let asks = |id| self.lessons.asking().id = Some(id);
        match self.list_noting(limit, &asks).await {
            Ok(listing) if listing.whole => {
                let names = listing
                    .tools
                    .iter()
                    .filter_map(|tool| tool["name"].as_str());
                lesson.names = names.map(str::to_owned).collect();
                match known {
                    Some((known, before)) => {
                        self.take(listing, &before, |ready| known.take_beside(ready));
                    }
                    None => self.session.tools.take(listing.specials, || {}),
                }
                // Whoever keeps the list has to see the new one.
                let changed = |changes: &mut Changes| changes.tools += 1;
                self.session.changes.send_modify(changed);
            }
            // It has none to go by, for whoever asks, or none that can be taken.
            Err(Failure::Refused(_) | Failure::TooLarge(_)) => {}
            // With more time, or with a login, there may be one for others.
            Err(failure) if is_of_the_asker(&failure) => return Err(failure),
            // What kept it from coming, or from coming whole, may be over for the next one. The
            // call stays refused for its headers: nothing else is known of it.
            Ok(_) | Err(_) => return Ok(false),
        }
        Ok(last.insert(lesson).names.contains(call.tool))
    }
}

/// Whether it says nothing of whether there is a list.
fn is_of_the_asker(failure: &Failure) -> bool {
    match failure {
        Failure::Timeout(_) => true,
        Failure::Lost(error) => matches!(error.kind, LinkErrorKind::Authorization(_)),
        _ => false,
    }
}
