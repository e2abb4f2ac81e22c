//! What a run wants of its client, until somebody takes it there and answers.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{InputRequest, InputRequests, InputResponses};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::client::Can;

/// A state that a client was given must not outlive what it asks for, and is
/// sealed a moment later.
const LAST_MOMENT: Duration = Duration::from_millis(100);

/// The wishes of one run that nobody has answered. Bounded by the calls that may
/// be under way.
#[derive(Debug)]
pub(crate) struct Board {
    wishes: Mutex<Wishes>,
    /// The number of the last wish.
    last: watch::Sender<u64>,
    answer_time: Duration,
}

#[derive(Debug, Default)]
struct Wishes {
    count: u64,
    open: BTreeMap<u64, Wish>,
}

#[derive(Debug)]
struct Wish {
    request: InputRequest,
    answer: oneshot::Sender<Result<Value, Unanswered>>,
    /// Whether a client was sent the request, and is at it.
    is_asked: bool,
}

/// Why a wish has no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// There is nobody who could.
    Nobody,
    /// Nobody did in time.
    Late,
    /// The client could not do it, and said why.
    Failed(String),
}

/// Why answers do not fit. Nothing has changed then.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// Nothing of what was asked for is wanted any more.
    Over,
    /// One that was asked for is missing.
    Missing(String),
}

impl Board {
    /// A board on which each wish waits for so long.
    pub(crate) fn new(answer_time: Duration) -> Self {
        Self {
            wishes: Mutex::default(),
            last: watch::Sender::new(0),
            answer_time,
        }
    }

    /// How long a wish waits for its answer.
    pub(crate) fn answer_time(&self) -> Duration {
        self.answer_time
    }

    /// Hears of each wish.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// Puts this up, and waits for the answer. Dropping it takes it down.
    pub(crate) async fn wish(&self, request: InputRequest) -> Result<Value, Unanswered> {
        let (answer, answered) = oneshot::channel();
        let number = {
            let mut wishes = self.lock();
            wishes.count += 1;
            let number = wishes.count;
            let wish = Wish {
                request,
                answer,
                is_asked: false,
            };
            wishes.open.insert(number, wish);
            number
        };
        let _down = TakeDown {
            board: self,
            number,
        };
        self.last.send_replace(number);
        match tokio::time::timeout(self.answer_time + LAST_MOMENT, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_dropped)) => Err(Unanswered::Nobody),
            Err(_late) => Err(Unanswered::Late),
        }
    }

    /// Takes what this client is to be sent as requests.
    pub(crate) fn take(&self, can: Can) -> Vec<(u64, InputRequest)> {
        let mut wishes = self.lock();
        let open = wishes.open.iter_mut();
        let taken = open.filter(|(_, wish)| !wish.is_asked && can.answer(&wish.request));
        taken
            .map(|(number, wish)| {
                wish.is_asked = true;
                (*number, wish.request.clone())
            })
            .collect()
    }

    /// What there is for a client's next answers, by key, and the number of the
    /// last; `None` if there is nothing.
    pub(crate) fn show(&self, can: Can) -> Option<(u64, InputRequests)> {
        let wishes = self.lock();
        let shown = wishes
            .open
            .iter()
            .filter(|(_, wish)| !wish.is_asked && can.answer(&wish.request));
        let mut last = None;
        let requests: InputRequests = shown
            .map(|(number, wish)| {
                last = Some(*number);
                (key(*number), wish.request.clone())
            })
            .collect();
        Some((last?, requests))
    }

    /// Whether something is wanted that no client is at.
    pub(crate) fn wants(&self) -> bool {
        self.lock().open.values().any(|wish| !wish.is_asked)
    }

    /// Hands over one answer.
    pub(crate) fn answer(&self, number: u64, answer: Result<Value, Unanswered>) {
        let wish = self.lock().open.remove(&number);
        if let Some(wish) = wish {
            // A call that was cancelled meanwhile waits for nothing.
            let _gone = wish.answer.send(answer);
        }
    }

    /// Says of what is shown that there is nobody to answer.
    pub(crate) fn refuse(&self, can: Can) {
        let mut wishes = self.lock();
        let refused = wishes
            .open
            .extract_if(.., |_, wish| !wish.is_asked && can.answer(&wish.request));
        for (_, wish) in refused {
            let _gone = wish.answer.send(Err(Unanswered::Nobody));
        }
    }

    /// Hands over the answers to all that was shown up to this number.
    ///
    /// # Errors
    ///
    /// [`Unfit`], and no answer is handed over.
    pub(crate) fn answer_shown(
        &self,
        last: u64,
        can: Can,
        mut responses: InputResponses,
    ) -> Result<(), Unfit> {
        let mut wishes = self.lock();
        let shown = wishes.open.range(..=last);
        let numbers: Vec<u64> = shown
            .filter(|(_, wish)| !wish.is_asked && can.answer(&wish.request))
            .map(|(number, _)| *number)
            .collect();
        if numbers.is_empty() {
            return Err(Unfit::Over);
        }
        let keys = numbers.iter().map(|number| key(*number));
        if let Some(missing) = keys.into_iter().find(|key| !responses.contains_key(key)) {
            return Err(Unfit::Missing(missing));
        }
        for number in numbers {
            if let (Some(wish), Some(response)) =
                (wishes.open.remove(&number), responses.remove(&key(number)))
            {
                let _gone = wish.answer.send(Ok(response));
            }
        }
        Ok(())
    }

    /// Hands over those of the answers that fit; others are nothing (the tasks
    /// extension has it so).
    pub(crate) fn answer_any(&self, responses: InputResponses) {
        let mut wishes = self.lock();
        for (named, response) in responses {
            let Some(number) = number(&named) else {
                continue;
            };
            if wishes.open.get(&number).is_some_and(|wish| !wish.is_asked)
                && let Some(wish) = wishes.open.remove(&number)
            {
                let _gone = wish.answer.send(Ok(response));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Wishes> {
        // Nothing is left half done where a panic could come.
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a wish down that nobody waits for any more.
struct TakeDown<'a> {
    board: &'a Board,
    number: u64,
}

impl Drop for TakeDown<'_> {
    fn drop(&mut self) {
        self.board.lock().open.remove(&self.number);
    }
}

fn key(number: u64) -> String {
    format!("question-{number}")
}

fn number(key: &str) -> Option<u64> {
    let number = key.strip_prefix("question-")?.parse().ok()?;
    // One key for each.
    (self::key(number) == key).then_some(number)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tokio::task::JoinHandle;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const ALL: Can = Can {
        form: true,
        url: true,
        sampling: true,
        sampling_tools: true,
        roots: true,
    };

    /// Something that a run waits for, which is on the board when this returns.
    async fn wish(board: &Arc<Board>) -> JoinHandle<Result<Value, Unanswered>> {
        let mut heard = board.follow();
        heard.mark_unchanged();
        let board = Arc::clone(board);
        let request = json!({ "method": "roots/list" });
        let request = serde_json::from_value(request).expect("a request");
        let waiting = tokio::spawn(async move { board.wish(request).await });
        heard.changed().await.expect("a wish");
        waiting
    }

    fn responses(value: Value) -> InputResponses {
        serde_json::from_value(value).expect("responses")
    }

    #[tokio::test]
    async fn answers_fit_once_and_all_together() {
        let board = Arc::new(Board::new(HOUR));
        let first = wish(&board).await;
        let second = wish(&board).await;
        let (last, shown) = board.show(ALL).expect("wishes");
        assert_eq!(last, 2);
        let keys: Vec<_> = shown.keys().collect();
        assert_eq!(keys, ["question-1", "question-2"]);
        let one = responses(json!({ "question-1": 1 }));
        assert_eq!(
            board.answer_shown(last, ALL, one),
            Err(Unfit::Missing("question-2".to_owned()))
        );
        let all = || responses(json!({ "question-1": 1, "question-2": 2, "question-9": 9 }));
        assert_eq!(board.answer_shown(last, ALL, all()), Ok(()));
        assert_eq!(first.await.expect("an end"), Ok(json!(1)));
        assert_eq!(second.await.expect("an end"), Ok(json!(2)));

        // A later wish is none that the earlier answers are for.
        let third = wish(&board).await;
        assert_eq!(board.answer_shown(last, ALL, all()), Err(Unfit::Over));
        board.answer_any(responses(json!({ "question-03": 0, "question-3": 3 })));
        assert_eq!(third.await.expect("an end"), Ok(json!(3)));
    }

    #[tokio::test]
    async fn what_a_client_is_at_is_not_shown_to_another() {
        let board = Arc::new(Board::new(HOUR));
        let waiting = wish(&board).await;
        assert!(board.take(Can::default()).is_empty(), "it can nothing");
        assert!(board.show(Can::default()).is_none());
        assert!(board.wants());
        assert_eq!(board.take(ALL).len(), 1);
        assert!(board.show(ALL).is_none());
        assert!(board.take(ALL).is_empty());
        assert!(!board.wants());
        let given = responses(json!({ "question-1": "other" }));
        board.answer_any(given.clone());
        assert_eq!(board.answer_shown(1, ALL, given), Err(Unfit::Over));
        board.answer(1, Err(Unanswered::Failed("no".to_owned())));
        let answer = waiting.await.expect("an end");
        assert_eq!(answer, Err(Unanswered::Failed("no".to_owned())));
    }

    #[tokio::test]
    async fn nothing_stays_of_a_wish_that_is_given_up_or_late() {
        let board = Arc::new(Board::new(HOUR));
        let waiting = wish(&board).await;
        waiting.abort();
        assert!(waiting.await.expect_err("given up").is_cancelled());
        assert!(!board.wants());

        let board = Arc::new(Board::new(Duration::ZERO));
        let waiting = wish(&board).await;
        assert_eq!(waiting.await.expect("an end"), Err(Unanswered::Late));
        assert!(!board.wants());
    }
}
