//! What a run wants of its client, until somebody takes it there and answers.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use rmcp::model::{InputRequest, InputRequests, InputResponses};
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::client::Can;

/// A state that a client was given must not outlive what it asks for, and is
/// sealed a moment later.
const LAST_MOMENT: Duration = Duration::from_millis(100);

/// The longest key of a server's that is kept, in bytes.
const MOST_KEY_BYTES: usize = 128;
/// How many keys are remembered. Beyond, each has its number in it.
const MOST_KEYS: usize = 1_000;

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
    /// Keys that there were before, so that an answer that comes late is none to
    /// something else.
    keys: HashSet<String>,
}

#[derive(Debug)]
struct Wish {
    /// What it is called in answers that ask for it. No other wish of the run is.
    key: String,
    request: InputRequest,
    answer: oneshot::Sender<Result<Value, Unanswered>>,
    /// Whether a client was sent the request, and is at it.
    is_asked: bool,
}

/// Why a wish has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// There is nobody who could.
    Nobody,
    /// Nobody did in time.
    Late,
    /// The client could not do it, and said why.
    Failed(String),
}

/// Why answers to what was shown are not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Untaken {
    /// Nothing of it is wanted any more.
    Over,
    /// It is wanted, and whoever answers did not announce that it can.
    Unannounced,
}

/// Something to put on a board: the key that a server has for it, if it has one,
/// and what is asked for.
pub(crate) type Wanted<'a> = (Option<&'a str>, InputRequest);

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

    /// Puts all of this up at once, and waits for the answers. Dropping it takes
    /// it down.
    pub(crate) async fn wish(&self, wanted: Vec<Wanted<'_>>) -> Vec<Result<Value, Unanswered>> {
        let (last, waiting): (Option<u64>, Vec<_>) = {
            let mut wishes = self.lock();
            let waiting = wanted.into_iter().map(|(key, request)| {
                let (number, answered) = wishes.put_up(key, request);
                let board = self;
                (TakeDown { board, number }, answered)
            });
            let waiting = waiting.collect();
            (wishes.open.keys().next_back().copied(), waiting)
        };
        if let Some(last) = last {
            self.last.send_replace(last);
        }
        let late = self.answer_time + LAST_MOMENT;
        let answers = waiting.into_iter().map(|(down, answered)| async move {
            let _down = down;
            match tokio::time::timeout(late, answered).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_dropped)) => Err(Unanswered::Nobody),
                Err(_late) => Err(Unanswered::Late),
            }
        });
        join_all(answers).await
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
                (wish.key.clone(), wish.request.clone())
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

    /// Hands over the answers to what was shown up to this number. What has none
    /// stays, to be asked for again.
    ///
    /// # Errors
    ///
    /// [`Untaken`], and no answer is handed over.
    pub(crate) fn answer_shown(
        &self,
        last: u64,
        can: Can,
        responses: InputResponses,
    ) -> Result<(), Untaken> {
        let mut wishes = self.lock();
        let shown = wishes.open.range(..=last);
        let mut shown = shown.filter(|(_, wish)| !wish.is_asked).peekable();
        if shown.peek().is_none() {
            return Err(Untaken::Over);
        }
        if !shown.any(|(_, wish)| can.answer(&wish.request)) {
            return Err(Untaken::Unannounced);
        }
        wishes.hand_over(last, responses);
        Ok(())
    }

    /// Hands over those of the answers that fit; others are nothing (the tasks
    /// extension has it so).
    pub(crate) fn answer_any(&self, responses: InputResponses) {
        self.lock().hand_over(u64::MAX, responses);
    }

    fn lock(&self) -> MutexGuard<'_, Wishes> {
        // Nothing is left half done where a panic could come.
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wishes {
    fn put_up(
        &mut self,
        key: Option<&str>,
        request: InputRequest,
    ) -> (u64, oneshot::Receiver<Result<Value, Unanswered>>) {
        let (answer, answered) = oneshot::channel();
        self.count += 1;
        let number = self.count;
        let wish = Wish {
            key: self.key(key, number),
            request,
            answer,
            is_asked: false,
        };
        self.open.insert(number, wish);
        (number, answered)
    }

    /// The server's own key where no other wish has it or had it.
    fn key(&mut self, own: Option<&str>, number: u64) -> String {
        let own = own.filter(|own| (1..=MOST_KEY_BYTES).contains(&own.len()));
        let mut key = own.map_or_else(|| format!("question-{number}"), str::to_owned);
        let is_full = self.keys.len() >= MOST_KEYS;
        if is_full && own.is_some() {
            key.push_str(&format!("-{number}"));
        }
        let is_open = |key: &str| self.open.values().any(|wish| wish.key == key);
        while self.keys.contains(&key) || is_open(&key) {
            key.push_str(&format!("-{number}"));
        }
        if !is_full {
            self.keys.insert(key.clone());
        }
        key
    }

    fn hand_over(&mut self, last: u64, mut responses: InputResponses) {
        let answered = self.open.extract_if(..=last, |_, wish| {
            !wish.is_asked && responses.contains_key(&wish.key)
        });
        let answered: Vec<Wish> = answered.map(|(_, wish)| wish).collect();
        for wish in answered {
            if let Some(response) = responses.remove(&wish.key) {
                let _gone = wish.answer.send(Ok(response));
            }
        }
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

    type Answers = Vec<Result<Value, Unanswered>>;

    /// What a run waits for, which is on the board when this returns.
    async fn wish(board: &Arc<Board>, keys: &'static [Option<&str>]) -> JoinHandle<Answers> {
        let mut heard = board.follow();
        heard.mark_unchanged();
        let board = Arc::clone(board);
        let request = json!({ "method": "roots/list" });
        let request: InputRequest = serde_json::from_value(request).expect("a request");
        let wanted = keys.iter().map(|key| (*key, request.clone())).collect();
        let waiting = tokio::spawn(async move { board.wish(wanted).await });
        heard.changed().await.expect("a wish");
        waiting
    }

    fn responses(value: Value) -> InputResponses {
        serde_json::from_value(value).expect("responses")
    }

    #[track_caller]
    fn shown(board: &Board, last: u64, keys: &[&str]) {
        let (number, requests) = board.show(ALL).expect("wishes");
        let mut shown: Vec<_> = requests.keys().map(String::as_str).collect();
        shown.sort_unstable();
        assert_eq!((number, shown.as_slice()), (last, keys));
    }

    #[tokio::test]
    async fn what_has_no_answer_is_asked_for_again() {
        let board = Arc::new(Board::new(HOUR));
        let first = wish(&board, &[None, None]).await;
        let second = wish(&board, &[None]).await;
        shown(&board, 3, &["question-1", "question-2", "question-3"]);
        let none = responses(json!({ "question-9": 9 }));
        assert_eq!(board.answer_shown(3, ALL, none), Ok(()));
        shown(&board, 3, &["question-1", "question-2", "question-3"]);
        let some = || responses(json!({ "question-1": 1, "question-3": 3, "question-9": 9 }));
        assert_eq!(board.answer_shown(3, ALL, some()), Ok(()));
        shown(&board, 2, &["question-2"]);
        assert_eq!(second.await.expect("an end"), [Ok(json!(3))]);
        let rest = responses(json!({ "question-2": 2 }));
        assert_eq!(board.answer_shown(3, ALL, rest), Ok(()));
        assert_eq!(first.await.expect("an end"), [Ok(json!(1)), Ok(json!(2))]);

        // A later wish is none that the earlier answers are for.
        let third = wish(&board, &[None]).await;
        assert_eq!(board.answer_shown(3, ALL, some()), Err(Untaken::Over));
        let unable = board.answer_shown(4, Can::default(), some());
        assert_eq!(unable, Err(Untaken::Unannounced));
        board.answer_any(responses(json!({ "question-04": 0, "question-4": 4 })));
        assert_eq!(third.await.expect("an end"), [Ok(json!(4))]);
    }

    #[tokio::test]
    async fn servers_keys_stay_where_nothing_else_has_them() {
        let board = Arc::new(Board::new(HOUR));
        let long = Some("k".repeat(MOST_KEY_BYTES + 1).leak() as &str);
        let keys: &[_] = vec![Some("name"), Some(""), long, Some("question-5"), None].leak();
        let first = wish(&board, keys).await;
        let names = [
            "name",
            "question-2",
            "question-3",
            "question-5",
            "question-5-5",
        ];
        shown(&board, 5, &names);
        let other = wish(&board, &[Some("name")]).await;
        let all = [
            "name",
            "name-6",
            "question-2",
            "question-3",
            "question-5",
            "question-5-5",
        ];
        shown(&board, 6, &all);
        first.abort();
        assert!(first.await.expect_err("given up").is_cancelled());
        // One that is gone keeps its key, and another its own.
        let _third = wish(&board, &[Some("name"), Some("name-6")]).await;
        shown(&board, 8, &["name-6", "name-6-8", "name-7"]);
        board.answer_any(responses(json!({ "name": 0, "name-6": 6 })));
        assert_eq!(other.await.expect("an end"), [Ok(json!(6))]);
    }

    #[tokio::test]
    async fn keys_that_are_remembered_are_bounded() {
        let board = Arc::new(Board::new(HOUR));
        for number in 1..=MOST_KEYS {
            wish(&board, &[None]).await.abort();
            assert_eq!(board.lock().keys.len(), number);
        }
        let _waiting = wish(&board, &[Some("name"), None]).await;
        assert_eq!(board.lock().keys.len(), MOST_KEYS);
        let (_, requests) = board.show(ALL).expect("wishes");
        for key in ["name-1001", "question-1002"] {
            assert!(requests.contains_key(key), "{key}");
        }
    }

    #[tokio::test]
    async fn what_a_client_is_at_is_not_shown_to_another() {
        let board = Arc::new(Board::new(HOUR));
        let waiting = wish(&board, &[None]).await;
        assert!(board.take(Can::default()).is_empty(), "it can nothing");
        assert!(board.show(Can::default()).is_none());
        assert!(board.wants());
        assert_eq!(board.take(ALL).len(), 1);
        assert!(board.show(ALL).is_none());
        assert!(board.take(ALL).is_empty());
        assert!(!board.wants());
        let given = responses(json!({ "question-1": "other" }));
        board.answer_any(given.clone());
        assert_eq!(board.answer_shown(1, ALL, given), Err(Untaken::Over));
        board.answer(1, Err(Unanswered::Failed("no".to_owned())));
        let answer = waiting.await.expect("an end");
        assert_eq!(answer, [Err(Unanswered::Failed("no".to_owned()))]);
    }

    #[tokio::test]
    async fn nothing_stays_of_a_wish_that_is_given_up_or_late() {
        let board = Arc::new(Board::new(HOUR));
        let waiting = wish(&board, &[None]).await;
        waiting.abort();
        assert!(waiting.await.expect_err("given up").is_cancelled());
        assert!(!board.wants());

        let board = Arc::new(Board::new(Duration::ZERO));
        let waiting = wish(&board, &[None]).await;
        assert_eq!(waiting.await.expect("an end"), [Err(Unanswered::Late)]);
        assert!(!board.wants());
    }
}
