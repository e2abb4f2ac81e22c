//! Where runs are parked that wait for their client to come again with answers
//! (MCP 2026-07-28, "Multi Round-Trip Requests").

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    InputRequiredResult, InputResponses, RequestStateCodec, RequestStateError, SealOptions,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use super::carry::Carried;
use super::desk::Wish;

/// The parked runs of one client.
pub(crate) struct Lot {
    codec: RequestStateCodec,
    time: Duration,
    most: usize,
    parked: Mutex<HashMap<u64, Parked>>,
}

struct Parked {
    carried: Carried,
    asked: BTreeMap<String, oneshot::Sender<Value>>,
    /// Ends the run when nobody comes.
    _expiry: AbortOnDropHandle<()>,
}

/// What a `requestState` says, under a seal. Anyone can read it.
#[derive(Debug, Serialize, Deserialize)]
struct Ticket {
    run: u64,
    question: u64,
}

/// Why a client that comes again is sent away. Nothing has changed then.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum Refused {
    #[error("the requestState is not one that this server gave for this script")]
    Forged,
    #[error("the requestState has expired, and its run was cancelled; run the script anew")]
    Expired,
    #[error("the requestState was used before, or its run has ended; run the script anew")]
    Used,
    #[error("inputResponses has no answer to {0}, which was asked for")]
    NoAnswer(String),
}

impl Lot {
    /// A lot where so many runs may wait, each for so long.
    ///
    /// # Errors
    ///
    /// If the system gives no random bytes for the seal's key.
    pub(crate) fn new(most: usize, time: Duration) -> std::io::Result<Self> {
        let mut key = vec![0; 32];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut key)?;
        Ok(Self {
            codec: RequestStateCodec::try_new(key).map_err(std::io::Error::other)?,
            time,
            most,
            parked: Mutex::default(),
        })
    }

    /// Parks a run until the client brings what it wants, and says what that
    /// is. A run for which there is no room comes back.
    pub(crate) fn park(
        self: &Arc<Self>,
        mut carried: Carried,
        wishes: Vec<Wish>,
        code: &str,
    ) -> Result<InputRequiredResult, Box<Carried>> {
        let mut lot = self.lock();
        if lot.len() >= self.most {
            // Whoever waits for an answer is told that there is none.
            drop(wishes);
            return Err(Box::new(carried));
        }
        let run = carried.id;
        let mut requests = BTreeMap::new();
        let mut asked = BTreeMap::new();
        for wish in wishes {
            carried.questions += 1;
            let key = format!("question-{}", carried.questions);
            requests.insert(key.clone(), wish.request);
            asked.insert(key, wish.answer);
        }
        let ticket = Ticket {
            run,
            question: carried.questions,
        };
        let bound = bound_to(code);
        let options = SealOptions::new().associated_data(&bound).ttl(self.time);
        let Ok(state) = self.codec.seal_json_with(&ticket, &options) else {
            return Err(Box::new(carried));
        };
        let parked = Parked {
            carried,
            asked,
            _expiry: self.expire(ticket),
        };
        lot.insert(run, parked);
        Ok(InputRequiredResult::new(Some(requests), Some(state)))
    }

    /// Takes the run out that a client comes for, with the answers handed to
    /// those who wait for them.
    pub(crate) fn fetch(
        &self,
        state: &str,
        code: &str,
        mut responses: InputResponses,
    ) -> Result<Carried, Refused> {
        let ticket: Ticket = match self.codec.open_json_with(state, &bound_to(code)) {
            Ok(ticket) => ticket,
            Err(RequestStateError::Expired) => return Err(Refused::Expired),
            Err(_) => return Err(Refused::Forged),
        };
        let mut lot = self.lock();
        let parked = lot
            .get(&ticket.run)
            .filter(|parked| parked.carried.questions == ticket.question)
            .ok_or(Refused::Used)?;
        if let Some(missing) = parked
            .asked
            .keys()
            .find(|key| !responses.contains_key(*key))
        {
            return Err(Refused::NoAnswer(missing.clone()));
        }
        let Some(parked) = lot.remove(&ticket.run) else {
            return Err(Refused::Used);
        };
        drop(lot);
        for (key, waiting) in parked.asked {
            if let Some(response) = responses.remove(&key) {
                // A call that was cancelled meanwhile waits for nothing.
                let _gone = waiting.send(response);
            }
        }
        Ok(parked.carried)
    }

    /// Ends all runs that are parked.
    pub(crate) fn clear(&self) {
        let parked = std::mem::take(&mut *self.lock());
        drop(parked);
    }

    fn expire(self: &Arc<Self>, ticket: Ticket) -> AbortOnDropHandle<()> {
        let lot = Arc::downgrade(self);
        let time = self.time;
        AbortOnDropHandle::new(tokio::spawn(async move {
            tokio::time::sleep(time).await;
            let Some(lot) = lot.upgrade() else {
                return;
            };
            let mut parked = lot.lock();
            let is_it = |parked: &Parked| parked.carried.questions == ticket.question;
            if parked.get(&ticket.run).is_some_and(is_it) {
                let expired = parked.remove(&ticket.run);
                drop(parked);
                tracing::info!("a parked script was cancelled: nobody came with an answer");
                drop(expired);
            }
        }))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Parked>> {
        // Nothing is left half done where a panic could come.
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a state is good for besides its run: the request that it answered.
fn bound_to(code: &str) -> Vec<u8> {
    let mut bound = b"tools/call run_script ".to_vec();
    bound.extend_from_slice(&Sha256::digest(code.as_bytes()));
    bound
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::super::desk::Drawer;
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// A run that never ends by itself, and what tells that it was cancelled.
    fn run(id: u64) -> (Carried, CancellationToken) {
        let cancel = CancellationToken::new();
        let drawer = Drawer {
            wishes: mpsc::unbounded_channel().1,
            news: mpsc::channel(1).1,
        };
        let report = tokio::spawn(std::future::pending());
        (Carried::new(id, report, drawer, cancel.clone()), cancel)
    }

    fn wish() -> (Wish, oneshot::Receiver<Value>) {
        let (answer, answered) = oneshot::channel();
        let request = json!({ "method": "roots/list" });
        let request = serde_json::from_value(request).expect("a request");
        (Wish { request, answer }, answered)
    }

    fn responses(value: Value) -> InputResponses {
        serde_json::from_value(value).expect("responses")
    }

    /// Parks a run that wants one thing.
    fn park(lot: &Arc<Lot>, carried: Carried) -> (String, oneshot::Receiver<Value>) {
        let (wish, answered) = wish();
        let parked = lot.park(carried, vec![wish], "code").expect("room");
        (parked.request_state.expect("a state"), answered)
    }

    fn refused(lot: &Lot, state: &str, code: &str, given: Value) -> Refused {
        lot.fetch(state, code, responses(given))
            .expect_err("it is refused")
    }

    #[tokio::test]
    async fn each_question_has_a_state_of_its_own() {
        let lot = Arc::new(Lot::new(2, HOUR).expect("random bytes"));
        let (carried, cancelled) = run(7);
        let (first, mut answered) = park(&lot, carried);
        let answer = json!({ "question-1": "one", "question-9": "more" });
        assert_eq!(
            refused(&lot, &first, "other", answer.clone()),
            Refused::Forged
        );
        assert_eq!(
            refused(&lot, &first, "code", json!({})),
            Refused::NoAnswer("question-1".to_owned())
        );
        assert!(answered.try_recv().is_err(), "nothing has changed");
        let carried = lot.fetch(&first, "code", responses(answer.clone()));
        assert_eq!(answered.await, Ok(json!("one")));

        let (second, answered) = park(&lot, carried.expect("it is parked"));
        // The state of the question before, while the run is parked again.
        assert_eq!(refused(&lot, &first, "code", answer), Refused::Used);
        let answer = json!({ "question-2": "two" });
        let carried = lot.fetch(&second, "code", responses(answer.clone()));
        assert_eq!(answered.await, Ok(json!("two")));
        assert!(!cancelled.is_cancelled());
        drop(carried);
        assert!(cancelled.is_cancelled());
        assert_eq!(refused(&lot, &second, "code", answer), Refused::Used);
    }

    #[tokio::test]
    async fn a_full_lot_takes_no_more() {
        let lot = Arc::new(Lot::new(1, HOUR).expect("random bytes"));
        let (_state, _answered) = park(&lot, run(1).0);
        let (carried, cancelled) = run(2);
        let (wish, answered) = wish();
        let back = lot.park(carried, vec![wish], "code");
        assert!(answered.await.is_err(), "there is nobody to answer");
        assert!(!cancelled.is_cancelled());
        assert_eq!(back.expect_err("it comes back").id, 2);
    }

    #[tokio::test]
    async fn a_run_that_nobody_comes_for_is_cancelled() {
        let lot = Arc::new(Lot::new(1, Duration::from_millis(1)).expect("random bytes"));
        let (carried, cancelled) = run(1);
        let (state, _answered) = park(&lot, carried);
        cancelled.cancelled().await;
        assert_eq!(
            refused(&lot, &state, "code", json!({ "question-1": 1 })),
            Refused::Expired
        );
        // There is room again.
        park(&lot, run(2).0);
    }

    #[tokio::test]
    async fn states_of_another_server_are_forged() {
        let lots = [(); 2].map(|()| Arc::new(Lot::new(1, HOUR).expect("random bytes")));
        let states = lots.each_ref().map(|lot| park(lot, run(1).0).0);
        let answer = json!({ "question-1": 1 });
        assert_eq!(
            refused(&lots[0], &states[1], "code", answer),
            Refused::Forged
        );
    }

    #[tokio::test]
    async fn a_cleared_lot_cancels() {
        let lot = Arc::new(Lot::new(1, HOUR).expect("random bytes"));
        let (carried, cancelled) = run(1);
        let (_state, answered) = park(&lot, carried);
        lot.clear();
        assert!(cancelled.is_cancelled());
        assert!(answered.await.is_err());
    }
}
