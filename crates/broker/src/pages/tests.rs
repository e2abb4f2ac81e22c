//! Pages, without a process.

use expect_test::{Expect, expect};
use rmcp::model::ProtocolVersion;
use serde_json::json;

use super::*;
use crate::caller::{Offers, Refusal};
use crate::fake::{Host, agree, call, page_done, result};
use crate::session::Abilities;

fn page(id: &str) -> Value {
    json!({ "mode": "url", "elicitationId": id, "url": format!("https://door/{id}"), "message": "m" })
}

/// A server that refuses the first calls for these pages, and then answers.
fn door(
    host: &Arc<Host>,
    times: usize,
    elicitations: Value,
) -> (Arc<Session>, Arc<crate::fake::FakeLink>) {
    let mut left = times;
    agree(
        ProtocolVersion::V_2025_11_25,
        Abilities::default(),
        host,
        move |message| {
            if message["method"] != "tools/call" {
                return Vec::new();
            }
            if left == 0 {
                return vec![result(message, json!({ "content": [] }))];
            }
            left -= 1;
            let data = json!({ "elicitations": elicitations });
            let error = json!({ "code": -32042, "message": "locked", "data": data });
            vec![json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })]
        },
    )
}

/// What comes of the call, how often it was made, and what the host heard.
async fn check(host: Host, times: usize, elicitations: Value, expected: Expect) {
    let host = Arc::new(host);
    let (session, link) = door(&host, times, elicitations);
    if host.door.lock().expect("no panic").is_some() {
        *host.door.lock().expect("no panic") = Some(Arc::clone(&session.inbox));
    }
    let shown = match session.call(&call(&host)).await {
        Ok(result) => result.to_string(),
        Err(failure) => failure.to_string(),
    };
    let calls = link
        .sent()
        .iter()
        .filter(|sent| *sent == "tools/call")
        .count();
    let heard = host.heard().join("\n");
    expected.assert_eq(&format!("{shown}\ncalls: {calls}\n{heard}"));
    // A person who does not come back counts as one who is asked, and no longer.
    assert!(!session.asked.is_asking());
}

fn host() -> Host {
    Host {
        offers: Host::able().offers,
        ..Host::default()
    }
}

#[tokio::test]
async fn the_call_is_made_again_when_the_server_says_that_the_page_is_done() {
    let host = Host {
        door: Mutex::new(Some(crate::inbox::Inbox::new("none".into(), 1))),
        ..host()
    };
    check(
        host,
        1,
        json!([page("a"), page("b")]),
        expect![[r#"
        {"content":[]}
        calls: 2
        s Some("t") elicits {"mode":"url","elicitationId":"a","url":"https://door/a","message":"m"}
        s had a opened
        a is done
        s Some("t") elicits {"mode":"url","elicitationId":"b","url":"https://door/b","message":"m"}
        s had b opened
        b is done
        s.t waits for 2"#]],
    )
    .await;
}

#[tokio::test]
async fn the_call_is_made_again_when_the_user_is_back() {
    let back = Some(Ok(()));
    check(
        Host { back, ..host() },
        1,
        json!([page("a")]),
        expect![[r#"
        {"content":[]}
        calls: 2
        s Some("t") elicits {"mode":"url","elicitationId":"a","url":"https://door/a","message":"m"}
        s had a opened
        s.t waits for 1"#]],
    )
    .await;
    // Once, and no more.
    let back = Some(Ok(()));
    check(
        Host { back, ..host() },
        2,
        json!([page("a")]),
        expect![[r#"
        locked (code -32042)
        calls: 2
        s Some("t") elicits {"mode":"url","elicitationId":"a","url":"https://door/a","message":"m"}
        s had a opened
        s.t waits for 1"#]],
    )
    .await;
}

#[tokio::test]
async fn the_call_ends_without_its_page() {
    for says in ["decline", "cancel"] {
        let host = Host {
            says: Some(says),
            ..host()
        };
        let expected = match says {
            "decline" => expect![[r#"
                locked; the user declined to open its page (code -32042)
                calls: 1
                s Some("t") elicits {"mode":"url","elicitationId":"a","url":"https://door/a","message":"m"}"#]],
            _ => expect![[r#"
                locked; the user did not open its page (code -32042)
                calls: 1
                s Some("t") elicits {"mode":"url","elicitationId":"a","url":"https://door/a","message":"m"}"#]],
        };
        check(host, 1, json!([page("a"), page("b")]), expected).await;
    }
    let back = Some(Err(Refusal::Declined));
    check(
        Host { back, ..host() },
        1,
        json!([page("a")]),
        expect![[r#"
        locked; the user gave its page up (code -32042)
        calls: 1
        s Some("t") elicits {"mode":"url","elicitationId":"a","url":"https://door/a","message":"m"}
        s had a opened
        s.t waits for 1"#]],
    )
    .await;
    // Nobody says anything.
    check(
        host(),
        1,
        json!([page("a")]),
        expect![[r#"
        locked; nobody was done at its page within 0 minutes (code -32042)
        calls: 1
        s Some("t") elicits {"mode":"url","elicitationId":"a","url":"https://door/a","message":"m"}
        s had a opened
        s.t waits for 1"#]],
    )
    .await;
    let nobody = Host {
        offers: Offers {
            form: true,
            ..Offers::default()
        },
        ..Host::default()
    };
    check(nobody, 1, json!([page("a"), page("b")]), expect![[r#"
        locked; there is nobody to ask, so open "https://door/a" and "https://door/b" and call again (code -32042)
        calls: 1
    "#]]).await;
}

#[tokio::test]
async fn what_is_no_list_of_pages_is_an_error_like_any_other() {
    let form = json!({ "mode": "form", "elicitationId": "a", "message": "m" });
    let nameless = json!({ "mode": "url", "url": "https://door" });
    let long = page(&"a".repeat(MAX_ID_BYTES + 1));
    let mut script = page("a");
    script["url"] = json!("javascript:alert(1)");
    for elicitations in [
        json!(null),
        json!([]),
        json!([7]),
        json!([page("a"), form]),
        json!([nameless]),
        json!([long]),
        json!([page("a"), script]),
        json!(vec![page("a"); MAX_PAGES + 1]),
    ] {
        let expected = expect![[r#"
            locked (code -32042)
            calls: 1
        "#]];
        check(host(), 1, elicitations, expected).await;
    }
}

#[tokio::test]
async fn the_end_of_a_page_is_told_once_and_only_of_those_shown() {
    let host = Arc::new(host());
    let (session, _link) = door(&host, 0, json!([]));
    let done = |id: &str| {
        let note = page_done(&json!(id)).to_string();
        session.inbox.deliver(note.as_bytes());
    };
    done("a");
    let ask = json!({
        "jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": page("a"),
    });
    session.inbox.deliver(ask.to_string().as_bytes());
    while session.asked.is_asking() {
        tokio::task::yield_now().await;
    }
    done("b");
    done("a");
    done("a");
    assert_eq!(
        host.heard(),
        [
            format!("s None elicits {}", page("a")),
            "s had a opened".to_owned(),
            "a is done".to_owned(),
        ]
    );
}

/// Two calls wait for one page, and a third one's person does not open it.
#[tokio::test]
async fn the_end_of_a_page_is_that_of_all_who_wait_for_it() {
    let host = Arc::new(host());
    let other = Arc::new(Host {
        says: Some("decline"),
        offers: host.offers,
        ..Host::default()
    });
    let (session, link) = door(&host, 3, json!([page("a")]));
    let done = page_done(&json!("a")).to_string();
    let (call, declined) = (call(&host), call(&other));
    let (first, second, third, ()) = tokio::join!(
        session.call(&call),
        session.call(&call),
        session.call(&declined),
        async { session.inbox.deliver(done.as_bytes()) }
    );
    let shown = [first, second, third].map(|answer| match answer {
        Ok(result) => result.to_string(),
        Err(failure) => failure.to_string(),
    });
    assert_eq!(
        shown,
        [
            r#"{"content":[]}"#,
            r#"{"content":[]}"#,
            "locked; the user declined to open its page (code -32042)",
        ]
    );
    assert_eq!(link.sent(), ["tools/call"; 5]);
    let told = host.heard();
    let told = told.iter().filter(|heard| *heard == "a is done");
    // Whoever has agreed hears of it: each may have had another client go there.
    assert_eq!(told.count(), 2);
    assert!(session.pages.lock().is_empty());
}

/// Nobody would say that the page is done with.
#[tokio::test]
async fn a_call_does_not_wait_for_its_page_longer_than_its_connection_lasts() {
    let silent = Host {
        silent: true,
        ..host()
    };
    // Be it that its person is asked, or is at the page.
    for host in [host(), silent] {
        let host = Arc::new(host);
        let (session, link) = door(&host, 1, json!([page("a")]));
        let call = call(&host);
        let (called, ()) = tokio::join!(session.call(&call), async {
            session.inbox.lost(LinkError::closed("it ended", true));
        });
        let Err(Failure::Lost(error)) = called else {
            panic!("{called:?}");
        };
        assert_eq!(error, LinkError::closed("it ended", false));
        assert_eq!(link.sent(), ["tools/call"]);
        assert!(!session.asked.is_asking());
    }
}

#[test]
fn pages_are_forgotten() {
    let pages = Arc::new(Pages::default());
    let shown: Vec<Shown> = (0..=MAX_OPEN)
        .filter_map(|number| pages.show(&page(&number.to_string())))
        .collect();
    assert_eq!(pages.lock().len(), MAX_OPEN);
    drop(shown);
    assert_eq!(pages.lock().len(), 0);
    assert!(
        pages
            .show(&json!({ "mode": "url", "url": "https://door" }))
            .is_none()
    );
}

/// A server may have one page shown as often as it likes, and never say that it is done with.
#[test]
fn of_those_who_agreed_the_last_ones_hear() {
    let pages = Arc::new(Pages::default());
    let (heard, hears) = std::sync::mpsc::channel();
    for number in 0..MAX_HEAR + 2 {
        let shown = pages.show(&page("a")).expect("a page");
        let heard = heard.clone();
        shown.agreed(Some(Box::new(move || heard.send(number).expect("a test"))));
    }
    drop(heard);
    pages.complete("a");
    let told: Vec<usize> = hears.iter().collect();
    assert_eq!(told, (2..MAX_HEAR + 2).collect::<Vec<_>>());
}
