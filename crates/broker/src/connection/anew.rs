//! How tools are to be called, learnt anew when a server refuses calls for their headers.

use std::collections::HashSet;
use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;

use super::Connection;
use crate::calls::Call;
use crate::failure::Failure;
use crate::link::LinkErrorKind;
use crate::patience::Clock;
use crate::session::Changes;

/// The last list that was asked for because calls were refused.
#[derive(Debug)]
pub(super) struct Lesson {
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
        // Whoever asks for the list, it is one login that all wait for.
        let held_up = |failure| match (&failure, self.session.link.holds_up()) {
            (Failure::Timeout(_), Some(error)) => Failure::Lost(error.into()),
            _ => failure,
        };
        if !listed.await.map_err(held_up)? {
            return Ok(None);
        }
        Ok(Some(Call {
            patience: clock.left(asked)?,
            ..call.clone()
        }))
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
        let mut last = self.lesson.lock().await;
        if let Some(lesson) = last.as_ref().filter(|last| last.does_for(call, began)) {
            return Ok(lesson.names.contains(call.tool));
        }
        let known = call.decided.map(|decided| decided.listed);
        let known = known.and_then(|known| Some((known, known.ready()?)));
        let mut lesson = Lesson {
            asked: Instant::now(),
            names: HashSet::new(),
            published: known.is_some(),
        };
        match self.list_tools(limit).await {
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
            // With more time, or with a login, there may be one for others.
            Err(failure) if is_of_the_asker(&failure) => return Err(failure),
            // There is no list to go by.
            Ok(_) | Err(_) => {}
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
