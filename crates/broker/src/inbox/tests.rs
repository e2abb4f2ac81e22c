//! What arrives and whom it reaches.

use std::task::{Context, Wake};

use expect_test::{Expect, expect};

use super::*;

/// Opens two flights, delivers, and shows what they got.
fn check(messages: &[&str], expected: Expect) {
    let inbox = Inbox::new("s".into(), 100);
    for _ in 0..2 {
        inbox.open(None, false).expect("it is not lost");
    }
    for message in messages {
        inbox.deliver(message.as_bytes());
    }
    let mut shown = String::new();
    for id in [1, 2] {
        let mut cx = Context::from_waker(Waker::noop());
        let answer = match inbox.poll(id, &mut cx) {
            Poll::Ready(Ok(result)) => result.get().to_owned(),
            Poll::Ready(Err(failure)) => format!("{failure:?}"),
            Poll::Pending => "waits".to_owned(),
        };
        shown.push_str(&format!("{id}: {answer}\n"));
    }
    shown.push_str(&format!("junk: {}\n", inbox.junk()));
    expected.assert_eq(&shown);
}

#[test]
fn answers_go_to_their_flights_as_they_were_written() {
    check(
        &[
            r#"{"jsonrpc":"2.0","id":2,"result":{"a":1.0, "a":2}}"#,
            r#"{"jsonrpc":"2.0","id":2,"result":"again"}"#,
            r#"{"jsonrpc":"2.0","id":3,"result":"nobody's"}"#,
            r#"{"result":null,"id":1}"#,
        ],
        expect![[r#"
            1: null
            2: {"a":1.0, "a":2}
            junk: 0
        "#]],
    );
}

#[test]
fn halves_of_characters_are_replaced_wherever_they_stand() {
    check(
        &[
            r#"{"id":1,"result":{"content":[{"type":"text","text":"a\ud83d"},{"text":"\uDE00"}]}}"#,
            r#"{"id":2,"error":{"code":-1,"message":"cut \ud83d"}}"#,
        ],
        expect![[r#"
            1: {"content":[{"type":"text","text":"a\ufffd"},{"text":"\ufffd"}]}
            2: Refused(ErrorData { code: ErrorCode(-1), message: "cut �", data: None })
            junk: 0
        "#]],
    );
}

#[test]
fn an_answer_that_is_not_utf8_fails_its_request_alone() {
    let inbox = Inbox::new("s".into(), 100);
    for _ in 0..2 {
        inbox.open(None, false).expect("it is not lost");
    }
    let text = |before: &str, after: &str| [before.as_bytes(), b"\xff", after.as_bytes()].concat();
    inbox.deliver(&text(
        r#"{"id":2,"method":"ping","params":{"a":""#,
        r#""}}"#,
    ));
    inbox.deliver(&text(r#"{"id":3,"result":""#, r#""}"#));
    inbox.deliver(&text(r#"{"id":2,"result":{"#, ""));
    assert!(inbox.waits(1) && inbox.waits(2));
    assert_eq!(inbox.junk(), 3);
    inbox.deliver(&text(
        r#"{"id":2,"result":{"content":[{"text":""#,
        r#""}]}}"#,
    ));
    assert!(inbox.waits(1));
    let mut cx = Context::from_waker(Waker::noop());
    let answer = format!("{:?}", inbox.poll(2, &mut cx));
    assert_eq!(answer, r#"Ready(Err(Malformed("it is not UTF-8")))"#);
    assert_eq!(inbox.junk(), 3);
}

#[test]
fn a_flight_that_reads_is_not_woken_for_its_own_answer() {
    struct Count(AtomicU64);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let check = |polls: &[bool], wakes: u64| {
        let count = Arc::new(Count(AtomicU64::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let mut cx = Context::from_waker(&waker);
        let inbox = Inbox::new("s".into(), 100);
        let id = inbox.open(None, false).expect("it is not lost");
        for reads in polls {
            let polled = match reads {
                true => inbox.poll_to_read(id, &mut cx),
                false => inbox.poll(id, &mut cx),
            };
            assert!(polled.is_pending());
        }
        inbox.deliver(br#"{"id":1,"result":1}"#);
        assert_eq!(count.0.load(Ordering::Relaxed), wakes, "{polls:?}");
        assert!(inbox.poll(id, &mut cx).is_ready());
    };
    check(&[false], 1);
    check(&[true], 0);
    // It has read and found nothing: whoever reads next wakes it.
    check(&[true, false], 1);
}

#[test]
fn refusals_and_nonsense() {
    check(
        &[
            r#"{"id":1,"error":{"code":-5,"message":"no"},"result":{}}"#,
            r#"{"id":2}"#,
        ],
        expect![[r#"
            1: Refused(ErrorData { code: ErrorCode(-5), message: "no", data: None })
            2: Malformed("it has neither a result nor an error")
            junk: 0
        "#]],
    );
}

#[test]
fn what_is_no_message_is_counted() {
    check(
        &[
            "hello",
            "",
            " ",
            "{}",
            "7",
            r#"{"id":null}"#,
            r#"{"id":1,"id":1}"#,
            "[]",
            "[1, 2]",
        ],
        expect![[r#"
            1: waits
            2: waits
            junk: 7
        "#]],
    );
}

#[test]
fn a_batch_is_taken_apart() {
    check(
        &[r#"[{"id":1,"result":1},{"id":2,"result":2},[]]"#],
        expect![[r#"
            1: 1
            2: 2
            junk: 1
        "#]],
    );
}

#[test]
fn so_many_messages_of_a_batch_are_read() {
    let ids = |nothing: usize| {
        let nothing = "7,".repeat(nothing);
        let batch = format!(r#"[{nothing}{{"id":1,"result":1}},{{"id":2,"result":2}}]"#);
        let inbox = Inbox::new("s".into(), 100_000);
        let ids = [(); 2].map(|()| inbox.open(None, false).expect("it is not lost"));
        inbox.deliver(batch.as_bytes());
        let mut cx = Context::from_waker(Waker::noop());
        ids.map(|id| inbox.poll(id, &mut cx).is_ready())
    };
    assert_eq!(ids(MAX_BATCH - 2), [true, true]);
    assert_eq!(ids(MAX_BATCH - 1), [true, false]);
}

#[test]
fn a_loss_ends_every_flight_and_says_what_had_left() {
    let inbox = Inbox::new("s".into(), 100);
    let first = inbox.open(None, false).expect("it is not lost");
    assert!(inbox.sent(first));
    let second = inbox.open(None, false).expect("it is not lost");
    inbox.lost(LinkError::closed("gone", true));
    inbox.lost(LinkError::closed("gone again", true));
    assert!(!inbox.sent(second));
    let mut cx = Context::from_waker(Waker::noop());
    for (id, sent) in [(first, true), (second, false)] {
        match inbox.poll(id, &mut cx) {
            Poll::Ready(Err(Failure::Lost(error))) => {
                assert_eq!(error, LinkError::closed("gone", sent));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        inbox.open(None, false).expect_err("it is lost"),
        LinkError::closed("gone", false)
    );
}

#[test]
fn a_connection_that_is_shut_lasts_until_nothing_sent_waits() {
    let inbox = Inbox::new("s".into(), 100);
    let open = |listens: bool, sent: bool| {
        let id = inbox.open(None, listens).expect("it is open");
        if sent {
            assert!(inbox.sent(id));
        }
        id
    };
    let (first, second) = (open(false, true), open(false, true));
    let (unsent, listening) = (open(false, false), open(true, true));
    let shut = |sent| LinkError::closed("it takes no more", sent);
    inbox.shut(shut(false));
    assert!(!inbox.is_open());
    assert_eq!(inbox.open(None, false), Err(shut(false)));
    let lost = inbox.watch_lost();
    inbox.deliver(br#"{"id":1,"result":1}"#);
    assert_eq!(*lost.borrow(), None);
    assert!(inbox.waits(second) && inbox.waits(unsent) && inbox.waits(listening));
    assert!(inbox.forget(second));
    assert_eq!(*lost.borrow(), Some(shut(false)));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(inbox.poll(first, &mut cx), Poll::Ready(Ok(_))));
    for (id, sent) in [(unsent, false), (listening, true)] {
        match inbox.poll(id, &mut cx) {
            Poll::Ready(Err(Failure::Lost(error))) => assert_eq!(error, shut(sent)),
            other => panic!("{other:?}"),
        }
    }
}

/// It may end before it has answered what it has, or have nothing to answer.
#[test]
fn a_connection_that_is_shut_can_be_lost_at_any_time() {
    let inbox = Inbox::new("s".into(), 100);
    let id = inbox.open(None, false).expect("it is open");
    assert!(inbox.sent(id));
    inbox.shut(LinkError::closed("it takes no more", false));
    inbox.lost(LinkError::closed("gone", true));
    let gone = LinkError::closed("gone", true);
    assert_eq!(*inbox.watch_lost().borrow(), Some(gone.clone()));
    let mut cx = Context::from_waker(Waker::noop());
    match inbox.poll(id, &mut cx) {
        Poll::Ready(Err(Failure::Lost(error))) => assert_eq!(error, gone),
        other => panic!("{other:?}"),
    }

    let idle = Inbox::new("s".into(), 100);
    let shut = LinkError::closed("it takes no more", false);
    idle.shut(shut.clone());
    assert_eq!(*idle.watch_lost().borrow(), Some(shut));
}
