//! Wishes that are put up, shown, answered, and gone.

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
fn shown(board: &Board, numbers: &[u64], keys: &[&str]) {
    let (shown_numbers, requests) = board.show(ALL).expect("wishes");
    let mut shown: Vec<_> = requests.keys().map(String::as_str).collect();
    shown.sort_unstable();
    assert_eq!(
        (shown_numbers.as_slice(), shown.as_slice()),
        (numbers, keys)
    );
}

#[tokio::test]
async fn what_has_no_answer_is_asked_for_again() {
    let board = Arc::new(Board::new(HOUR));
    let first = wish(&board, &[None, None]).await;
    let second = wish(&board, &[None]).await;
    shown(
        &board,
        &[1, 2, 3],
        &["question-1", "question-2", "question-3"],
    );
    let none = responses(json!({ "question-9": 9 }));
    assert_eq!(board.answer_given(&[1, 2, 3], ALL, none), Ok(()));
    shown(
        &board,
        &[1, 2, 3],
        &["question-1", "question-2", "question-3"],
    );
    let some = || responses(json!({ "question-1": 1, "question-3": 3, "question-9": 9 }));
    assert_eq!(board.answer_given(&[1, 2, 3], ALL, some()), Ok(()));
    shown(&board, &[2], &["question-2"]);
    assert_eq!(second.await.expect("an end"), [Ok(json!(3))]);
    let rest = responses(json!({ "question-2": 2 }));
    assert_eq!(board.answer_given(&[1, 2, 3], ALL, rest), Ok(()));
    assert_eq!(first.await.expect("an end"), [Ok(json!(1)), Ok(json!(2))]);

    // A later wish is none that the earlier answers are for.
    let third = wish(&board, &[None]).await;
    let used = board.answer_given(&[1, 2, 3], ALL, some());
    assert_eq!(used, Err(Untaken::Used));
    let unable = board.answer_given(&[4], Can::default(), some());
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
    shown(&board, &[1, 2, 3, 4, 5], &names);
    let other = wish(&board, &[Some("name")]).await;
    let all = [
        "name",
        "name-6",
        "question-2",
        "question-3",
        "question-5",
        "question-5-5",
    ];
    shown(&board, &[1, 2, 3, 4, 5, 6], &all);
    first.abort();
    assert!(first.await.expect_err("given up").is_cancelled());
    // One that is gone keeps its key, and another its own.
    let _third = wish(&board, &[Some("name"), Some("name-6")]).await;
    shown(&board, &[6, 7, 8], &["name-6", "name-6-8", "name-7"]);
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
    assert_eq!(board.answer_given(&[1], ALL, given), Ok(()));
    assert!(!board.give(&[1]));
    board.answer(1, Err(Unanswered::Failed("no".to_owned())));
    let answer = waiting.await.expect("an end");
    assert_eq!(answer, [Err(Unanswered::Failed("no".to_owned()))]);
}

#[tokio::test]
async fn whoever_has_a_state_may_come_until_all_of_it_is_answered() {
    let board = Arc::new(Board::new(HOUR));
    let first = wish(&board, &[None]).await;
    let second = wish(&board, &[None]).await;
    assert!(!board.has_given());
    assert!(board.give(&[1, 2]) && board.has_given());
    // One is given up while its client is away, and another comes up.
    first.abort();
    assert!(first.await.expect_err("given up").is_cancelled());
    let third = wish(&board, &[None]).await;
    let all = || responses(json!({ "question-1": 1, "question-2": 2, "question-3": 3 }));
    assert_eq!(board.answer_given(&[1, 2], ALL, all()), Ok(()));
    assert_eq!(second.await.expect("an end"), [Ok(json!(2))]);
    shown(&board, &[3], &["question-3"]);
    // What is left of it has no answer, so it is good for coming still.
    assert_eq!(board.answer_given(&[1, 2], ALL, all()), Ok(()));
    shown(&board, &[3], &["question-3"]);
    assert!(board.give(&[3]));
    assert_eq!(board.answer_given(&[3], ALL, all()), Ok(()));
    assert_eq!(third.await.expect("an end"), [Ok(json!(3))]);
    let used = board.answer_given(&[3], ALL, all());
    assert_eq!(used, Err(Untaken::Used));
    assert!(board.has_given(), "nobody answered the first");
}

#[tokio::test]
async fn nobody_comes_for_what_was_answered_or_never_given() {
    let board = Arc::new(Board::new(HOUR));
    let answered = wish(&board, &[None]).await;
    assert!(board.give(&[1]));
    let answer = responses(json!({ "question-1": 1 }));
    assert_eq!(board.answer_given(&[1], ALL, answer.clone()), Ok(()));
    assert_eq!(answered.await.expect("an end"), [Ok(json!(1))]);
    let never_given = wish(&board, &[None]).await;
    board.refuse(ALL);
    assert_eq!(
        never_given.await.expect("an end"),
        [Err(Unanswered::Nobody)]
    );
    assert!(!board.has_given());
    assert!(!board.give(&[1, 2]), "they are gone");
    assert!(!board.has_given());
    for numbers in [&[1][..], &[2], &[]] {
        let used = board.answer_given(numbers, ALL, answer.clone());
        assert_eq!(used, Err(Untaken::Used));
    }
}

#[tokio::test]
async fn what_is_settled_without_a_state_can_be_come_for() {
    let board = Arc::new(Board::new(HOUR));
    let mut waiting = Vec::new();
    for number in 1..=3 {
        waiting.push(wish(&board, &[None]).await);
        assert!(board.give(&[number]));
    }
    board.answer(1, Ok(json!(1)));
    board.answer_any(responses(json!({ "question-2": 2 })));
    board.refuse(ALL);
    for number in 1..=3 {
        let late = responses(json!({ "question-1": 0, "question-2": 0, "question-3": 0 }));
        assert_eq!(board.answer_given(&[number], ALL, late), Ok(()));
    }
    let mut answers = Vec::new();
    for waiting in waiting {
        answers.extend(waiting.await.expect("an end"));
    }
    let expected = [Ok(json!(1)), Ok(json!(2)), Err(Unanswered::Nobody)];
    assert_eq!(answers, expected);
}

#[tokio::test]
async fn wishes_that_are_remembered_are_bounded() {
    let board = Arc::new(Board::new(HOUR));
    for number in 1..=MOST_MISSED as u64 + 1 {
        let waiting = wish(&board, &[None]).await;
        assert!(board.give(&[number]));
        waiting.abort();
        assert!(waiting.await.expect_err("given up").is_cancelled());
    }
    assert_eq!(board.lock().missed.len(), MOST_MISSED);
    let come = |number| board.answer_given(&[number], ALL, InputResponses::new());
    assert_eq!((come(1), come(2)), (Err(Untaken::Used), Ok(())));
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
